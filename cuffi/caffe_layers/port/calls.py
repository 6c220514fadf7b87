"""Calls in a fork's code: which of them need a function that the toolkit does not have."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

from tools.cuda.lexer import Token
from tools.cuda.outline import split_commas

from .core import OVERLOADED, is_called, is_containers
from .toolkit_headers import Toolkit

if TYPE_CHECKING:
    from .names import Names


def calls(tokens: list[Token], heads: Container[int]) -> Iterator[int]:
    """The indices of names that are called, or that a template's arguments follow. heads: where definitions are."""
    for i, token in enumerate(tokens[:-1]):
        if token.kind == "name" and tokens[i + 1].text in ("(", "<", "<<") and token.start not in heads:
            yield i


def is_forks(tokens: list[Token], i: int, toolkit: Toolkit) -> bool:
    """Does the toolkit lack this function, or one with so many arguments?"""
    name = tokens[i].text
    if name not in toolkit.words:
        return True
    opening = opening_of(tokens, i)
    is_call = opening is not None and tokens[opening].text == "("
    return is_call and not toolkit.accepts(name, arguments(tokens, opening))


def is_forks_member(tokens: list[Token], i: int, names: Names) -> bool:
    """Does the toolkit lack the member called here, or its overload with so many arguments?

    The call is x.f(, Blob<Dtype>( or Net<Dtype> x(.
    """
    name = tokens[i].text
    overloads = names.core.overloads.get(name)
    if name in OVERLOADED:
        opening = next((k for k in (i + 4, i + 5) if k < len(tokens) and tokens[k].text == "("), 0)
        is_constructed = opening and tokens[i + 3].text == ">"
        return bool(is_constructed and overloads) and arguments(tokens, opening) in overloads
    if not is_called(tokens, i):
        return False
    if is_containers(tokens, i):
        return False
    return name not in names.toolkit.words or bool(overloads and arguments(tokens, i + 1) in overloads)


def is_free_call(tokens: list[Token], i: int) -> bool:
    """Is the token a call of a free function, f(, caffe::f( or f<Dtype>(, or a launch f<<<?"""
    before = tokens[i - 1].text if i else ""
    if before in (".", "->") or (before == "::" and tokens[i - 2].text not in ("caffe", "")):
        return False
    return opening_of(tokens, i) is not None


def opening_of(tokens: list[Token], i: int) -> int | None:
    """The index of the parenthesis that opens a call's arguments, or a launch's <<<."""
    at = i + 1
    if tokens[at].text == "<":
        at = next((k + 1 for k in range(at, min(i + 7, len(tokens) - 2)) if tokens[k].text == ">"), at)
    is_launch = [token.text for token in tokens[at : at + 2]] == ["<<", "<"]
    return at if tokens[at].text == "(" or is_launch else None


def arguments(tokens: list[Token], opening: int) -> int:
    """The number of arguments in the parentheses that open here."""
    closing, partner, stack = 0, {}, []
    for i in range(opening, len(tokens)):
        if tokens[i].text in ("(", "[", "{"):
            stack.append(i)
        elif tokens[i].text in (")", "]", "}") and stack:
            partner[stack.pop()] = i
            if not stack:
                closing = i
                break
    return sum(1 for _ in split_commas(tokens, partner, opening + 1, closing)) if closing > opening + 1 else 0
