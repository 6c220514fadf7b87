"""How long tests take: python3 test.py compares with tests/seconds.txt, and says in which folder the same tests grew.

A folder's time says nothing: with another optional package, with nvcc or after a new test other tests run. So a test's
time is compared by its name, and only if as many of its cases ran. What fixtures take is not: it is that of the test
that happens to come first.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

FILE = ROOT / "tests" / "seconds.txt"
# A folder's tests have grown by so much of their time, and by so much of the suite's: a few vary by more than a tenth.
OF_ITSELF, OF_ALL = 0.1, 0.01
# A test of fewer seconds is not in the file.
LEAST = 0.2


class Took(NamedTuple):
    """The seconds of a test's cases, and how many ran."""

    seconds: float
    cases: int


def folder_of(test: str) -> str:
    """Of tests/nets/net/test_x.py::test_y: nets/net."""
    parts = Path(test.partition("::")[0]).parts
    return "/".join(parts[1:3] if len(parts) > 3 else parts[1:-1]) or "."


def read(text: str) -> dict[str, float]:
    rows = (line.split() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {name: float(seconds) for name, seconds, *_ in rows}


def read_tests(text: str) -> dict[str, Took]:
    rows = (line.split() for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {test: Took(float(seconds), int(cases)) for test, seconds, cases in rows}


def grown(
    took: Mapping[str, float], before: Mapping[str, float], file=FILE, of_itself=OF_ITSELF
) -> list[str]:
    """A line for each name that takes a larger share of the whole. Shares do not depend on the machine."""
    total, total_before = sum(took.values()), sum(before.values())
    lines = []
    for name, seconds in sorted(took.items()):
        expected = before.get(name, 0) * total / total_before if total_before else seconds
        if seconds > (1 + of_itself) * expected and seconds - expected > OF_ALL * total:
            lines.append(f"{name} took {seconds:.0f} s, {expected:.0f} s by {file.relative_to(ROOT)}")
    return lines


def of_folders(tests: Mapping[str, Took], same: Mapping[str, Took]) -> dict[str, float]:
    """The seconds of each folder's tests, of those that `same` has with as many cases."""
    found: dict[str, float] = defaultdict(float)
    for test, took in tests.items():
        if test in same and same[test].cases == took.cases:
            found[folder_of(test)] += took.seconds
    return dict(found)


class Seconds:
    """A plugin of pytest. `--seconds` writes what the tests took to tests/seconds.txt."""

    def __init__(self, writes: bool):
        self.writes = writes
        self.calls: dict[str, list[float]] = defaultdict(list)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.calls[report.nodeid.partition("[")[0].partition("@")[0]].append(report.duration)

    def took(self) -> dict[str, Took]:
        return {test: Took(sum(seconds), len(seconds)) for test, seconds in self.calls.items()}

    def pytest_terminal_summary(self, terminalreporter):
        if self.writes:
            head, _, before = FILE.read_text().partition("\n\n")
            rows = read_tests(before) | self.took()  # a test that did not run keeps its line
            shown = [(t, row) for t, row in sorted(rows.items()) if row.seconds >= LEAST]
            lines = [f"{test} {row.seconds:.1f} {row.cases}\n" for test, row in shown]
            FILE.write_text(f"{head}\n\n{''.join(lines)}")
            return
        took, before = self.took(), read_tests(FILE.read_text())
        for line in grown(of_folders(took, before), of_folders(before, took)):
            terminalreporter.write_line(f"The same tests of {line}")
