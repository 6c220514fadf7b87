"""Run the tests: `python3 test.py [pytest options]`, for instance `python3 test.py -x -k sigmoid-vector`.

`python3 test.py --all` also runs the long tests (tests/long.txt). -k, -m and a test's own name run them, too.

`python3 test.py nets` runs the tests of a wing, or of a folder of tests/. `toolkit` stands for the toolkit's folders.

It installs missing packages (requirements/test.txt). Without a name the tests run with one worker per core; GPU tests
run on one worker. With `-n 0`, `--pdb`, `-s`, or a named test or file, everything runs in this process.

LAYERS_DIR=/my/layers tests only the layers of that folder. LAYERS_DIR=/my/layers:/theirs tests one folder after the
other.
"""

import difflib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from tools.make import requirements
from tools.refused import Refused

ROOT = Path(__file__).resolve().parent
MOST_WORKERS = 16  # each worker imports torch, which takes memory
# Options that need one process, or that already give the number of workers.
ALONE = ("-n", "--numprocesses", "--dist", "--pdb", "--trace", "-s", "--capture=no", "--collect-only", "--co")
ASKED_FOR = re.compile(r"(^| )(-n|--numprocesses)[ =]?(?!0\b)\w")  # workers, by pytest's own option

# What the toolkit's tests are: those of what it has, which is no folder of the package.
TOOLKIT = ("include", "judging", "layers", "loading", "proving", "runtime", "src", "tools")
# Options whose value is the next word.
VALUED = (
    "-k",
    "-m",
    "-n",
    "-p",
    "-o",
    "-c",
    "-W",
    "-r",
    "--numprocesses",
    "--dist",
    "--tx",
    "--maxfail",
    "--durations",
)


def parts(options: list[str]) -> list[str]:
    """pytest's options, with the folders that a wing's name stands for. layers is tests/layers, not the layers."""
    found = []
    for before, option in zip(["", *options], options, strict=False):
        names = TOOLKIT if option == "toolkit" else (option,)
        is_part = before not in VALUED and all(
            n.isidentifier() and (ROOT / "tests" / n).is_dir() for n in names
        )
        found += [f"tests/{name}" for name in names] if is_part else [option]
    return found


def workers(options: list[str]) -> list[str]:
    """pytest's options for several workers; none for a named part of the suite."""
    named = any(Path(option.partition("::")[0]).exists() for option in options)
    alone = any(option.startswith(ALONE) for option in options) or "no:xdist" in " ".join(options)
    inside = "PYTEST_XDIST_WORKER" in os.environ
    if ASKED_FOR.search(" ".join(options)):
        share_the_cores()
    if named or alone or inside or importlib.util.find_spec("xdist") is None:
        return []
    count = min(len(os.sched_getaffinity(0)), MOST_WORKERS)
    if count < 2:
        return []
    share_the_cores()
    # For tests that need torch in a process of their own, and for the workers, too. It imports torch while we do.
    sys.path.append(str(ROOT / "tests"))
    from support import python_with_torch

    python_with_torch.share()
    import torch

    started = f"{count}*popen//python={python_with_torch.script()}"
    return ["--tx", started, "--dist", "loadgroup" if torch.cuda.is_available() else "worksteal"]


def share_the_cores() -> None:
    """OpenMP's waiting threads would spin, and take the cores from the other workers."""
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def no_such_test(options: list[str]) -> str:
    """What is said of the first test's file that is not there, with a name that is near; "" if all are there."""
    for before, option in zip(["", *options], options, strict=False):
        file = option.partition("::")[0]
        if option.startswith("-") or before in VALUED or not file.endswith(".py") or Path(file).exists():
            continue
        if (ROOT / file).exists():
            continue
        found = sorted((ROOT / "tests").rglob("test_*.py"), key=lambda path: -len(path.parts))
        known = {path.name: path.relative_to(ROOT) for path in found}  # of one name, the outermost
        near = difflib.get_close_matches(Path(file).name, known, n=1)
        return f"test.py: no file {file}" + (f"; did you mean {known[near[0]]}?" if near else f" in {ROOT}")
    return ""


def keep_bytecode() -> None:
    """CI images turn bytecode files off. Then a thousand processes would compile the tools again, and each worker would
    rewrite the tests' asserts."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def main() -> int:
    keep_bytecode()
    wrong = no_such_test(sys.argv[1:])
    if wrong:
        print(wrong, file=sys.stderr)
        return 2
    folders = [f for f in os.environ.get("LAYERS_DIR", "").split(":") if f] or [str(ROOT / "layers")]
    if len(folders) > 1:
        command = [sys.executable, __file__, *sys.argv[1:]]
        return max([subprocess.call(command, env=os.environ | {"LAYERS_DIR": folder}) for folder in folders])
    folder = Path(folders[0]).resolve()
    if not any(folder.glob("*/_*.abi3.so")):
        print(f"Nothing is built in {folder}: type `make` first, in {ROOT}.", file=sys.stderr)
        return 1
    try:
        (ROOT / "build").mkdir(exist_ok=True)
        # A Python that has pytest alone is not that in which make has built.
        requirements.need(["build", "run", "test"], str(ROOT / "build" / "packages.test"))
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    import pytest

    os.environ["LAYERS_DIR"] = str(folder)
    # `make -C toolkit test` sets it for the tools, whose messages the tests compare.
    os.environ.pop("CALLED_IN", None)
    os.chdir(ROOT)  # pyproject.toml lists what to run
    return pytest.main([*workers(sys.argv[1:]), *parts(sys.argv[1:])])


if __name__ == "__main__":
    sys.exit(main())
