"""What is read of a source's outline: includes, brackets that do not close, the function around a place."""

import pytest

from tools.cuda.lexer import Lexed
from tools.cuda.source import Source
from tools.cuda.tokens import launch_openings

TEXT = """#include "a.h"
#include <b.h>
#include
#include MACRO
  #  include < c/d.h >
namespace n {
int f(int x) { return x; }
struct S {
  S() : y(1) {}
  int g() const { return y; }
  int y;
};
}  // namespace n
"""


def test_includes():
    source = Source(TEXT, "x.cu")
    assert list(source.includes()) == ["a.h"] and list(source.includes(angles=True)) == [
        "a.h",
        "b.h",
        "c/d.h",
    ]


def test_function_around():
    """A function reaches from its brace to just before what follows it."""
    source = Source(TEXT, "x.cu")
    around = [source.function_around(at) for at in range(len(TEXT) + 1)]
    bodies = {}
    for at, function in enumerate(around[:-1]):
        if function:
            bodies.setdefault(function.name, []).append(TEXT[at])
    assert {name: "".join(body) for name, body in bodies.items()} == {
        "f": "{ return x; }",
        "S": "{}",
        "g": "{ return y; }",
    }
    assert around[-1] is None


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


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("k<<<1, 2>>>(x)", [1]),
        ("k<< <1>>>()", [1]),
        ("k<<<", [1]),
        ("<<<", [0]),
        ("a << b < c", []),
        ("operator<< <T>(x); k<<<1>>>()", [10]),
        ("", []),
    ],
)
def test_where_launches_open(text, at):
    """At the end of a #define's text, too."""
    assert launch_openings(Lexed(text).tokens) == at
