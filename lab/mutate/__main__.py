"""Would the tests notice a mistake? Put mistakes into a copy of the tree, one at a time, build it, and run tests.

    python -m lab.mutate --seed 1 --number 20 --only cuffi/runtime
    python -m lab.mutate --seed 1 --number 100                         in the whole tree
    python -m lab.mutate --seed 1 --number 100 --judged a.log b.log    continue a run that was stopped

The tree must be built: the objects are copied, so a mistake in C++ needs only one new object. For each mistake, the
tool prints whether it was killed or survived, its place, and the line before and after. A survivor needs a new test,
unless it changes no result. Mistakes that do not compile do not count. Code that only nvcc reads, and files of layers
that the host backend does not use, get no mistakes. CI does not run this: a mistake takes from seconds to minutes.
Returns 1 if the tests notice fewer than --wanted percent.
"""

from __future__ import annotations

import argparse
import collections
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .operators import Mutation, sample

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = (".py", ".cpp", ".cu", ".cuh", ".h", ".hpp")
KILLED, NO_END = "killed", "killed: no end"
BY_LONG, BY_OTHERS = "killed: by --all", "killed: by the rest"
NOT_COMPILED = "does not compile"
NO_TESTS = 5  # pytest's status if it finds no tests
TREES = ("cuffi/", "layers/", "src/", "include/", "tools/", "lab/mutate/", "lab/wheel/", "build_ffi.py")
# The layers, and the parts of the core that no layer here is linked with: the stock layers.
BUILDS = (
    ["make", "NVCC=", "-k", f"PYTHON={sys.executable}", "libraries"],
    [sys.executable, "-m", "tools.make.build", "core", "NVCC="],
)
# Parts of every layer, which the layers' own tests test, too.
OF_EVERY_LAYER = ("cuffi/runtime/", "cuffi/caffe_layers/", "src/", "include/")


def sources(only: list[str]) -> dict[str, str]:
    """{path: text} of the tracked sources without tests and data (cases)."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    built = built_for_the_host()

    def is_chosen(path: str) -> bool:
        is_source = path.startswith(TREES) and path.endswith(SUFFIXES) and not path.endswith("cases.py")
        is_wanted = not only or path.startswith(tuple(only))
        # git also lists removed files before the commit.
        if not is_source or not is_wanted or not (ROOT / path).exists():
            return False
        of_a_layer = path.startswith("layers/") and not path.endswith(".py")
        return not of_a_layer or (Path(path).parts[1], Path(path).name) in built

    return {path: (ROOT / path).read_text() for path in listed.splitlines() if is_chosen(path)}


def built_for_the_host() -> set[tuple[str, str]]:
    """(layer, file name) of all files that the host's objects depend on, from the compiler's dependency files."""
    read = set()
    for depfile in (ROOT / "build").glob("*/host/**/*.o.d"):
        layer = depfile.relative_to(ROOT / "build").parts[0]
        names = {Path(word.rstrip(":")).name for word in depfile.read_text().split()}
        # A .cu is compiled as the generated .cu.cpp.
        read |= {(layer, name.removesuffix(".cpp") if name.endswith(".cu.cpp") else name) for name in names}
    return read


def seen_by(path: str) -> list[str]:
    """pytest's arguments for a file: the tests of its name, and those of its folder or the nearest one above.

    For a layer's file: the tests that have the first word of its name in theirs.
    """
    if layer := re.match(r"(?:cuffi/caffe_layers/)?layers/([a-z]+)\w*/", path):
        return ["tests/layers", "tests/caffe_layers/call/test_own_layers.py", "-k", layer[1]]
    *folders, name = (part.strip("_") for part in Path(path).with_suffix("").parts)
    own = sorted(str(test.relative_to(ROOT)) for test in (ROOT / "tests").glob(f"**/test_{name}.py"))
    folders = folders[1:] if folders[:1] == ["cuffi"] else folders
    while folders and not (ROOT / "tests" / "/".join(folders)).is_dir():
        folders.pop()
    above = [f"tests/{'/'.join(folders)}"] if folders else []
    more = (
        ["tests/runtime", "tests/layers", "tests/caffe_layers/call"]
        if path.startswith(OF_EVERY_LAYER)
        else []
    )
    return list(dict.fromkeys([*own, *above, *more])) or ["tests"]


class Copy:
    """A copy of the built tree. Mistakes are put into it and removed."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self.folder, self.log = folder / "tree", folder / "log"
        self.environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"} | environment
        ignored = shutil.ignore_patterns(".git", "__pycache__", ".pytest_cache", "venv")
        shutil.copytree(ROOT, self.folder, ignore=ignored, symlinks=True)

    def run(self, command: list[str], limit: float) -> int:
        """Run a command. Returns its status, or 124 if it takes more than `limit` seconds."""
        with open(self.log, "w") as log:
            process = subprocess.Popen(
                command, start_new_session=True, cwd=self.folder, env=self.environment, stdout=log, stderr=log
            )
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return 124

    def first_to_fail(self) -> str:
        """The first failed test in pytest's output, or a text without a name if the process died."""
        match = re.search(r"^(?:FAILED|ERROR) (\S+)", self.log.read_text(errors="replace"), re.M)
        return match[1] if match else "no test is named"

    def noticed(self, mutation: Mutation, source: str, limit: float, all_tests: bool) -> str:
        """The outcome of a mistake: KILLED by a test, NO_END, NOT_COMPILED, BY_LONG (only by a test of tests/long.txt),
        BY_OTHERS, or '' if it survives."""
        file = self.folder / mutation.path
        file.write_text(mutation.apply(source))
        try:
            if mutation.path.endswith(".py"):
                if self.run([sys.executable, "-m", "py_compile", mutation.path], 60):
                    return NOT_COMPILED
            elif any(self.run(build, limit) for build in BUILDS):
                return NOT_COMPILED
            tests = [sys.executable, "test.py", "-q", "-x", "-p", "no:cacheprovider"]
            runs = {KILLED: seen_by(mutation.path), BY_LONG: ["--all", *seen_by(mutation.path)]}
            for outcome, words in (runs | ({BY_OTHERS: ["--all"]} if all_tests else {})).items():
                if (status := self.run([*tests, *words], limit)) not in (0, NO_TESTS):
                    return NO_END if status == 124 else outcome
            return ""
        finally:
            file.write_text(source)
            os.utime(file)  # so that make compiles the objects with the mistake again


def place_of(mutation: Mutation, source: str) -> str:
    return f"{mutation.path}:{mutation.line(source)}: {mutation.kind}"


def judged(logs: list[str]) -> dict[str, str]:
    """{place: outcome} from the output of earlier runs. If several have a place, the last one counts."""
    printed = "".join(Path(log).read_text() for log in logs)
    found = re.findall(r"^(\S.{19}) (\S+:\d+: .+)$", printed, re.M)
    return {place: outcome.rstrip() for outcome, place in found}


def options_given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=[], help="paths, or beginnings of paths")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree to work in at once")
    parser.add_argument("--all", action="store_true", help="run the whole suite on each survivor")
    parser.add_argument("--limit", type=float, default=1800, help="seconds for the build, and for the tests")
    parser.add_argument("--wanted", type=float, default=90, help="percent that must be noticed")
    parser.add_argument("--list", action="store_true", help="print what would be done, and do nothing")
    parser.add_argument(
        "--judged", nargs="*", default=[], help="outputs of earlier runs with this seed, whose verdicts count"
    )
    return parser.parse_args()


def main() -> int:
    options = options_given()
    texts = sources(options.only)
    drawn = {place_of(m, texts[m.path]): m for m in sample(texts, options.number, options.seed)}
    known = {place: outcome for place, outcome in judged(options.judged).items() if place in drawn}
    chosen = [mutation for place, mutation in drawn.items() if place not in known]
    outcomes = collections.Counter(known.values())

    def report(mutation: Mutation, outcome: str, seconds: float, test: str = "") -> None:
        outcomes[outcome] += 1
        source = texts[mutation.path]
        duration = f"({seconds:.0f} s{test and ', ' + test})"
        shown = f"{'':20} {mutation.shown(source)}   {duration}"
        print(f"{outcome:20} {place_of(mutation, source)}\n{shown}", flush=True)

    if options.list:
        for mutation in chosen:
            report(mutation, "", 0)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        copies = queue.SimpleQueue()
        # OpenMP's threads spin while they wait. They would take the cores from the other copies.
        environment = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"} if options.jobs > 1 else {}
        for i in range(options.jobs):
            copies.put(Copy(Path(folder) / str(i), environment))

        def judge(mutation: Mutation) -> None:
            copy, start = copies.get(), time.monotonic()
            by = copy.noticed(mutation, texts[mutation.path], options.limit, options.all)
            test = copy.first_to_fail() if by in (KILLED, BY_LONG, BY_OTHERS) else ""
            report(mutation, by or "SURVIVED", time.monotonic() - start, test)
            copies.put(copy)

        with ThreadPoolExecutor(options.jobs) as pool:
            list(pool.map(judge, chosen))
    killed = sum(outcomes[name] for name in (KILLED, NO_END, BY_LONG, BY_OTHERS))
    count = killed + outcomes["SURVIVED"]
    share = 100 * killed / max(count, 1)
    print(
        f"{killed} of {count} noticed ({share:.0f}%), {outcomes[NOT_COMPILED]} more do not compile; seed {options.seed}"
    )
    return share < options.wanted


if __name__ == "__main__":
    sys.exit(main())
