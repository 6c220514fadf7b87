"""Find conversions to integers in device code, which of a real number that does not fit give what a GPU gives.

Found are (int)x, int(x), static_cast<int>(x), `int name = x`, and an assignment `name = x`, `*name = x` or
`name[i] = x` to a name that the function declares as an integer, or as a pointer or an array of integers. T of a
template counts as an integer: cuda_host::to<T> of another type is a plain conversion.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .lexer import Token
from .outline import Function, skip_angles
from .tokens import position_from

_SIZES = ("int", "char", "short", "long", "long long", "short int", "long int", "long long int")
_FIXED = tuple(f"int{bits}_t" for bits in (8, 16, 32, 64))
TYPES = {
    *_SIZES, *(f"unsigned {size}" for size in _SIZES), *_FIXED, *(f"u{name}" for name in _FIXED),
    "unsigned", "signed char", "size_t", "uint", "uchar", "ushort",
}  # fmt: skip
# What stands before an expression, and not after one.
BEFORE = {
    "(", "[", "{", ",", ";", "=", "?", ":", "return", "<<", ">>", "&&", "||", "==", "!=", "<", ">", "<=", ">=", "+",
    "-", "*", "/", "%", "&", "|", "^", "!", "~", "+=", "-=", "*=", "/=", "%=", "}", "case", "else", ")",
}  # fmt: skip
STARTS = {";", "{", "}", ")", "else", "do"}
QUALIFIERS = {"const", "volatile", "__restrict__", "__restrict", "*", "&"}
UNARY = {"-", "+", "~", "!", "*", "&", "++", "--"}


class Within:
    """The names that mean integers in one function: types, and variables.

    Args:
        function: None for a macro's body.
    """

    def __init__(self, tokens: list[Token], function: Function | None = None):
        self.types, self.variables = set(TYPES), set()
        if function is None:
            self.words = {word for name in TYPES for word in name.split()}
            return
        head, body, end = (position_from(tokens, at) for at in (function.head, function.body, function.end))
        for before, name in zip(tokens[head:body], tokens[head + 1 : body], strict=False):
            if before.text in ("typename", "class") and name.kind == "name":
                self.types.add(name.text)
        self.words = {word for name in self.types for word in name.split()}
        for parameter in function.parameters:
            if set(re.findall(r"\w+|\S", parameter.type)) <= self.words | QUALIFIERS:
                self.variables.add(parameter.name)
        for i in range(body, end):
            if tokens[i].text in self.words and tokens[i - 1].text != "<":
                self.variables |= set(self._declared(tokens, i + 1, end))

    def _declared(self, tokens: list[Token], at: int, end: int) -> Iterator[str]:
        """The names in `int *a, b[3];`, after the first word of the type."""
        depth, begins = 0, True
        while at < end and tokens[at].text != ";" and depth >= 0:
            text = tokens[at].text
            if begins and tokens[at].kind == "name" and text not in self.words | QUALIFIERS:
                if tokens[at + 1].text not in ("=", ";", ",", "[", ")"):
                    return
                yield text
            begins = (begins and text in self.words | QUALIFIERS) or (text == "," and not depth)
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
            at += 1


def casts(
    tokens: list[Token],
    partner: dict[int, int],
    first: int,
    last: int,
    within: Within | None = None,
    to: str = "::cuda_host::to",
) -> Iterator[tuple[int, int, str]]:
    """The edits for tokens [first, last): (offset, its end, text).

    Args:
        within: the integers of the function that the tokens are in.
        to: the conversion's name in C++.
    """
    within = within or Within(tokens)
    types = within.types
    for i in range(first, last):
        token = tokens[i]
        before = tokens[i - 1].text if i else ";"
        if token.text == "static_cast" and i + 1 < last and tokens[i + 1].text == "<":
            close = skip_angles(tokens, partner, i + 1, last)
            if " ".join(t.text for t in tokens[i + 2 : close - 1]) in types:
                yield token.start, token.end, to
        elif token.text == "(" and i in partner and before in BEFORE - {"}", ")"}:
            name = " ".join(t.text for t in tokens[i + 1 : partner[i]])
            end = _operand(tokens, partner, partner[i] + 1, last) if name in types else None
            if end is not None:
                yield token.start, tokens[partner[i]].end, f"{to}<{name}>("
                yield tokens[end - 1].end, tokens[end - 1].end, ")"
        elif token.text in types and i + 1 < last and tokens[i + 1].text == "(":
            if partner.get(i + 1) == i + 2:  # T() is a zero
                continue
            number = partner.get(i + 1) == i + 3 and tokens[i + 2].text.isdigit()
            if before in BEFORE - {"<", ";", "{", "}", ")"} and not number:
                yield token.start, token.end, f"{to}<{token.text}>"
        elif token.text in within.words and (before in STARTS | {"const", "("} or i == first):
            yield from _declaration(tokens, partner, i, last, within, to)
        elif (before in STARTS or i == first) and (token.text in within.variables or token.text == "*"):
            yield from _assignment(tokens, partner, i, last, within, to)


def _operand(tokens: list[Token], partner: dict[int, int], index: int, last: int) -> int | None:
    """The index after the operand of a cast that begins there, or None if there is none."""
    while index < last and tokens[index].text in UNARY:
        index += 1
    if index < last and tokens[index].text == "(" and index in partner:
        inner = " ".join(t.text for t in tokens[index + 1 : partner[index]])
        index = partner[index] + 1
        if inner in TYPES | {"float", "double"}:
            return _operand(tokens, partner, index, last)
    elif index < last and tokens[index].kind in ("name", "number", "char"):
        index += 1
    elif index < last and tokens[index].text == "::":
        index += 2
    else:
        return None
    while index < last:
        text = tokens[index].text
        if text in ("(", "["):
            index = partner.get(index, last) + 1
        elif text in (".", "->", "::"):
            index += 2
        elif text == "<" and (after := skip_angles(tokens, partner, index, last)) > index + 1:
            if after >= last or tokens[after].text != "(" or tokens[index - 1].kind != "name":
                break
            index = after
        elif text in ("++", "--"):
            index += 1
        else:
            break
    return index


def _declaration(
    tokens: list[Token], partner: dict[int, int], index: int, last: int, within: Within, to: str
):
    """`int a = x, b = y;`"""
    at = index
    while at < last and tokens[at].text in within.words:
        at += 1
    name = " ".join(t.text for t in tokens[index:at])
    if name not in within.types:
        return
    found, start = [], None
    while at < last and tokens[at].text != ";":
        text = tokens[at].text
        if text in ("{", "<", ")") or (start is None and text in ("*", "&", "(")):
            return
        if text in ("=", ",") and start is not None:
            if text == "=":
                return
            found.append((start, at))
            start = None
        elif text == "=":
            start = at + 1
        at = partner.get(at, last) + 1 if text in ("(", "[") else at + 1
    if start is not None:
        found.append((start, at))
    for begin, end in found:
        yield from _converted(tokens, begin, end, f"{to}<{name}>(")


def _assignment(tokens: list[Token], partner: dict[int, int], index: int, last: int, within: Within, to: str):
    """`a = x;`, `*a = x;`, `a[i][j] = x;` of an integer."""
    at = index
    while at < last and tokens[at].text == "*":
        at += 1
    if at >= last or tokens[at].text not in within.variables:
        return
    at += 1
    while at < last and tokens[at].text == "[":
        at = partner.get(at, last) + 1
    if at >= last or tokens[at].text != "=":
        return
    begin = end = at + 1
    while end < last and tokens[end].text not in (";", ",", "=", "{"):
        end = partner.get(end, last) + 1 if tokens[end].text in ("(", "[") else end + 1
    if end < last and tokens[end].text == ";":
        target = " ".join(t.text for t in tokens[index:at])
        yield from _converted(tokens, begin, end, f"{to}<::cuda_host::plain<decltype({target})>>(")


def _converted(tokens: list[Token], begin: int, end: int, opening: str) -> Iterator[tuple[int, int, str]]:
    """Tokens [begin, end) as the operand of a conversion. A whole number needs none."""
    if end - begin == 1 and tokens[begin].text.isdigit():
        return
    yield tokens[begin].start, tokens[begin].start, opening
    yield tokens[end - 1].end, tokens[end - 1].end, ")"
