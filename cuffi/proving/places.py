"""Where the values of expressions are, and what becomes of a value that is stored or converted."""

from __future__ import annotations

from dataclasses import replace

import z3

from .reading import Code, Text
from .thread import LAUNCH, Thread, element, is_followed, opaque_of
from .types import BOOL, INT, Integer, NotFollowed, PointerTo, Type, Vector, Void, type_of
from .values import Lost, Number, Opaque, Place, Pointer, Value, Variable, truth


class Places:
    """Of expressions in `code`, the function that the thread is in. `written`: names of arrays that are written."""

    def __init__(self, thread: Thread, text: Text, code: Code, written: set[str]):
        self.thread, self.text, self.code, self.written = thread, text, code, written
        self.math = thread.math
        self.names: dict[str, Type] = dict(text.types)
        self.indices: list[tuple] = []  # of rows: guard, index, extent, line
        self._nulls: dict[str, Number] = {}

    def value(self, node) -> Value:
        raise NotImplementedError

    def number(self, node) -> Number:
        raise NotImplementedError

    def of(self, node) -> str:
        return self.code.body.of(node)

    def line(self, node) -> Place:
        return self.code.line(node)

    def field(self, node, name: str):
        found = node.child_by_field_name(name)
        if found is None:
            raise NotFollowed(f"{self.of(node)[:40]} is not followed", node)
        return found

    def type(self, words: str, node=None) -> Type:
        try:
            return type_of(words, self.names)
        except NotFollowed as error:
            raise NotFollowed(error.text, node) from None

    def is_there(self, pointer: Pointer) -> Number:
        """Is it another pointer than null? That is the same for all threads, if it is what the kernel got."""
        if pointer.array.space != "global":
            return truth(True)
        if not pointer.offset.eq(z3.IntVal(0)):
            return self.thread.fresh(BOOL, "pointer")
        name = f"is {pointer.array.name} there"
        if name not in self._nulls:
            self._nulls[name] = Number(self.thread.named(name, LAUNCH, INT, 0, 1).term != 0, BOOL)
        return self._nulls[name]

    def converted(self, value: Value, type: Type | None, node=None) -> Value:
        """As the value of a variable of this type."""
        if type is None or isinstance(value, Lost):
            return value
        if isinstance(type, Integer):
            if isinstance(value, Number):
                return self.math.into(value, type)
            if isinstance(value, Pointer) and type == BOOL:
                return self.is_there(value)
            if isinstance(value, Pointer):
                raise NotFollowed("a pointer as a number is not followed", node)
            return self.thread.fresh(type, "number")
        if isinstance(type, PointerTo):
            if not isinstance(value, Pointer):
                return Lost("a pointer that is not followed")
            return self.reinterpreted(value, type, node)
        if isinstance(type, Void):
            return Opaque()
        if isinstance(value, Pointer):
            raise NotFollowed("a pointer as another value is not followed", node)
        return opaque_of(type)

    def reinterpreted(self, pointer: Pointer, type: PointerTo, node=None) -> Pointer:
        """As a pointer to another type."""
        to = type.to
        if isinstance(to, Void) or (to == pointer.type and not pointer.dims):
            return pointer
        if pointer.dims:
            raise NotFollowed("a row as another pointer is not followed", node)
        own = pointer.array.type
        if own == to:
            return Pointer(pointer.array, pointer.offset, to)
        if isinstance(to, PointerTo) or to.size is None or own.size is None or to.size % own.size:
            raise NotFollowed(f"a pointer to {own} as one to {getattr(to, 'name', to)} is not followed", node)
        return Pointer(pointer.array, pointer.offset, to, to.size // own.size)

    def place(self, node) -> Variable | Pointer:
        """Where an expression's value is: a variable, or memory."""
        if node.type == "parenthesized_expression":
            return self.place(node.named_children[0])
        if node.type == "identifier":
            found = self.thread.lookup(self.of(node))
            if found is None:
                raise NotFollowed(f"{self.of(node)} is not a variable of the kernel", node)
            return self._memory(found.value, node) if found.is_memory else found
        if node.type == "subscript_expression":
            return self._element(node)
        if node.type == "pointer_expression" and self.of(node).startswith("*"):
            return self._memory(self.value(self.field(node, "argument")), node)
        if node.type == "field_expression":
            return self._part(node)
        raise NotFollowed(f"{self.of(node)[:40]} is not followed as a place", node)

    def _memory(self, value: Value, node) -> Pointer:
        is_followed(value, node)
        if not isinstance(value, Pointer):
            raise NotFollowed(f"{self.of(node)[:40]}: this array is not followed", node)
        return value

    def _element(self, node) -> Pointer:
        inner = self.field(node, "argument")
        base = self._memory(self.value(inner), node)
        given = self.field(node, "indices").named_children
        if len(given) != 1:
            raise NotFollowed("several indices in brackets are not followed", node)
        index = self._offset(self.number(given[0]))
        if base.within is not None and self.thread.is_recording:
            self.indices.append((self.thread.path(), index, base.within, self.line(node)))
        made = element(base, index, self.math)
        if base.dims:
            return Pointer(made.array, made.offset, made.type, made.unit, made.dims[1:], base.dims[0], True)
        return made

    def _offset(self, index: Number):
        """As it is added to a pointer: of 64 bits."""
        return self.math.exact(index) if index.type.bits == 64 else self.math.plain(index)

    def _part(self, node) -> Variable | Pointer:
        """Of x.a and x->a, for int4 and the like."""
        if self.field(node, "operator").type == "->":
            of: Variable | Pointer = self._memory(self.value(self.field(node, "argument")), node)
        else:
            of = self.place(self.field(node, "argument"))
        if isinstance(of, Variable | Pointer) and isinstance(of.type, Vector):
            if isinstance(of, Variable):
                return Variable(of.type, Opaque(of.type))  # a part of it has any value
            if not of.dims and not of.is_row:
                return of
        raise NotFollowed(f"{self.of(node)[:40]}: this structure is not followed", node)

    def loaded(self, place: Variable | Pointer, node) -> Value:
        """The value of a place that this expression names."""
        if isinstance(place, Pointer) and place.is_row:
            return replace(place, is_row=False)
        if isinstance(place, Pointer) and (place.dims or isinstance(place.type, PointerTo)):
            return Lost("a pointer that lies in memory is not followed")
        value = (
            place.value
            if isinstance(place, Variable)
            else self.thread.read(place, self.line(node), self.written)
        )
        if node.type == "field_expression" and isinstance(place.type, Vector):
            its = place.type.element
            return self.thread.fresh(its, "field") if isinstance(its, Integer) else Opaque(its)
        return is_followed(value, node)

    def stored(self, place: Variable | Pointer, value: Value, node):
        if isinstance(place, Variable):
            if place.is_array:
                raise NotFollowed("an array is assigned to", node)
            self.thread.assign(place, self.converted(value, place.type, node))
        elif place.dims or place.is_row or isinstance(place.type, PointerTo) or isinstance(value, Pointer):
            raise NotFollowed(f"{self.of(node)[:40]}: what is stored is not followed", node)
        else:
            self.thread.access(place, "w", self.line(node))
