"""The functions of a source."""

from support.rewriting import TEXT

from tools.cuda.source import Source


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


def test_classes_around_a_token():
    outline = Source("struct A { struct B { int b; }; int a; }; int free; struct C { int c; };", "x.cu")
    tokens = [token.text for token in outline.lexed.tokens]
    words = {
        name: [tokens[at - 1] for at in outline.classes_around(tokens.index(name))]
        for name in ("b", "a", "free", "c")
    }
    assert words == {"b": ["B", "A"], "a": ["A"], "free": [], "c": ["C"]}
    assert outline.classes_after["B"] == [tokens.index("B") + 1] and "free" not in outline.classes_after
