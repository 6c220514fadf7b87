"""Functions on lists of tokens."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from operator import attrgetter

from .brackets import match_brackets as match_brackets
from .lexer import Directive, Token

# `CUDA_KERNEL_LOOP(i, n) body` is not a C++ statement. `while           (i, n) body` is one of the same length.
LOOP = re.compile(r"CUDA_\w*KERNEL_LOOP\w*\Z")


def mask(tokens: list[Token], start: int, end: int) -> str:
    """A text that a parser can read, with the tokens at their offsets from `start`, and with blanks between them."""
    pieces, at = [], start
    for token in tokens:
        text = token.text
        if token.kind == "string":
            text = '"' + "_" * (len(text) - 2) + '"'
        elif token.kind == "char":
            text = "0".ljust(len(text))
        elif token.kind == "name" and LOOP.match(text):
            text = "while".ljust(len(text))
        elif text in ("#", "##"):  # in a macro's body
            text = "_" * len(text) if text == "##" else " "
        elif not text.isascii():
            text = "_" * len(text)
        pieces += (" " * (token.start - at), text)
        at = token.start + len(text)
    pieces.append(" " * (end - at))
    return "".join(pieces)


def tidy(text: str) -> str:
    return " ".join(text.split())


START = attrgetter("start")


def position_from(tokens: list[Token], offset: int) -> int:
    """The index of the first token at or after an offset."""
    return bisect_left(tokens, offset, key=START)


def launch_openings(tokens: list[Token]) -> list[int]:
    """The indices of all `<<<`, with blanks or without. Other C++ has `<<` before `<` only in operator<< <T>."""
    return [
        i
        for i, token in enumerate(tokens[:-1])
        if token.text == "<<" and tokens[i + 1].text == "<" and not (i and tokens[i - 1].text == "operator")
    ]


def macro_body(macro: Directive) -> list[Token]:
    """The tokens of a #define after its name and parameters."""
    tokens = macro.tokens
    if len(tokens) > 1 and tokens[1].text == "(" and tokens[1].start == tokens[0].end:
        close = next((i for i, t in enumerate(tokens) if t.text == ")"), 0)
        return tokens[close + 1 :]
    return tokens[1:]


def macro_parameters(macro: Directive) -> list[str]:
    """The names of the parameters of a #define."""
    count = len(macro.tokens) - len(macro_body(macro))
    return [token.text for token in macro.tokens[2:count] if token.kind == "name"] if count > 1 else []


class Spans:
    """Parts of a text, which may be in one another."""

    def __init__(self, parts: list[tuple[int, int]]):
        self._starts, self._ends = list[int](), list[int]()
        for start, end in sorted(parts):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def have(self, offset: int) -> bool:
        at = bisect_right(self._starts, offset) - 1
        return at >= 0 and offset < self._ends[at]
