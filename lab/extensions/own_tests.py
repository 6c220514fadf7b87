"""Run the test scripts that public extensions have of their own, unedited, with the processor as the GPU.

    python -m lab.extensions.own_tests /fetched [--seconds 300] [WORD ...]   checkouts in /fetched/owner+name

own_tests.txt lists them: the repository, the folder of its setup.py (or the path of another script), the folder in
which the script runs, and the script, or `pytest` and its arguments. First `python -m cuffi.ext setup.py build_ext
--inplace`, then `python -m cuffi.ext SCRIPT`. Prints a row for each: whether it built, its exit status, its last line.
The whole output is in /fetched/own_tests/. WORD: only lines with it.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

LIST = Path(__file__).with_suffix(".txt")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seconds", type=int, default=300, help="for a build, and for a script")
    asked = parser.parse_intermixed_args()
    logs = asked.folder / "own_tests"
    logs.mkdir(exist_ok=True)
    ended, lines = 0, [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    lines = [line for line in lines if all(word in line for word in asked.words)]
    for number, line in enumerate(lines):
        repository, setup, place, script = (part.strip() for part in line.split("|"))
        root, log = asked.folder / repository, logs / f"{repository}.{number}.log"
        words = re.sub("^pytest ", "-m pytest -q -x ", script).split()
        start = time.monotonic()
        with log.open("w") as out:
            status = 0
            if setup != "-":
                builder = Path(setup) if setup.endswith(".py") else Path(setup, "setup.py")
                setup = str(builder.parent)
                status = run([builder.name, "build_ext", "--inplace"], root / setup, asked.seconds, out)
            built = "built" if not status else "no build"
            if not status:
                status = run(
                    words, root / place, asked.seconds, out, [root / setup, root / place] * (setup != "-")
                )
        said = [text for text in log.read_text(errors="replace").splitlines() if text.strip()]
        ended += status == 0
        seconds = time.monotonic() - start
        print(
            f"{repository:44} {script:40.40} {built} {status:4} {seconds:4.0f} s  {said[-1][:90] if said else ''}",
            flush=True,
        )
    print(f"{ended} of {len(lines)} end with status 0")
    return 0


def run(words: list[str], place: Path, seconds: int, out, path=()) -> int:
    paths = os.pathsep.join([*map(str, path), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "cuffi.ext", *words]
    try:
        return subprocess.run(
            command, cwd=place, stdout=out, stderr=subprocess.STDOUT, timeout=seconds,
            env=os.environ | {"PYTHONPATH": paths, "FORCE_CUDA": "1"},
        ).returncode  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124


if __name__ == "__main__":
    sys.exit(main())
