"""Find conversions to integers in device code, which of a real number that does not fit give what a GPU gives.

Found are (int)x, int(x), static_cast<int>(x) and `int name = x`. An assignment to a variable whose type stands
elsewhere is not found.
"""

from __future__ import annotations

from collections.abc import Iterator

from .lexer import Token
from .outline import skip_angles

TYPES = {
    "int", "unsigned", "unsigned int", "long", "long long", "unsigned long", "unsigned long long", "size_t",
    "int32_t", "uint32_t", "int64_t", "uint64_t", "long int", "long long int", "unsigned long int", "uint",
}  # fmt: skip
WORDS = {word for name in TYPES for word in name.split()}
# What stands before an expression, and not after one.
BEFORE = {
    "(",
    "[",
    "{",
    ",",
    ";",
    "=",
    "?",
    ":",
    "return",
    "<<",
    ">>",
    "&&",
    "||",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
}
BEFORE |= {
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "!",
    "~",
    "+=",
    "-=",
    "*=",
    "/=",
    "%=",
    "}",
    "case",
    "else",
    ")",
}
UNARY = {"-", "+", "~", "!", "*", "&", "++", "--"}


def casts(
    tokens: list[Token], partner: dict[int, int], first: int, last: int
) -> Iterator[tuple[int, int, str]]:
    """The edits for tokens [first, last): (offset, its end, text)."""
    for i in range(first, last):
        token = tokens[i]
        before = tokens[i - 1].text if i else ";"
        if token.text == "static_cast" and i + 1 < last and tokens[i + 1].text == "<":
            close = skip_angles(tokens, partner, i + 1, last)
            if " ".join(t.text for t in tokens[i + 2 : close - 1]) in TYPES:
                yield token.start, token.end, "::cuda_host::to"
        elif token.text == "(" and i in partner and before in BEFORE - {"}", ")"}:
            name = " ".join(t.text for t in tokens[i + 1 : partner[i]])
            end = _operand(tokens, partner, partner[i] + 1, last) if name in TYPES else None
            if end is not None:
                yield token.start, tokens[partner[i]].end, f"::cuda_host::to<{name}>("
                yield tokens[end - 1].end, tokens[end - 1].end, ")"
        elif token.text in TYPES and i + 1 < last and tokens[i + 1].text == "(":
            if before in BEFORE - {"<", ";", "{", "}", ")"}:
                yield token.start, token.end, f"::cuda_host::to<{token.text}>"
        elif token.text in WORDS and (before in (";", "{", "}", ")", "const", "else") or i == first):
            yield from _declaration(tokens, partner, i, last)


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


def _declaration(tokens: list[Token], partner: dict[int, int], index: int, last: int):
    """`int a = x, b = y;`"""
    at = index
    while at < last and tokens[at].text in WORDS:
        at += 1
    name = " ".join(t.text for t in tokens[index:at])
    if name not in TYPES:
        return
    found, start = [], None
    while at < last and tokens[at].text != ";":
        text = tokens[at].text
        if text in ("{", "<") or (start is None and text in ("*", "&", "(")):
            return
        if text in ("=", ",") and start is not None:
            if text == "=":
                return
            found.append((start, tokens[at - 1].end))
            start = None
        elif text == "=":
            start = tokens[at + 1].start
        at = partner.get(at, last) + 1 if text in ("(", "[") else at + 1
    if start is not None:
        found.append((start, tokens[at - 1].end))
    whole = {(t.start, t.end) for t in tokens[index:at] if t.text.isdigit()}
    for begin, end in found:
        if (begin, end) in whole:
            continue
        yield begin, begin, f"::cuda_host::to<{name}>("
        yield end, end, ")"
