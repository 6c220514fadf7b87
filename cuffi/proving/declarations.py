"""Declarations: a thread's own variables and arrays, references, and shared memory."""

from __future__ import annotations

import z3

from ..judging.rewriters import declarators
from .expressions import Expressions
from .groups import WORDS
from .thread import Thread
from .types import INT, Integer, NotFollowed, PointerTo, Real
from .values import Array, Group, Lost, Number, Opaque, Pointer, Value, Variable

ARRAY = "array_declarator"


class Declarations:
    def __init__(self, thread: Thread, expressions: Expressions):
        self.thread, self.its = thread, expressions
        self._shared: dict[object, Array] = {}

    def _declaration(self, node):
        whole = self.its.of(node)
        words = whole.split("=")[0].split()
        kind = " ".join(self.its.of(one) for one in node.children_by_field_name("type"))
        for declarator, name, value in declarators(node):
            if name is None or declarator.type in ("function_declarator",):
                raise NotFollowed(f"{whole[:40]} is not followed", node)
            inner = declarator
            if declarator.type == "init_declarator":
                inner = self.its.field(declarator, "declarator")
            if (
                "static" in words
                and "__shared__" not in words
                and "const" not in words
                and "constexpr" not in words
            ):
                raise NotFollowed("a static variable is not followed", node)
            if "__shared__" in words:
                self._shared_memory(node, kind, inner, name, "extern" in words)
            elif inner.type == ARRAY:
                self._array(kind, inner, name, value)
            else:
                self._variable(kind, inner, name, value, node)

    def _variable(self, kind: str, inner, name, value, node):
        its, text = self.its, self.its.of(name)
        if inner.type == "reference_declarator":
            if "*" in its.of(inner) or value is None:
                raise NotFollowed(f"{its.of(node)[:40]} is not followed", node)
            self.thread.declare(text, self._reference(value, kind))
            return
        stars = its.of(inner).split(text)[0].count("*")
        if inner.type not in ("identifier", "pointer_declarator") or "(" in its.of(inner):
            raise NotFollowed(f"{its.of(node)[:40]} is not followed", node)
        made = self._initial(value, node)
        if kind == "auto":
            if made is None:
                raise NotFollowed(f"{its.of(node)[:40]} is not followed", node)
            self.thread.declare(text, Variable(_type_of_value(made), made))
            return
        if isinstance(made, Group) and WORDS.fullmatch(kind):
            self.thread.declare(text, Variable(None, made))
            return
        type = its.type(kind + "*" * stars, node)
        if isinstance(type, PointerTo) and isinstance(type.to, PointerTo):
            raise NotFollowed("a pointer to pointers is not followed", node)
        unset: Value = Opaque(type if isinstance(type, Real) else None)
        if isinstance(type, Integer):
            unset = self.thread.fresh(type, text)
        elif isinstance(type, PointerTo):
            unset = Lost("a pointer that is not followed")
        self.thread.declare(text, Variable(type, unset if made is None else its.converted(made, type, node)))

    def _reference(self, value, kind: str) -> Variable:
        """Another name of a variable, or of memory."""
        if value.type not in (
            "identifier",
            "subscript_expression",
            "pointer_expression",
            "parenthesized_expression",
        ):
            raise NotFollowed("this reference is not followed", value)
        place = self.its.place(value)
        if isinstance(place, Variable):
            if place.is_array or (kind != "auto" and place.type != self.its.type(kind, value)):
                raise NotFollowed("this reference is not followed", value)
            return place
        if place.dims or place.is_row:
            raise NotFollowed("a reference to an array is not followed", value)
        return Variable(place.type, place, is_memory=True)

    def _initial(self, value, node) -> Value | None:
        if value is None:
            return None
        if value.type in ("argument_list", "initializer_list"):
            inside = [one for one in value.named_children if one.type != "comment"]
            values = [self.its.value(one) for one in inside]
            if len(values) == 1:
                return values[0]
            if not values and value.type == "initializer_list":
                return Number(z3.IntVal(0), INT)
            if any(isinstance(one, Pointer) for one in values):
                raise NotFollowed(f"{self.its.of(node)[:40]} is not followed", node)
            return Opaque()
        return self.its.value(value)

    def _extents(self, inner) -> list:
        """The terms of an array's extents; None of one without."""
        found = []
        while inner.type == ARRAY:
            size = inner.child_by_field_name("size")
            if size is None:
                found.append(None)
            else:
                extent = self.thread.math.plain(self.its.number(size))
                self.thread.queries.fact(extent > 0)  # or there is no such type
                found.append(z3.simplify(extent))
            inner = self.its.field(inner, "declarator")
        if inner.type != "identifier":
            raise NotFollowed(f"{self.its.of(inner)[:40]} is not followed", inner)
        return found[::-1]

    def _array(self, kind: str, inner, name, value):
        text, extents = self.its.of(name), self._extents(inner)
        if value is not None:
            self.its.value(value)
            if None in extents and value.type == "initializer_list" and len(extents) == 1:
                extents = [z3.IntVal(value.named_child_count)]
        type = self.its.type(kind, inner)
        if None in extents:
            raise NotFollowed(f"{text}[]: its size is not known", inner)
        array = Array(text, "local", type, self._whole(extents))
        pointer = Pointer(array, z3.IntVal(0), type, 1, tuple(extents[1:]))
        self.thread.declare(text, Variable(type, pointer, is_array=True))

    def _whole(self, extents: list):
        size = z3.IntVal(1)
        for one in extents:
            size = self.thread.math.product(size, one)
        return z3.simplify(size)

    def _shared_memory(self, node, kind: str, inner, name, is_extern: bool):
        """One array for each declaration, whoever comes to it; all that is extern begins at one place."""
        text, type = self.its.of(name), self.its.type(kind, node)
        if isinstance(type, PointerTo) or inner.type not in (ARRAY, "identifier"):
            raise NotFollowed("pointers in shared memory are not followed", node)
        extents = self._extents(inner)
        key: object = "extern" if is_extern else (self.its.code.name, name.start_byte, str(extents))
        array = self._shared.get(key)
        if array is None:
            size = None if is_extern else self._whole(extents)
            called = text if text not in self.thread.arrays else f"{text}, line {self.its.line(node)}"
            array = self._shared[key] = Array(called, "shared", type, size)
            self.thread.arrays[called] = array
        if array.type != type or (is_extern and len(extents) != 1) or (not is_extern and None in extents):
            raise NotFollowed("dynamic shared memory of two types is not followed", node)
        pointer = Pointer(array, z3.IntVal(0), type, 1, tuple(extents[1:]))
        is_array = inner.type == ARRAY
        self.thread.declare(text, Variable(type, pointer, is_array, not is_array))


def _type_of_value(value: Value):
    if isinstance(value, Number | Opaque):
        return value.type
    return PointerTo(value.type) if isinstance(value, Pointer) else None
