"""Count the kernels with barriers, shuffles or votes that run without fibres, and why the others do not.

    python -m lab.launches.share FOLDER ... [--each] [--list]

A kernel counts once for each text. Those that the host cannot build are left out, and counted apart. --each prints a
line for each folder, --list one for each kernel that stays on fibres.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tools.cuda.alone import MEETS
from tools.cuda.analysis import Kernel, Unit
from tools.cuda.outline import Function
from tools.cuda.phases import phases_of
from tools.cuda.to_host import HostRewriter, WarpsRewriter
from tools.files import read

LOOPS = {"kBlocks", "kRows", "kStrides", "kRange", "kPhases", "kWarps"}
MODE = re.compile(r'cuda_host::run<::cuda_host::(\w+)[^>]*>\("([^"]*)"')


class Found(NamedTuple):
    """A kernel that meets others."""

    path: str
    name: str
    is_loop: bool
    why: str


def why(unit: Unit, function: Function, kernel: Kernel, by_warps: WarpsRewriter) -> str:
    """Why it stays on fibres."""
    reason = by_warps.reasons.get(unit.main.functions.index(function), "")
    if not reason and kernel.in_phases:
        found = phases_of(unit.main, function, unit.names)
        reason = found if isinstance(found, str) else "a function asks for its thread"
    if reason and "elsewhere" not in reason:
        return reason
    used = unit.used_by(unit.main, function)
    met = sorted(word for word in used if MEETS.match(word))
    return f"meets by {', '.join(met)}" if met else "a header that is not known, or a loop that waits"


def kernels_of(path: Path, root: Path, seen: set[str]) -> list[Found] | None:
    """Those of a file that meet others; None: the host cannot build it."""
    names: dict[str, list[Path]] = {}
    for header in root.rglob("*"):
        if header.suffix in (".h", ".cuh", ".hpp"):
            names.setdefault(header.name, []).append(header)

    def find(name: str) -> str | None:
        found = [h for h in names.get(Path(name).name, ()) if str(h).endswith(name.lstrip("./"))]
        return str(found[0].relative_to(root)) if found else None

    unit = Unit(read(str(path)), str(path), HostRewriter.defined, find, root=str(root))
    rewriter = HostRewriter(unit, unit.main)
    if rewriter.problems:
        return None
    modes = dict((name, mode) for mode, name in MODE.findall(rewriter.rewritten()))
    kernels = {kernel.body: kernel for kernel in unit.kernels(unit.main)}
    by_warps, found = WarpsRewriter.of(unit, unit.main), []
    for function in (f for f in unit.main.functions if f.is_kernel):
        kernel = kernels[function.body, function.end]
        text = " ".join(unit.main.text[function.at : function.end].split())
        if not any(MEETS.match(word) for word in unit.used_by(unit.main, function)) or text in seen:
            continue
        seen.add(text)
        is_loop = modes.get(function.name, "") in LOOPS
        reason = "" if is_loop else why(unit, function, kernel, by_warps)
        found.append(Found(str(path), function.name, is_loop, reason))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="lab.launches.share", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    every: list[Found] = []
    seen: set[str] = set()
    refused = 0
    for folder in given.folders:
        before = len(every)
        for path in sorted(folder.rglob("*.cu")):
            try:
                found = kernels_of(path, folder, seen)
            except OSError as error:
                print(f"{path}: {error}", file=sys.stderr)
                found = None
            refused += found is None
            every += found or []
        mine = every[before:]
        if given.each:
            print(f"{folder.name}: {sum(one.is_loop for one in mine)} of {len(mine)}", flush=True)
    if given.list:
        for one in (one for one in every if not one.is_loop):
            print(f"{one.path}: {one.name}: {one.why}")
    reasons = Counter(re.sub(r"^line \d+: ", "", one.why) for one in every if not one.is_loop)
    for reason, count in reasons.most_common(30):
        print(f"{count:4} {reason}")
    loops = sum(one.is_loop for one in every)
    share = 100 * loops / max(len(every), 1)
    print(f"{loops} of {len(every)} kernels run without fibres ({share:.0f}%); {refused} files are refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
