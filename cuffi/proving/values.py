"""What a variable of the generic thread holds: a whole number as a term, a pointer, or what is not followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import z3

from .types import BOOL, NAMES, Integer, Type


@dataclass(frozen=True)
class Place:
    """A line of a file."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Number:
    """A whole number: a term of its exact value. An unsigned one is that modulo 2^bits; a bool is a formula."""

    term: Any
    type: Integer


@dataclass(frozen=True)
class Opaque:
    """A number that no index is made of; any value."""

    type: Type | None = None


@dataclass(eq=False)
class Array:
    """Memory. `space`: "global", "shared" or "local" (the thread's own).

    Attributes:
        size: how many elements it has; None: nobody says.
        is_written: as far as it is known; what is read of others has the same value for all threads.
    """

    name: str
    space: str
    type: Type
    size: Any = None
    is_written: bool = False
    is_read: bool = False


@dataclass(frozen=True)
class Pointer:
    """To an element: an offset in elements of the array, of which `unit` are one of the pointer's.

    `dims`: the extents of what it points to, if that is an array.
    """

    array: Array
    offset: Any
    type: Type
    unit: int = 1
    dims: tuple = ()
    within: Any = None  # of an element of an array of arrays: how many there are in its row
    is_row: bool = False  # as a place: an array, not an element


@dataclass(frozen=True)
class Lost:
    """A value whose use ends the proof. `why`."""

    why: str


@dataclass(frozen=True)
class Group:
    """Of cooperative groups: the block (size 0), or a tile of so many lanes."""

    size: int = 0


Value = Number | Opaque | Pointer | Lost | Group


@dataclass(eq=False)
class Variable:
    type: Type | None
    value: Value
    is_array: bool = False  # the value points to its first element
    is_memory: bool = False  # the name is that of memory to which the value points


@dataclass(eq=False)
class Access:
    """Of one thread: an element and those behind it (`width`), under a condition, between barriers (`ids`)."""

    array: Array
    offset: Any
    width: int
    kind: str  # r, w, or a (atomic)
    guard: list
    ids: frozenset[int]
    line: Place


def number(value: int, type: Integer) -> Number:
    return Number(z3.IntVal(value), type)


def truth(value: bool) -> Number:
    return Number(z3.BoolVal(value), BOOL)


def is_constant(term) -> bool:
    return z3.is_int_value(term)


def is_plain(value: Value) -> bool:
    """Is it a number of C++'s own, for which no file has an operator?"""
    return isinstance(value, Number) or (
        isinstance(value, Opaque) and value.type in (NAMES["float"], NAMES["double"])
    )
