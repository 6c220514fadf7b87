"""Judge sets of programs whose labels others gave, and count (docs/evidence/judge.md has the numbers).

    python -m lab.judge FOLDER [--seconds 10] [--only WORD]

FOLDER is a checkout of one set, fetched by you:

    ScoR     github.com/csl-iisc/ScoR: microbenchmarks/src, files that begin with `race` are racy
    ESBMC    github.com/esbmc/esbmc: regression/cuda/benchmarks, test.desc says FAILED or SUCCESSFUL
    others   any folder: a name with `race`, `bug` or `wrong` in it is wrong

Prints a line for each program, and in the end: found of wrong, false of clean, no verdict.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cuffi.judge import judge
from cuffi.judging.limits import Limits


def labelled(folder: Path) -> Iterator[tuple[Path, bool]]:
    """The programs of a set, and whether each is wrong."""
    for path in sorted([*folder.rglob("*.cu"), *folder.rglob("main.cpp")]):
        desc = path.parent / "test.desc"
        if desc.exists():
            yield path, "FAILED" in desc.read_text(errors="replace")
        elif path.suffix == ".cu":
            clean = path.name.startswith("norace")
            yield path, not clean and bool(re.search(r"race|bug|wrong", path.name, re.I))


def main() -> int:
    parser = argparse.ArgumentParser(prog="lab.judge", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path, help="a file for the answers, one a line")
    given = parser.parse_args()
    counts = {(wrong, said): 0 for wrong in (True, False) for said in (0, 1, 3)}
    for path, wrong in labelled(given.folder):
        if given.only not in str(path):
            continue
        said = judge([path], limits=Limits(given.seconds))
        counts[wrong, said["status"]] += 1
        right = {0: not wrong, 1: wrong, 3: None}[said["status"]]
        word = {True: "right", False: "WRONG", None: "none "}[right]
        first = next(iter(said["findings"]), {"text": ""})["text"].splitlines()[:1]
        print(word, said["verdict"].ljust(11), said["seconds"], path, *first, flush=True)
        if given.json:
            with open(given.json, "a") as file:
                file.write(json.dumps(said) + "\n")
    judged = {w: counts[w, 0] + counts[w, 1] for w in (True, False)}
    print(
        f"found {counts[True, 1]} of {judged[True]} wrong, false {counts[False, 1]} of {judged[False]} clean"
    )
    print(f"no verdict: {counts[True, 3]} wrong, {counts[False, 3]} clean")
    return 0


if __name__ == "__main__":
    sys.exit(main())
