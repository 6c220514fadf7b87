"""A variable of a function: its declaration, and where it is known. uses.py adds what changes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .body import Body
from .reasons import Unclear

QUALIFIERS = {"const", "constexpr", "__restrict__", "__restrict", "typename", "inline", "static"}
LISTS = {"argument_list", "initializer_list"}


class Variable:
    """A variable of a function's body, or a parameter."""

    def __init__(self, name: str, words: list[str], start: int, end: int):
        self.name, self.words = name, words  # of its type
        self.start, self.end = start, end  # where it is known
        self.stars: int | None = 0  # of a pointer; None of an array, a reference, a pointer to an array
        self.value = None  # the node by which it is initialised
        self.declarator: Any = None  # without the value
        self.statement = None  # the declaration
        self.region: int | None = None  # where a thread's own variable is declared
        self.changes: list = []  # nodes that change it; None: a use that is no known read
        self.is_of_warp = False  # declared where only the lanes of a warp are together
        self.is_uniform = self.is_kept = self.is_constant = self.is_array = self.is_shared = False

    @property
    def declaration(self):
        """The statement of a thread's own variable, which has one."""
        assert self.statement is not None
        return self.statement

    @property
    def is_auto(self) -> bool:
        return "auto" in self.words and self.stars == 0

    def is_of(self, words: set[str]) -> bool:
        """Is it a number of such a type, or a pointer?"""
        return self.stars is not None and (self.stars > 0 or set(self.words) - QUALIFIERS <= words)


def declared(body: Body, statement, declarator, words: list[str], end: int) -> Variable:
    """The variable of one declarator of a declaration.

    Args:
        words: of its type.
        end: where it is no longer known.

    Raises:
        Unclear: the declarator has no name.
    """
    inner, stars, known = declarator, 0, True
    while inner.type != "identifier":
        known = known and inner.type in ("init_declarator", "pointer_declarator")
        stars += inner.type == "pointer_declarator"
        known = known and not any(c.type == "type_qualifier" for c in inner.named_children)
        below = inner.child_by_field_name("declarator") or next(iter(inner.named_children), None)
        if below is None:
            raise Unclear("a declaration of another form", body.place(statement)[0])
        inner = below
    one = Variable(body.of(inner), words, inner.start_byte, end)
    one.statement = statement
    is_init = declarator.type == "init_declarator"
    one.value = declarator.child_by_field_name("value") if is_init else None
    one.declarator = declarator.child_by_field_name("declarator") if is_init else declarator
    known = known and statement.type == "declaration" and (one.value is None or one.value.type not in LISTS)
    one.stars = stars if known else None
    one.is_array = inner.parent.type == "array_declarator"
    if "constexpr" in words:
        one.is_constant, one.statement = True, None
    if "__shared__" in words:
        one.is_shared, one.stars, one.statement = one.is_array, None, None
        one.is_array = False
    return one


def meant(variables: Iterable[Variable], name: str, at: int) -> Variable | None:
    """The variable that a name means at an offset: of those that are known there the last one."""
    found = [v for v in variables if v.name == name and v.start <= at < v.end]
    return max(found, key=lambda v: v.start, default=None)
