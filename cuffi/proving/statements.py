"""Statements of C++, run by the generic thread: both ways of an `if`, and any iteration of a loop (loops.py)."""

from __future__ import annotations

from collections.abc import Callable

import z3

from ..judging.rewriters import declarators
from .expressions import Expressions
from .groups import ALIAS, WORDS
from .loops import Loops
from .thread import Loop, Thread
from .types import INT, Integer, NotFollowed, PointerTo, Real
from .values import Array, Group, Lost, Number, Opaque, Pointer, Value, Variable

NO_EFFECT = {"comment", "static_assert_declaration", ";", "empty_statement", "preproc_call"}
ARRAY = "array_declarator"


class Statements:
    def __init__(self, thread: Thread, expressions: Expressions):
        self.thread, self.its = thread, expressions
        self.loops = Loops(thread, expressions, self.run)
        expressions.calls.run_body = self.run
        self._shared: dict[object, Array] = {}

    def run(self, node):
        if node.type in NO_EFFECT:
            return
        handler: Callable | None = getattr(self, f"_{node.type}", None)
        if handler is None:
            raise NotFollowed(f"{node.type}: {self.its.of(node)[:40]} is not followed", node)
        handler(node)

    def _compound_statement(self, node):
        self.thread.scopes.append({})
        for one in node.named_children:
            self.run(one)
        self.thread.scopes.pop()

    def _expression_statement(self, node):
        for one in node.named_children:
            if one.type != "comment":
                self.its.value(one)

    def _else_clause(self, node):
        self.run([one for one in node.named_children if one.type != "comment"][-1])

    def _labeled_statement(self, node):
        raise NotFollowed("a label is not followed", node)

    def _attributed_statement(self, node):
        self.run(node.named_children[-1])

    def _type_definition(self, node):
        raise NotFollowed("a type of the function's own is not followed", node)

    def _alias_declaration(self, node):
        name, type = self.its.field(node, "name"), self.its.field(node, "type")
        self.its.names[self.its.of(name)] = self.its.type(self.its.of(type), node)

    def _namespace_alias_definition(self, node):
        if not ALIAS.fullmatch(self.its.of(node).strip()):
            raise NotFollowed("this namespace is not followed", node)

    def _using_declaration(self, node):
        pass

    # ---- declarations
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

    # ---- control
    def _if_statement(self, node):
        asked_node = self.its.field(node, "condition")
        asked = self.its.condition(asked_node)
        yes, no = self.its.field(node, "consequence"), node.child_by_field_name("alternative")
        self.branch(asked, lambda: self.run(yes), (lambda: self.run(no)) if no is not None else None)

    def branch(self, asked, yes: Callable[[], None], no: Callable[[], None] | None):
        thread = self.thread
        if z3.is_true(asked) or z3.is_false(asked):
            if chosen := yes if z3.is_true(asked) else no:
                self._scoped(chosen)
            return
        before, ids, has_met = thread.snapshot(), thread.ids, thread.has_met
        thread.conditions.append(asked)
        self._scoped(yes)
        after = {id(one): one.value for one, _ in before}
        ids_of_yes, met_in_yes = thread.ids, thread.has_met
        thread.restore(before)
        thread.ids, thread.has_met = ids, has_met
        thread.conditions[-1] = z3.Not(asked)
        if no:
            self._scoped(no)
        thread.conditions.pop()
        thread.ids, thread.has_met = thread.ids | ids_of_yes, thread.has_met and met_in_yes
        for variable in {id(one): one for one, _ in before}.values():
            if variable.value is not after[id(variable)]:
                variable.value = thread.merged(asked, after[id(variable)], variable.value)

    def _scoped(self, run: Callable[[], None]):
        self.thread.scopes.append({})
        run()
        self.thread.scopes.pop()

    def _for_statement(self, node):
        self.thread.scopes.append({})
        first = node.child_by_field_name("initializer")
        if first is not None:
            self.run(first) if first.type == "declaration" else self.its.value(first)
        fields = (node.child_by_field_name(one) for one in ("condition", "update"))
        self.loops.run(*fields, self.its.field(node, "body"), node)
        self.thread.scopes.pop()

    def _while_statement(self, node):
        self.loops.run(self.its.field(node, "condition"), None, self.its.field(node, "body"), node)

    def _do_statement(self, node):
        """The body, and then a `while` loop, if that was not left."""
        body, asked = self.its.field(node, "body"), self.its.field(node, "condition")
        loop = Loop(depth=len(self.thread.conditions))
        self.thread.loops.append(loop)
        self._scoped(lambda: self.run(body))
        self.thread.loops.pop()
        if loop.is_left or not z3.is_false(loop.has_continued):
            raise NotFollowed("a do loop that is left within is not followed", node)
        self.loops.run(asked, None, body, node)

    def _return_statement(self, node):
        thread, frame = self.thread, self.thread.frames[-1]
        inside = [one for one in node.named_children if one.type != "comment"]
        value = self.its.value(inside[0]) if inside else None
        here = z3.simplify(thread.leaves_by(frame.depth))
        if value is not None:
            first = frame.value is None
            here_first = z3.And(here, z3.Not(frame.has_returned))
            frame.value = value if first else self._merged(here_first, value, frame.value)
        frame.has_returned = z3.simplify(z3.Or(frame.has_returned, here))
        frame.ids |= thread.ids
        frame.has_met &= thread.has_met
        for loop in thread.loops[frame.loops :]:
            loop.is_left = True

    def _merged(self, asked, yes: Value, no) -> Value:
        return self.its.chosen(asked, yes, no)

    def _break_statement(self, node):
        loop = self._loop(node)
        if not loop.is_switch:
            loop.is_left = True
        loop.has_broken = z3.simplify(z3.Or(loop.has_broken, self._here(loop)))
        loop.ids |= self.thread.ids

    def _continue_statement(self, node):
        loop = self._loop(node)
        if loop.is_switch:
            raise NotFollowed("continue in a switch is not followed", node)
        loop.has_continued = z3.simplify(z3.Or(loop.has_continued, self._here(loop)))
        loop.ids |= self.thread.ids
        loop.has_met &= self.thread.has_met

    def _loop(self, node) -> Loop:
        if not self.thread.loops:
            raise NotFollowed("this leaves no loop", node)
        return self.thread.loops[-1]

    def _here(self, loop: Loop):
        return z3.And(self.thread.leaves_by(loop.depth), z3.BoolVal(True))


def _type_of_value(value: Value):
    if isinstance(value, Number | Opaque):
        return value.type
    return PointerTo(value.type) if isinstance(value, Pointer) else None
