"""The suite's long tests: those of tests/long.txt, which only `python test.py --all` runs, or who names a test."""

import functools
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "long.txt"


@functools.cache
def listed() -> frozenset[str]:
    """Each a test of pytest's, with its parameters or for all of them."""
    lines = FILE.read_text().splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def is_long(test: str) -> bool:
    """Whether the file lists this test, by pytest's name of it."""
    test = test.rpartition("@")[0] if test.endswith("@gpu") else test  # as xdist names the tests of a group
    return test in listed() or test.partition("[")[0] in listed()


def asks_for_all(options) -> bool:
    """Whether pytest's options want the long tests, too: by --all, or because they choose tests by their names."""
    named = any("::" in name for name in options.file_or_dir)
    return bool(options.all or options.keyword or options.markexpr or named)
