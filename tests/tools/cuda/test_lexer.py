"""Brackets that do not match."""

import pytest

from tools.cuda.source import Source


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("int f() { return (1; }", ["(1; }"]),
        ("int f() { return 1); }", [")"]),
        ("int f() { return [(1; }", ["(1; }", "[(1; }"]),
        ("int f() }", ["}"]),
        ("int f(] {}", ["]", "(] {}"]),
        ("int f() { g({1, 2}); }", []),
    ],
)
def test_imbalances(text, lost):
    found = Source(text, "x.cu").lexed.imbalances
    assert sorted(text[one.start : one.end] for one in found) == sorted(lost)
