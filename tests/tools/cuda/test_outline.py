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
