"""Do whole programs run on the processor, and are they right? As `cuffi run` runs them, without checks.

    python -m lab.judge.whole FOLDER [--only WORD] [--seconds 600]

lab/judge/programs.txt lists them: what each is, its arguments, and what shows that it is right. FOLDER has their
checkouts.
Seconds are of the processor. Prints a line for each: right, WRONG, or why it did not run.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from cuffi.judging.programs import NotBuilt, program, rewritten

from .references import REFERENCES
from .sets import Case, programs


def outcome(case: Case, seconds: float, folder: Path) -> str:
    files = [case.file, *case.more]
    try:
        built = program(rewritten(files, case.options), files, "plain", folder, case.options)
    except NotBuilt as error:
        return f"{error.kind}: {error.lines[0]}"
    limit = (int(seconds), int(seconds) + 1)
    done = subprocess.run(
        [built, *case.arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
    )
    said = done.stdout + done.stderr
    if done.returncode:
        return f"status {done.returncode}: {' / '.join(said.strip().splitlines()[-2:])}"
    if case.right in REFERENCES:
        return "right" if REFERENCES[case.right](folder, said) else f"WRONG by {case.right}"
    if case.right == "status":
        return "right"
    return "right" if re.search(case.right, said) else f"WRONG: {said[-300:]}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="lab.judge.whole", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="programs with this word in their path")
    parser.add_argument("--seconds", type=float, default=600, help="of the processor, for each (600)")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    for case in programs(given.folder.resolve()):
        if given.only not in str(case.file):
            continue
        with tempfile.TemporaryDirectory(prefix="cuffi-whole-") as folder:
            said = outcome(case, given.seconds, Path(folder))
        counts[said.split()[0].rstrip(":")] += 1
        print(f"{case.file.relative_to(given.folder.resolve())}: {said}", flush=True)
    print(dict(counts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
