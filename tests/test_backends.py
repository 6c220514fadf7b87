"""cuffi/backends.py: each row is complete, and few other files name a backend."""

import re
import subprocess

import pytest
from conftest import ROOT

from cuffi.backends import BACKENDS
from tools.make.settings import defaults

NAMED = re.compile(r"""["'](host|cuda)["']|\b_(host|cuda)\.(abi3|json)""")
CAFFE = (ROOT / "cuffi" / "caffe_layers" / "make" / "recipes.mk").read_text()
# Where "cuda" is a device of torch, as users write it. Tests, docs and the lab name backends on purpose.
OTHERS = (
    "tests/",
    "docs/",
    "lab/",
    "examples/",
    "benchmarks/",
    "cuffi/nets/",
    "cuffi/old_torch/",
    "pyproject.toml",
)


def test_each_row_has_its_rules_and_settings():
    for backend in BACKENDS.values():
        rules = (ROOT / "mk" / f"{backend.name}.mk").read_text() + CAFFE
        names = ("native", "kernel", "PLAIN")
        assert all(re.search(rf"^{backend.name}_{name} +:?=", rules, re.M) for name in names)
        assert set(backend.settings) <= set(defaults())


def test_who_names_a_backend():
    """Counts lines, including the table's own rows. There were 136 before the table."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True).stdout
    if not listed:
        pytest.skip("no checkout of git's")
    files = [f for f in listed.split("\0") if f and not f.startswith(OTHERS)]
    texts = ((f, (ROOT / f).read_text(errors="replace")) for f in files if (ROOT / f).is_file())
    lines = [f"{f}: {line.strip()}" for f, text in texts for line in text.splitlines() if NAMED.search(line)]
    assert len(lines) <= 17, "\n".join(lines)
