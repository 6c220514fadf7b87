"""Count the kernels with barriers, shuffles or votes that run without fibres, and why the others do not.

    python -m lab.launches.share FOLDER ... [--each] [--list]

A kernel counts once for each text. Those that the host cannot build are left out, and counted apart: files that are
refused, and kernels of files that include a header which their folder does not have. --each prints a line for each
folder, --list one for each kernel that stays on fibres.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tools.cuda.analysis import Unit
from tools.cuda.names import MEETS
from tools.cuda.outline import Function
from tools.cuda.reasons import Way
from tools.cuda.to_host import HostRewriter
from tools.files import read

# Instructions of PTX, and matrices of a warp: their lanes meet in other ways.
PTX = re.compile(r"\b(asm|__asm__|wmma|mma_sync)\b")


class Found(NamedTuple):
    """A kernel that meets others."""

    path: str
    name: str
    is_loop: bool
    has_ptx: bool
    why: str
    has_all: bool  # the file's headers are there


def why(unit: Unit, function: Function, way: Way) -> str:
    """Why it stays on fibres."""
    if way.reasons:
        return way.reasons[-1].why
    used = unit.used_by(unit.main, function)
    met = sorted(word for word in used if MEETS.fullmatch(word))
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
    found = []
    kernels = [f for f in unit.main.functions if f.is_kernel]
    for function, way in zip(kernels, rewriter.ways, strict=True):
        text = " ".join(unit.main.text[function.at : function.end].split())
        if not any(MEETS.fullmatch(word) for word in unit.used_by(unit.main, function)) or text in seen:
            continue
        seen.add(text)
        is_loop = way.mode != "kThreads"
        reason = "" if is_loop else why(unit, function, way)
        has_ptx = any(PTX.fullmatch(word) for word in unit.used_by(unit.main, function))
        found.append(Found(str(path), function.name, is_loop, has_ptx, reason, not unit.unread))
    return found


def show(found: list[Found], refused: int):
    """Print the reasons by their number, and the shares."""
    every = [one for one in found if one.has_all]
    reasons = Counter(one.why for one in every if not one.is_loop)
    for reason, count in reasons.most_common(30):
        print(f"{count:4} {reason}")
    for title, some in (("all", every), ("without PTX and wmma", [one for one in every if not one.has_ptx])):
        loops = sum(one.is_loop for one in some)
        print(
            f"{title}: {loops} of {len(some)} kernels run without fibres ({100 * loops / max(len(some), 1):.0f}%)"
        )
    print(
        f"{refused} files are refused; {len(found) - len(every)} kernels are in files without their headers"
    )


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
    show(every, refused)
    return 0


if __name__ == "__main__":
    sys.exit(main())
