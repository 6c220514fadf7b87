"""Lists of tokens: the positions of launches, and a text that a parser can read."""

import pytest

from tools.cuda import lexer as cuda_lexer
from tools.cuda.lexer import Lexed
from tools.cuda.tokens import launch_openings, mask


def test_masked_text_keeps_every_offset():
    text = 'int a; // c\n#define X \\\n  1\nchar b = \'"\'; /* "\n */ auto s = u8R"x(\n)" )x";'
    text += "CUDA_KERNEL_LOOP(i, n) {}"
    lexed = cuda_lexer.Lexed(text)
    masked = mask(lexed.tokens, 0, len(text))
    assert len(masked) == len(text)
    for word in ("int", "char", "auto", "n)"):
        assert masked.index(word) == text.index(word)
    assert masked.index("while") == text.index("CUDA_KERNEL_LOOP")


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
