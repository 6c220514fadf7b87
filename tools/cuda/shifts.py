"""Find shifts in device code: `a << n` becomes `a << ::cuda_host::gpu_shift << n`, a GPU's result for each n.

`>>` may also close the arguments of templates; the syntax tree knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from .casts import Edit
from .launches import parse
from .lexer import Token
from .number_types import WHOLE
from .tokens import mask

_BEFORE, _AFTER = "void f() {", ";}"
# They bind stronger than a shift.
STRONGER = {"+", "-", "*", "/", "%", ".", "->", "[", "(", "::"}


def shifts(tokens: list[Token], first: int, last: int) -> Iterator[Edit]:
    """The edits for tokens [first, last)."""
    places = [i for i in range(first + 1, last - 1) if tokens[i].text in ("<<", ">>")]
    places = [i for i in places if not _is_small(tokens, i, last) and tokens[i - 1].text != "operator"]
    root = None
    for i in places:
        if tokens[i].text == "<<" and "<" in (tokens[i + 1].text, tokens[i - 1].text):  # a launch
            continue
        if tokens[i].text == ">>" and any(t.text == "<" for t in tokens[first:i]):
            if root is None:
                root = parse(
                    _BEFORE + mask(tokens[first:last], tokens[first].start, tokens[last - 1].end) + _AFTER
                )
            at = tokens[i].start - tokens[first].start + len(_BEFORE)
            node = root.descendant_for_byte_range(at, at + 2)
            if node is None or node.parent is None or node.type != ">>":
                continue
            if node.parent.type not in ("binary_expression", "ERROR"):
                continue
        yield tokens[i].end, tokens[i].end, f" ::cuda_host::gpu_shift {tokens[i].text}"


def _is_small(tokens: list[Token], at: int, last: int) -> bool:
    """Is the amount a number below 32?"""
    amount, after = tokens[at + 1], tokens[at + 2].text if at + 2 < last else ";"
    return is_small(amount) and after not in STRONGER


def is_small(amount: Token) -> bool:
    literal = amount.text.rstrip("uUlL").replace("'", "")
    if amount.kind != "number" or not WHOLE.match(amount.text):
        return False
    octal = literal.isdigit() and literal.startswith("0") and len(literal) > 1
    return int(literal, 8 if octal else 0) < 32
