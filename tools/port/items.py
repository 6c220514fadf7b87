"""The declarations and definitions at namespace scope of one file, and its macros: what can be cut out of it."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from ..cuda.lexer import Directive
from ..cuda.source import Source
from ..cuda.tokens import head_name, parameters_after, split_commas
from .tree import classes_in


class Arity(NamedTuple):
    """How many arguments a function takes."""

    least: int
    most: int


class Item(NamedTuple):
    """One declaration or definition at namespace scope."""

    name: str
    tokens: tuple[int, int]
    defines: bool
    arity: Arity | None = None  # None: no function


def items_of(source: Source, within: tuple[int, int] | None = None) -> list[Item]:
    """Those of a file; or the members of a class, whose tokens are `within`."""
    if within:
        inside = [(head, end) for head, end in source.declared if within[0] < head < within[1]]
        return [item_at(source, head, end) for head, end in inside]
    classes = list(classes_in(source, ""))
    found = [Item(one.name, (one.tokens[0], one.tokens[1] + 2), True) for one in classes]
    for head, end in source.declared:
        if not any(one.tokens[0] < head < one.tokens[1] for one in classes):
            found.append(item_at(source, head, end))
    return sorted(found, key=lambda item: item.tokens)


def item_at(source: Source, head: int, end: int) -> Item:
    """Of one of source.declared."""
    lexed = source.lexed
    at = head_name(lexed.tokens, lexed.partner, head, end)
    while lexed.tokens[head].text.isupper() and lexed.tokens[head + 1].text == "(":
        after = lexed.partner.get(head + 1, at)
        if after >= at:
            break
        head = after + 1  # a macro's call, which needs no semicolon
    defines = lexed.tokens[at].start in source.defined_at
    last = lexed.partner[end] if defines else end
    return Item(lexed.tokens[at].text, (head, last + 1), defines, arity_of(source, at, end))


def arity_of(source: Source, name: int, end: int) -> Arity:
    """Of the function whose name is this token."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    parameters = list(split_commas(tokens, partner, *parameters_after(tokens, partner, name, end)))
    if len(parameters) == 1 and [t.text for t in tokens[slice(*parameters[0])]] == ["void"]:
        parameters = []
    defaults = sum(any(t.text == "=" for t in tokens[first:last]) for first, last in parameters)
    return Arity(len(parameters) - defaults, len(parameters))


def macros_of(source: Source, known: Container[str]) -> dict[str, Directive]:
    """By name, those that are not known; of several definitions (#if, #else) the first."""
    found: dict[str, Directive] = {}
    for macro in source.macros:
        if macro.tokens[0].text not in known:
            found.setdefault(macro.tokens[0].text, macro)
    return found
