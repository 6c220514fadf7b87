"""What a declaration says of its variables, and which one a name means."""

import pytest

from tools.cuda.body import Body, walk
from tools.cuda.source import Source
from tools.cuda.variables import Variable, declared, meant


def variables_of(text: str) -> list[Variable]:
    """Those of the first declaration of a function with this body."""
    source = Source(f"void f() {{ {text} }}", "x.cu")
    body = Body(source, source.functions[0])
    statement = next(node for node in walk(body.root) if node.type == "declaration")
    words = body.of(statement.child_by_field_name("type")).split()
    end = body.root.end_byte
    return [declared(body, statement, d, words, end) for d in statement.children_by_field_name("declarator")]


@pytest.mark.parametrize(
    ("text", "stars"),
    [
        ("int a = 1;", [0]),
        ("int a, *b, **c = p;", [0, 1, 2]),
        ("int a[4];", [None]),
        ("int& a = b;", [None]),
        ("int a{1};", [None]),
        ("int *a[2] = {b, c};", [None]),
    ],
)
def test_the_stars_of_a_pointer(text, stars):
    assert [variable.stars for variable in variables_of(text)] == stars


def test_a_name_means_the_last_variable_that_is_known():
    outer, inner, later = (
        Variable("i", ["int"], 0, 100),
        Variable("i", ["int"], 20, 40),
        Variable("i", ["int"], 60, 99),
    )
    found = [meant([outer, inner, later], "i", at) for at in (10, 20, 39, 40, 70, 100)]
    assert found == [outer, inner, inner, outer, later, None]
    assert meant([outer], "j", 10) is None
