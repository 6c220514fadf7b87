"""Find casts to integers in device code, and say what they convert by: include/host/cuda_convert.h.

    (int)x                (int)(::cuda_host::GpuCast<int>)x
    int(x), int{x}        ::cuda_host::gpu_to<int>(x)
    static_cast<int>(x)   ::cuda_host::gpu_to<int>(x)
    (float4*)p            (float4*)(::cuda_host::GpuPointer<float4 *>)p
    reinterpret_cast<float4*>(p)   ::cuda_host::gpu_pointer<float4*>(p)

C++ finds out whether a type is an integer, so T of a template, a typedef and a macro's parameter count as one: of other
types the names leave all as it is. `(a) - x` is a cast only if `a` is known to be a type.
"""

from __future__ import annotations

from collections.abc import Iterator

from .lexer import Token
from .number_types import KEYWORDS, REALS, SIZES, WHOLE, Names, text_of
from .outline import skip_angles, split_commas

Edit = tuple[int, int, str]
# What stands before an expression, and not after one.
BEFORE = {
    "(", "[", "{", ",", ";", "=", "?", ":", "return", "<<", ">>", "&&", "||", "==", "!=", "<", ">", "<=", ">=", "+",
    "-", "*", "/", "%", "&", "|", "^", "!", "~", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=", "case",
    "else", "do", "throw", "}",
}  # fmt: skip
# After a word in parentheses these may be operators with two operands.
UNCLEAR = {"(", "-", "+", "*", "&", "~", "!", "++", "--"}
BYTES = {"void", "char", "bool", "uchar", "int8_t", "uint8_t"}
TYPE_SIGNS = {"::", "<", ">", ",", ">>"}


def casts(
    tokens: list[Token],
    partner: dict[int, int],
    first: int,
    last: int,
    names: Names,
    space: str = "::cuda_host::",
) -> Iterator[Edit]:
    """The edits for tokens [first, last): (offset, its end, text).

    Args:
        space: where the conversions are, in C++.
    """
    found: set[int] = set()  # the brackets that close the type of a cast
    named: set[int] = set()  # the brackets behind static_cast<T> and the like
    for i in range(first, last):
        token, after = tokens[i], tokens[i + 1].text if i + 1 < last else ""
        if token.text.endswith("_cast") and after == "<":
            named.add(skip_angles(tokens, partner, i + 1, last))
        before = tokens[i - 1].text if i else ";"
        if token.text == "static_cast" and after == "<":
            close = skip_angles(tokens, partner, i + 1, last)
            ends = " >" if tokens[close - 1].text == ">>" else ""  # static_cast<Box<int>>(x)
            if names.types.may_be_whole(text_of(tokens[i + 2 : close - 1]) + ends):
                yield token.start, token.end, f"{space}gpu_to"
        elif token.text == "reinterpret_cast" and after == "<":
            close = skip_angles(tokens, partner, i + 1, last)
            if _points(tokens[i + 2 : close - 1]):
                yield token.start, token.end, "::cuda_host::gpu_pointer"
        elif token.text == "(" and i in partner and i not in named and partner[i] + 1 < last:
            if (before in BEFORE or i == first or i - 1 in found) and _is_cast(
                tokens, partner, i, last, names
            ):
                close = partner[i]
                found.add(close)
                text = text_of(tokens[i + 1 : close])
                literal = tokens[close + 1].kind == "number" and WHOLE.match(tokens[close + 1].text)
                if _points(tokens[i + 1 : close]) and not literal:
                    yield tokens[close].end, tokens[close].end, f"(::cuda_host::GpuPointer<{text}>)"
                elif names.types.may_be_whole(text) and not literal:
                    yield tokens[close].end, tokens[close].end, f"({space}GpuCast<{text}>)"
        elif token.kind == "name" and after in ("(", "{"):
            yield from _functional(tokens, partner, i, first, names, space, i - 1 in found)


def _points(kind: list[Token]) -> bool:
    """Is it a pointer or a reference to something larger than a byte?"""
    words = {token.text for token in kind}
    return (
        kind[-1].text in ("*", "&")
        and text_of(kind).count("*") + text_of(kind).count("&") == 1
        and not words & BYTES
    )


def _is_cast(tokens: list[Token], partner: dict[int, int], opening: int, last: int, names: Names) -> bool:
    """Do these brackets have a type, with an operand after them?"""
    close = partner[opening]
    inside, after = tokens[opening + 1 : close], tokens[close + 1]
    if not inside or not all(t.kind == "name" or t.text in TYPE_SIGNS | {"*", "&"} for t in inside):
        return False
    if after.text in KEYWORDS - {"sizeof", "alignof", "new"}:
        return False
    is_operand = after.kind in ("name", "number", "char", "string") or after.text in UNCLEAR | {
        "::",
        "sizeof",
    }
    words = [t.text for t in inside if t.kind == "name"]
    if not words or not is_operand or words[-1] in KEYWORDS:
        return False
    text = text_of(inside)
    if set(words) & (SIZES | REALS | {"const", "typename"}) or names.is_type(text):
        return True
    if inside[-1].text in ("*", "&", ">"):
        return after.text not in UNCLEAR - {"("}
    return after.text not in UNCLEAR and not names.is_variable(words[-1])


def _functional(
    tokens: list[Token],
    partner: dict[int, int],
    at: int,
    first: int,
    names: Names,
    space: str,
    is_operand: bool,
) -> Iterator[Edit]:
    """`int(x)`, `std::int32_t(x)`, `T(x)`."""
    opening, begin = at + 1, at
    close = partner.get(opening)
    qualified = at > first + 1 and tokens[at - 1].text == "::"
    if qualified and tokens[at - 2].kind == "name":
        begin = at - 2
    text = text_of(tokens[begin : at + 1])
    known = names.types.whole(text) if tokens[opening].text == "{" else names.is_type(text)
    known = known and not names.types.constructors.is_made(text)  # see arguments.py
    if not known or close is None or (qualified and tokens[begin].text not in ("std",)):
        return
    inside = tokens[opening + 1 : close]
    before = tokens[begin - 1].text if begin else ";"
    if not inside or (before not in BEFORE - {"<", "}"} and not is_operand) or (before == ";" and begin):
        return  # at the begin there is a macro's text
    behind = tokens[close + 1].text if close + 1 < len(tokens) else ""
    if before == "{" and behind == ";":  # `{ int(x); }` declares
        return
    if inside[0].text in ("*", "&") and behind in ("[", "="):  # so does `int(*x)[8] = y`
        return
    if len(list(split_commas(tokens, partner, opening + 1, close))) > 1 or inside[-1].text == "...":
        return
    if len(inside) == 1 and WHOLE.match(inside[0].text):
        return
    yield tokens[begin].start, tokens[at].end, f"{space}gpu_to<{text}>"
    if tokens[opening].text == "{":
        yield tokens[opening].start, tokens[opening].end, "("
        yield tokens[close].start, tokens[close].end, ")"
