"""The asm statements of a list of tokens.

    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p ld.global.u32 %0, [%2]; }" : "=r"(x) : "r"(n), "l"(at));

A template is the text of string literals, one after another. What else stands between them is a macro's. Then nobody
knows the text here, and the template is None; macros.py expands it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..conditions import Token
from .text import PtxError

QUALIFIERS = {"volatile", "__volatile__", "__volatile", "inline"}
ESCAPE = re.compile(r'\\(?:([ntr\\"\'?])|x([0-9a-fA-F]+)|\n)')


class Asm(NamedTuple):
    """One asm statement: the indices of its tokens, and the parts of its operands."""

    first: int  # asm
    last: int  # its closing bracket
    template: str | None
    outputs: list[tuple[str | None, int, int]]  # the constraint, and the tokens of the expression
    inputs: list[tuple[str | None, int, int]]


def literal(text: str) -> str:
    """What a string literal says."""
    if text.startswith("R") or re.match(r'(u8|[uUL])R"', text):
        return text[text.index("(") + 1 : text.rindex(")")]
    inner = text[text.index('"') + 1 : -1]
    names = {"n": "\n", "t": "\t", "r": "\r"}
    return ESCAPE.sub(lambda m: names.get(m[1], m[1]) if m[1] else chr(int(m[2], 16)) if m[2] else "", inner)


def _sections(tokens: list[Token], partner: dict[int, int], first: int, last: int) -> list[tuple[int, int]]:
    """The parts between colons of an asm statement's brackets. A `::` is two of these."""
    found, begin, i = [], first, first
    while i < last:
        text = tokens[i].text
        if text == ":":
            found.append((begin, i))
            begin = i + 1
        elif text == "::":
            found += [(begin, i), (i, i)]
            begin = i + 1
        i = partner.get(i, i) + 1 if text in ("(", "[", "{") and i in partner else i + 1
    return [*found, (begin, last)]


def _operands(tokens, partner, first: int, last: int) -> list[tuple[str | None, int, int]]:
    found, i = [], first
    while i < last:
        constraint = None
        if tokens[i].text == "[":
            i = partner.get(i, i) + 1
        while i < last and tokens[i].text != "(":
            if tokens[i].kind == "string":
                constraint = (constraint or "") + literal(tokens[i].text)
            i += 1
        if i >= last or i not in partner:
            raise PtxError("an operand without brackets")
        if constraint is None:
            raise PtxError("an operand of a macro")
        found.append((constraint, i + 1, partner[i]))
        i = partner[i] + 1
        if i < last and tokens[i].text != ",":
            raise PtxError("operands of a macro")
        i += 1
    return found


def asm_statement(tokens: list[Token], partner: dict[int, int], at: int) -> Asm | None:
    """The asm statement that begins with this token. Its template is None if macros make it."""
    opening = at + 1
    while opening < len(tokens) and tokens[opening].text in QUALIFIERS:
        opening += 1
    if opening >= len(tokens) or tokens[opening].text != "(" or opening not in partner:
        return None
    last = partner[opening]
    parts = _sections(tokens, partner, opening + 1, last)
    begin, end = parts[0]
    strings = tokens[begin:end]
    template = "".join(literal(t.text) for t in strings) if all(t.kind == "string" for t in strings) else None
    outputs = _operands(tokens, partner, *parts[1]) if len(parts) > 1 else []
    inputs = _operands(tokens, partner, *parts[2]) if len(parts) > 2 else []
    return Asm(at, last, template, outputs, inputs)
