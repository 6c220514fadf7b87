"""CUDA's names stand in one table, and a name that CUDA 13 has is not forgotten in it."""

import ast
import csv
import re

import pytest
from conftest import ROOT

from tools.cuda import names

SPELT = re.compile(
    r"\b(threadIdx|blockIdx|blockDim|gridDim|warpSize|__sync(threads|warp)\w*|__shfl\w*|__ballot\w*|__(any|all)_sync"
    r"|__activemask|__match_\w+|__reduce_(?!ex)\w+|__threadfence\w*|__nanosleep|coalesced_threads|atomic(CAS|Exch)\w*)"
)
MAY_SPELL = {
    "tools/cuda/names.py": "the table",
    "tools/cuda/interchange.py": "writes the index of a row of blocks",
    "tools/cuda/groups.py": "writes these calls for methods of groups",
    "tools/cuda/ptx/votes.py": "writes these calls for instructions of PTX",
    "tools/cuda/ptx/writer.py": "writes these names for registers of PTX",
}


def literals(file):
    """The strings of a module that are no docstrings."""
    tree = ast.parse(file.read_text())
    with_text = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef)]
    documented = {id(n.body[0].value) for n in with_text if n.body and isinstance(n.body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node


def test_no_other_module_of_the_tools_spells_them():
    """The judge's messages and the main() that it writes (cuffi/judging) have them as words."""
    spelt = {}
    for file in (ROOT / "tools").rglob("*.py"):
        for node in literals(file):
            if found := SPELT.search(node.value):
                spelt.setdefault(str(file.relative_to(ROOT)), []).append(f"{node.lineno}: {found[0]}")
    assert spelt.keys() == MAY_SPELL.keys(), {f: s for f, s in spelt.items() if f not in MAY_SPELL}


def test_each_name_of_cuda_13_by_which_threads_meet_is_in_the_table():
    with open(ROOT / "docs/evidence/cuda13_names.csv") as file:
        listed = {row["name"] for row in csv.DictReader(file)}
    waiting = re.compile(
        r"__(sync|shfl|ballot|any|all|match|reduce_\w+_sync|activemask|nanosleep|threadfence)(?!\w*max)\w*"
    )
    meeting = {name for name in listed if waiting.fullmatch(name)}
    assert len(meeting) > 20
    assert not {n for n in meeting if not names.MEETS.fullmatch(n) and not names.GPU_ONLY.fullmatch(n)}
    assert not {n for n in meeting if not names.semantics(n)}


@pytest.mark.parametrize(
    ("word", "asks", "shares", "meets"),
    [
        ("threadIdx", True, True, False),
        ("blockIdx", False, True, False),
        ("CUDA_KERNEL_LOOP", True, False, False),
        ("__shared__", False, True, False),
        ("__syncthreads_count", False, True, True),
        ("__shfl", False, True, True),
        ("atomicCAS_system", False, False, True),
        ("volatile", False, False, True),
        ("threadIdx_", False, False, False),
        ("my__shfl_sync", False, False, False),
        ("__mbarrier_init", False, False, False),
    ],
)
def test_what_a_name_says(word, asks, shares, meets):
    asked = [bool(pattern.fullmatch(word)) for pattern in (names.ASKS, names.SHARES, names.MEETS)]
    assert asked == [asks, shares, meets]


def test_each_lane_has_its_text():
    assert set(names.SHUFFLES) | set(names.VOTES) | {names.WARP_BARRIER, names.MERGE} == names.IN_WARPS
    assert all(names.MEETS.fullmatch(word) for word in names.IN_WARPS | names.TOLD)
