"""The suite's long tests: those of tests/long.txt, which only `python3 test.py --all` runs, or who names a test."""

import functools
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "long.txt"


@functools.cache
def listed() -> dict[str, int]:
    """{a test without its parameters: how many of its cases stay}."""
    lines = (line.partition(" ") for line in FILE.read_text().splitlines() if line and line[0] != "#")
    return {name: int(stay or 0) for name, _, stay in lines}


def long_of(tests: Iterable[str]) -> set[str]:
    """Those of pytest's names that the file lists. Of the cases of a test those that stay are evenly spread."""
    cases = defaultdict(list)
    for test in tests:
        name = (
            test.rpartition("@")[0] if test.endswith("@gpu") else test
        )  # as xdist names the tests of a group
        if (name := name.partition("[")[0]) in listed():
            cases[name].append(test)
    found = set()
    for name, own in cases.items():
        stay = min(listed()[name], len(own))
        found |= {*own} - {own[i * len(own) // stay] for i in range(stay)}
    return found


def asks_for_all(options) -> bool:
    """Whether pytest's options want the long tests, too: by --all, or because they choose tests by their names."""
    named = any("::" in name for name in options.file_or_dir)
    return bool(options.all or options.keyword or options.markexpr or named)
