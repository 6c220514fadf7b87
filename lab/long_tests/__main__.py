"""Choose the tests that only `python3 test.py --all` runs, and write tests/long.txt.

    pip install coverage
    python -m lab.long_tests record folder           what each test runs, in some 20 minutes
    python3 test.py -q --durations=0 --durations-min=0.02 --all > all.log
    python3 test.py -q --durations=0 --durations-min=0.02 > part.log
    python -m lab.long_tests choose folder all.log part.log

Tests of at most --short seconds stay, the quickest of each file, and those of KEPT. Then comes, again and again, the
test that runs most lines that none before it runs, for its time, until all take --seconds. A test takes the longest
time of all logs, because a fixture's is that of the first test that asks for it. Under record a few tests fail that
read all that a program prints.
"""

import argparse
import os
import re
import sqlite3
import subprocess
import sys
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "tests" / "long.txt"
# These read files that are no Python, or try C++ alone: their lines do not say what they see.
KEPT = (
    "tests/test_tree.py::*",
    "tests/test_walls.py::*",
    "tests/test_sources.py::*",
    "tests/test_long.py::*",
    "tests/caffe_layers/core/test_core.py::*",
    "tests/include/test_thrust.py::test_each_iterator_algorithm_and_function",
    "tests/docs/test_names.py::*",
    "tests/include/test_fp8.py::test_whole_numbers",
    "tests/src/host/test_races.py::*",
    "tests/runtime/test_failures.py::test_an_endless_kernel_ends_at_ctrl_c*",
)
# What begins each of these takes seconds, and tests that stay do the like: builds of extensions, races by each door.
LONG = (
    "tests/caffe_layers/core/test_legacy.py::*",
    "tests/caffe_layers/make/test_proto_cpp.py::test_accessors_agree_with_protobuf*",
    "tests/examples/test_caffe_net.py::*",
    "tests/judging/test_plugin.py::*",
    "tests/judging/test_structures.py::*",
    "tests/lab/launches/*",
    "tests/lab/wheel/test_scripts.py::*",
    "tests/loading/test_races.py::test_a_folder",
    "tests/nets/forks/test_rows.py::test_a_wrong_value_is_refused*-compiled]",
    "tests/nets/test_threads.py::*",
    "tests/old_torch/ffi/test_build_extension.py::test_a_name_that_th_does_not_have*",
    "tests/old_torch/ffi/test_races.py::*",
    "tests/old_torch/test_arrays.py::*",
    "tests/old_torch/test_aten_build.py::*",
    "tests/old_torch/test_bad_input.py::test_a_mistake_is_an_error_and_the_next_launch_is_right*",
    "tests/old_torch/test_headers.py::*",
    "tests/old_torch/test_races.py::*",
    "tests/test_setup.py::*",
    "tests/test_setup.py::test_the_kernels_need_the_nets_of_the_same_version",
    "tests/test_setup.py::test_two_distributions_never_write_one_file",
    "tests/test_walls.py::test_nets_run_without_the_toolkit",
)
# A smaller share of a test's cases is no reason to name it.
FEW = 0.25
DURATION = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +(\S.*)$", re.M)
# The package and the tools, where they lie or are installed; not what a cache has of somebody's kernels.
OURS = re.compile(
    r".*?/(?:cuffi/_toolkit/)?((?:cuffi|tools|layers)/(?!.*-[0-9a-f]{32}/).+\.py|build_ffi\.py)$"
)


def record(folder: Path) -> int:
    """Run the whole suite, each Python with lines_of_tests."""
    folder.mkdir(parents=True, exist_ok=True)
    start = Path(sysconfig.get_path("purelib")) / "lines_of_tests.pth"
    word = "LINES_OF_TESTS"
    here = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import {word.lower()}"
    # If this run is killed the file stays, and does nothing.
    start.write_text(f"import os; {word!r} in os.environ and exec({here!r})\n")
    command = [sys.executable, "test.py", "--all", "-q", "-p", word.lower()]
    try:
        return subprocess.call(command, cwd=ROOT, env=os.environ | {word: str(folder.resolve())})
    finally:
        start.unlink()


def seconds_of(log: str) -> dict[str, float]:
    """{test: seconds} of pytest's table of durations: call, setup and teardown."""
    found: dict[str, float] = defaultdict(float)
    for seconds, test in DURATION.findall(log):
        found[test.strip()] += float(seconds)
    return dict(found)


def lines_of(folder: Path) -> dict[str, int]:
    """{test: the lines that it runs, a bit for each line of all files}. "" has what runs before any test."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for file in folder.glob("lines.*"):
        if file.suffix == ".test":
            continue
        owner = Path(f"{file}.test")
        process = owner.read_text() if owner.exists() else ""
        with sqlite3.connect(file) as base, suppress(sqlite3.DatabaseError):  # of a process that was killed
            paths = dict(base.execute("select id, path from file"))
            contexts = dict(base.execute("select id, context from context"))
            for path, context, bits in base.execute("select file_id, context_id, numbits from line_bits"):
                if ours := OURS.match(paths[path]):
                    found[contexts[context] or process][ours[1]] |= int.from_bytes(bits, "little")
    offsets, end = {}, 0
    for name in sorted({name for files in found.values() for name in files}):
        offsets[name] = end
        end += max(files.get(name, 0) for files in found.values()).bit_length()
    return {test: sum(bits << offsets[name] for name, bits in files.items()) for test, files in found.items()}


def by_file(tests: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for test in sorted(tests):
        found[test.partition("::")[0]].append(test)
    return dict(found)


def chosen(
    seconds: Mapping[str, float],
    lines: Mapping[str, int],
    short: float,
    total: float,
    kept: Iterable[str] = KEPT,
    long: Iterable[str] = LONG,
) -> list[str]:
    """The tests that stay out: all but the short, those of `kept`, and those that add most lines for their time."""

    def takes(test: str) -> float:
        return seconds.get(test, 0)

    # A test whose fixture another one has paid for, and that runs no lines of ours, is in no log. `long` names it.
    tests = {*seconds, *lines, *(name for name in long if "*" not in name)} - {""}
    stays, goes = (
        {t for t in tests if any(fnmatchcase(t, p) for p in patterns)} for patterns in (kept, long)
    )
    stays |= {min(of_a_file, key=takes) for of_a_file in by_file(tests - goes).values()}
    out = {t for t in tests - stays if takes(t) > short} | goes
    run = lines.get("", 0)
    for test in tests - out:
        run |= lines.get(test, 0)
    taken = sum(map(takes, tests - out))
    left = out - goes
    while left:
        gain = {t: (lines.get(t, 0) & ~run).bit_count() / (takes(t) + 0.02) for t in left}
        best = max(sorted(left), key=gain.__getitem__)
        if not gain[best] or taken + takes(best) > total:
            break
        taken += takes(best)
        run |= lines.get(best, 0)
        left.discard(best)
        out.discard(best)
    every = 0
    for bits in lines.values():
        every |= bits
    share = 100 * run.bit_count() / max(every.bit_count(), 1)
    print(f"{len(tests - out)} of {len(tests)} tests stay: {taken:.0f} s, {share:.1f}% of the lines")
    return sorted(out)


def as_text(out: Iterable[str], tests: Iterable[str]) -> str:
    """A line for each test without its parameters, with the number of its cases that stay, if some do.

    A test of which few cases are long stays: its name with a number would leave out other cases.
    """
    cases, gone = (Counter(test.partition("[")[0] for test in some) for some in ({*tests, *out}, {*out}))
    stay = {name: cases[name] - count for name, count in gone.items() if count >= FEW * cases[name]}
    return "".join(f"{name} {number}\n" if number else f"{name}\n" for name, number in sorted(stay.items()))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["record", "choose"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("logs", type=Path, nargs="*")
    parser.add_argument("--short", type=float, default=0.12)
    parser.add_argument(
        "--seconds", type=float, default=160, help="of all tests that stay, before they share cores"
    )
    parser.add_argument(
        "--log", type=Path, nargs="*", default=[], help="of runs of the part, whose times count, too"
    )
    options = parser.parse_args()
    if options.action == "record":
        return record(options.folder)
    lines = lines_of(options.folder)
    seconds: dict[str, float] = {}
    for log in options.logs:
        for test, took in seconds_of(log.read_text()).items():
            seconds[test] = max(seconds.get(test, 0), took)
    head = LIST.read_text().partition("\n\n")[0]
    out = chosen(seconds, lines, options.short, options.seconds)
    LIST.write_text(f"{head}\n\n{as_text(out, {*seconds, *lines} - {''})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
