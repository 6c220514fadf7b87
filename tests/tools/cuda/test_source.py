"""A source's outline: includes, brackets that do not match, the function around a place."""

from support.rewriting import TEXT

from tools.cuda.source import Source


def test_includes():
    source = Source(TEXT, "x.cu")
    assert list(source.includes()) == ["a.h"] and list(source.includes(angles=True)) == [
        "a.h",
        "b.h",
        "c/d.h",
    ]
