"""Functions on lists of tokens: they find brackets, template arguments, the parts of a list, a function's name."""

from __future__ import annotations

import re
from bisect import bisect_left
from operator import attrgetter

from .lexer import CLOSING, OPENING, Directive, Token

# Words with parentheses in a function's head that are not its parameters.
ATTRIBUTES = {
    "__launch_bounds__", "__cluster_dims__", "__maxnreg__", "__attribute__", "__align__", "__declspec", "__global__",
    "__host__", "__device__", "alignas", "decltype", "explicit", "noexcept", "requires", "sizeof",
}  # fmt: skip
BRACED_SCOPES = {"class", "struct", "union"}
SCOPE_WORDS = BRACED_SCOPES | {"namespace", "enum"}


def match_brackets(tokens: list[Token]) -> dict[int, int]:
    """The partner of each bracket in a short list of tokens, such as a macro's body, by index."""
    partner, stack = {}, []
    for index, token in enumerate(tokens):
        if token.kind == "punct" and token.text in OPENING:
            stack.append(index)
        elif token.kind == "punct" and stack and CLOSING.get(token.text) == tokens[stack[-1]].text:
            partner[index] = stack[-1]
            partner[stack.pop()] = index
    return partner


# `CUDA_KERNEL_LOOP(i, n) body` is no C++ statement. `while           (i, n) body` is one, and has the same length.
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


def surroundings(tokens, partner, index: int):
    """Yields token ranges around a token: its statement within the innermost brackets, then its part between commas."""
    first = last = index
    while first and tokens[first - 1].text not in (";", "{", "}", "(", "["):
        first = partner.get(first - 1, first - 1)
    while last < len(tokens) and tokens[last].text not in (";", "}", ")", "]"):
        last = partner.get(last, last) + 1
    yield first, last
    yield from ((a, b) for a, b in split_commas(tokens, partner, first, last) if a <= index < b)


def can_precede_expression(token: Token) -> bool:
    """May an expression start after this token? If not, the parser missed the beginning of a callee."""
    if token.kind == "name":
        return token.text in ("return", "else", "do", "co_return")
    return token.kind == "punct" and token.text not in ("::", ".", "->", "]", ">", "##", "#")


def macro_body(macro: Directive) -> list[Token]:
    """The tokens of a #define after its name and parameters."""
    tokens = macro.tokens
    if len(tokens) > 1 and tokens[1].text == "(" and tokens[1].start == tokens[0].end:
        close = next((i for i, t in enumerate(tokens) if t.text == ")"), 0)
        return tokens[close + 1 :]
    return tokens[1:]


def skip_angles(tokens: list[Token], partner: dict[int, int], index: int, end: int) -> int:
    """The index after the `>` that closes the `<` at `index`, or `index + 1` if that `<` is an operator."""
    depth, i = 0, index
    while i < end:
        text = tokens[i].text if tokens[i].kind == "punct" else ""
        if text in ("(", "["):
            i = partner.get(i, i)
        elif text == "<":
            depth += 1
        elif text in (">", ">>"):
            depth -= len(text)
            if depth <= 0:
                return i + 1
        elif text in (";", "{", ")"):
            break
        i += 1
    return index + 1


def split_commas(tokens, partner, index: int, end: int):
    """Yields the token ranges between the commas of a list. Commas in brackets and template arguments do not count."""
    first = index
    while index < end:
        text = tokens[index].text
        if text == ",":
            yield first, index
            first = index + 1
        if tokens[index].kind == "punct" and text in "([{":
            index = partner.get(index, index) + 1
        elif text == "<":
            index = skip_angles(tokens, partner, index, end)
        else:
            index += 1
    if first < end:
        yield first, end


def head_name(tokens, partner, head: int, end: int) -> int | None:
    """The index of the name in a function's head `... name(...) ...`, or None if it is not a function's head.

    The last name(...) counts, because a macro's call without a semicolon may come before the function.
    """
    name_index, index = None, head
    angles = (None, None)  # the last name<...>: the index after its brackets, and the index of its name
    while index < end:
        text = tokens[index].text
        if text == "<" and index > head and tokens[index - 1].kind == "name":
            after = skip_angles(tokens, partner, index, end)
            angles, index = (after, index - 1), after
        elif text == "operator":
            name_index, index = index, index + (3 if tokens[index + 1].text == "(" else 1)
        elif text == "(":
            name = angles[1] if angles[0] == index else index - 1
            if name >= head and tokens[name].kind == "name" and tokens[name].text not in ATTRIBUTES:
                name_index = name
            index = partner.get(index, index) + 1
        elif text == ":" and name_index is not None:  # a constructor's initialisers
            return name_index
        elif text == "=" and name_index is not None and tokens[index - 1].text != "operator":
            is_pure = index + 2 == end and tokens[index + 1].text == "0"
            return name_index if is_pure else None
        else:
            if text in SCOPE_WORDS:  # name(...) before it is a macro's call
                name_index = None
            index = (partner.get(index, index) if text in ("[", "{") else index) + 1
    return name_index


def scope_name(tokens: list[Token], name: int) -> str:
    """The class in `Class<Dtype>::name` or `Class::~name`, or "" if there is none."""
    at = name - 1
    if at > 0 and tokens[at].text == "~":
        at -= 1
    if at < 1 or tokens[at].text != "::":
        return ""
    at -= 1
    if tokens[at].text == ">":
        at = next((k for k in range(at, 0, -1) if tokens[k].text == "<"), 1) - 1
    return tokens[at].text if tokens[at].kind == "name" else ""


def parameters_after(tokens, partner, name: int, end: int) -> tuple[int, int]:
    """The token range of the parameters of the function whose name has the index `name`."""
    index = name + 1
    if tokens[index].text == "<":
        index = skip_angles(tokens, partner, index, end)
    if tokens[name].text == "operator":  # operator+(...), operator()(...)
        index += 1
        while index < end and tokens[index].text != "(":
            index += 1
    return index + 1, partner.get(index, index)


def class_name(tokens, partner, head: int, end: int) -> str | None:
    """The name in a head `template <...> struct Name : Base`. "" if it has no name, None if it is not a class."""
    index = head
    while index < end:
        if tokens[index].text == "<":
            index = skip_angles(tokens, partner, index, end)
        elif tokens[index].text in ("(", "["):
            index = partner.get(index, index) + 1
        elif tokens[index].text in BRACED_SCOPES:
            names = [t.text for t in tokens[index + 1 : end] if t.kind == "name" and t.text not in ATTRIBUTES]
            return names[0] if names else ""
        else:
            index += 1
    return None
