"""The declarations, definitions, classes and macros of one file. They can be cut out of it one by one."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from tools.cuda.lexer import Directive, Token
from tools.cuda.outline import parameters_after, scope_name, split_commas
from tools.cuda.source import Source

from ..make.registers import types_said


class Place(NamedTuple):
    """A line of a file in the tree."""

    file: str
    line: int

    def __str__(self):
        return f"{self.file}:{self.line}"


class Arity(NamedTuple):
    """The numbers of arguments that a function takes."""

    least: int
    most: int


class Item(NamedTuple):
    """One declaration or definition at namespace scope."""

    name: str
    tokens: list[Token]
    defines: bool
    arity: Arity | None = None  # None if it is not a function
    scope: str = ""  # the class whose member it is

    @property
    def start(self) -> int:
        return self.tokens[0].start


@dataclass(frozen=True, eq=False)
class Class:
    name: str
    file: str
    line: int
    source: Source
    span: tuple[int, int]  # its head and body, among the file's tokens
    type: str  # what its type() returns, or ""

    @property
    def place(self) -> Place:
        return Place(self.file, self.line)

    @cached_property
    def tokens(self) -> list[Token]:
        return self.source.lexed.tokens[slice(*self.span)]

    @cached_property
    def members(self) -> list[Item]:
        return declarations_of(self.source, within=self.span)


def classes_in(source: Source, file: str) -> Iterator[Class]:
    """Each class that a file defines."""
    lexed, types = source.lexed, types_said(source)
    for name, bodies in source.classes.items():
        for first, last in bodies:
            head = first
            while head and lexed.tokens[head - 1].text not in (";", "}", "{"):
                head -= 1
            line = lexed.position(lexed.tokens[first].start)[0]
            yield Class(name, file, line, source, (head, last), types.get(name, ""))


def declarations_of(source: Source, within: tuple[int, int] | None = None) -> list[Item]:
    """The items of a file, or the members of the class whose tokens are `within`."""
    if within:
        members = [(head, end) for head, end in source.declared if within[0] < head < within[1]]
        return [item_at(source, head, end) for head, end in members]
    classes = list(classes_in(source, ""))
    items = [
        Item(cls.name, source.lexed.tokens[cls.span[0] : cls.span[1] + 2], True) for cls in classes
    ]  # with the `;` after it
    for head, end in source.declared:
        if not any(cls.span[0] < head < cls.span[1] for cls in classes):
            items.append(item_at(source, head, end))
    return sorted(items, key=lambda item: (item.start, len(item.tokens)))


def item_at(source: Source, head: int, end: int) -> Item:
    """The item of one declaration or definition in source.declared."""
    lexed = source.lexed
    at = source.name_of((head, end))
    while lexed.tokens[head].text.isupper() and lexed.tokens[head + 1].text == "(":
        after = lexed.partner.get(head + 1, at)
        if after >= at:
            break
        head = after + 1  # the call of a macro, which needs no semicolon
    defines = lexed.tokens[at].start in source.defined_at
    last = lexed.partner[end] if defines else end
    arity, scope = arity_of(source, at, end), scope_name(lexed.tokens, at)
    return Item(lexed.tokens[at].text, lexed.tokens[head : last + 1], defines, arity, scope)


def arity_of(source: Source, name: int, end: int) -> Arity:
    """The arity of the function whose name is this token."""
    tokens, partner = source.lexed.tokens, source.lexed.partner
    parameters = list(split_commas(tokens, partner, *parameters_after(tokens, partner, name, end)))
    if len(parameters) == 1 and [t.text for t in tokens[slice(*parameters[0])]] == ["void"]:
        parameters = []
    defaults = sum(any(t.text == "=" for t in tokens[first:last]) for first, last in parameters)
    return Arity(len(parameters) - defaults, len(parameters))


def macros_of(source: Source, known: Container[str]) -> dict[str, Directive]:
    """The macros of a source that are not in `known`, by name. If a macro has several definitions, the first counts."""
    by_name: dict[str, Directive] = {}
    for macro in source.macros:
        if macro.tokens[0].text not in known:
            by_name.setdefault(macro.tokens[0].text, macro)
    return by_name


def expansions(source: Source, macros: Iterable[Directive]) -> Iterator[tuple[tuple[int, int], Source]]:
    """Yields the expansions of macro calls outside of functions, such as the definition of cblas_sgemm.

    Each comes after the token range of its call in the file, with the `;` after the call.
    """
    by_name = {m.tokens[0].text: m for m in macros if [t.text for t in m.tokens[1:2]] == ["("]}
    waiting: list[tuple[tuple[int, int] | None, Source]] = [(None, source)]
    while waiting:
        outer_call, current = waiting.pop()
        tokens, partner = current.lexed.tokens, current.lexed.partner
        for i, token in enumerate(tokens[:-1]):
            macro = by_name.get(token.text)
            if macro and tokens[i + 1].text == "(" and not current.function_around(token.start):
                close = partner.get(i + 1, i + 2)
                parts = split_commas(tokens, partner, i + 2, close)
                arguments = [[t.text for t in tokens[slice(*part)]] for part in parts]
                expansion = Source(expanded(macro, arguments), "")
                has_semicolon = close + 1 < len(tokens) and tokens[close + 1].text == ";"
                call = outer_call or (i, close + 1 + has_semicolon)
                yield call, expansion
                waiting.append((call, expansion))


def expanded(macro: Directive, arguments: list[list[str]]) -> str:
    """The text of a macro's call with these arguments."""
    texts = [token.text for token in macro.tokens]
    close = texts.index(")")
    names = [text for text in texts[2:close] if text != ","]
    rest = arguments[len(names) - 1 :]
    values = dict(zip(names, arguments, strict=False))
    values["__VA_ARGS__"] = [text for argument in rest for text in (*argument, ",")][:-1]
    body = " ".join(text for word in texts[close + 1 :] for text in values.get(word, [word]))
    return re.sub(r" ?# ?# ?", "", body)
