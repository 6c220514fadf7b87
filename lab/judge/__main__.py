"""Judge sets of programs whose labels others gave, and count (lab/evidence/judge.md has the numbers).

    python -m lab.judge scor=/sets/ScoR esbmc=/sets/esbmc indigo=/sets/made [--seconds 10] [--only WORD]

Each set is a folder that you fetched: scor, esbmc, indigo, gpuverify (lab/judge/sets.py says from where), `programs`
(its programs.txt lists files and arguments) and `others` (names with race, bug or wrong). A folder that is not there is
left out, and said. Prints a line for each program that is not as its label says, and at the end of each set: found of
wrong, false of clean, no verdict.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

from cuffi.judge import judge
from cuffi.judging.limits import Limits

from .sets import SETS, Case


def said_of(case: Case, seconds: float) -> dict:
    """The judge's answer."""
    with tempfile.TemporaryDirectory() as place:
        file = case.file
        if case.text:
            file = Path(place, case.file.name)
            file.write_text(case.text)
        said = judge([file, *case.more], case.arguments, Limits(seconds), case.options)
    if "JUDGE rejected" in said.get("output", "") and not said["status"]:
        said |= {"status": 3, "verdict": "incomplete"}
        said["findings"] = [{"text": "no invented argument fulfils the file's preconditions"}]
    return said


def word(wrong: bool | None, status: int) -> str:
    if wrong is None:
        return "no label"
    if status == 3:
        return "no verdict"
    return {(True, 1): "found", (True, 0): "missed", (False, 1): "false", (False, 0): "clean"}[wrong, status]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="lab.judge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="+", metavar="SET=FOLDER", help=", ".join(SETS))
    parser.add_argument("--seconds", type=float, default=10, help="of each run (10)")
    parser.add_argument("--only", default="", help="programs with this word in their path")
    parser.add_argument("--all", action="store_true", help="a line for each program")
    parser.add_argument("--json", type=Path, help="a file for the answers, one a line")
    given = parser.parse_args()
    for one in given.sets:
        name, _, folder = one.partition("=")
        if name not in SETS or not Path(folder).is_dir():
            print(f"{name}: {'no folder ' + folder if name in SETS else 'no such set'}, left out")
            continue
        counts: Counter[str] = Counter()
        for case in SETS[name](Path(folder).resolve()):
            if given.only not in str(case.file):
                continue
            said = said_of(case, given.seconds)
            told = word(case.wrong, said["status"])
            counts[told] += 1
            if given.all or told in ("missed", "false", "no verdict"):
                first = next(iter(said["findings"]), {"text": ""})["text"].splitlines()[:1]
                print(f"{told:10} {said['verdict']:11} {said['seconds']:7} {case.file} {case.mark}", *first)
                sys.stdout.flush()
            if given.json:
                row = {"set": name, "label": case.wrong, "told": told, "mark": case.mark}
                with open(given.json, "a") as file:
                    file.write(json.dumps(row | {"case": str(case.file)} | said) + "\n")
        wrong, clean = counts["found"] + counts["missed"], counts["false"] + counts["clean"]
        print(
            f"{name}: found {counts['found']} of {wrong} wrong, false {counts['false']} of {clean} clean, "
            f"no verdict {counts['no verdict']}, no label {counts['no label']}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
