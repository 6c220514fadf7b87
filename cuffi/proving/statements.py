"""Statements of C++, run by the generic thread: both ways of an `if`, and any iteration of a loop (loops.py)."""

from __future__ import annotations

from collections.abc import Callable

import z3

from .declarations import Declarations
from .expressions import Expressions
from .groups import ALIAS, TILE
from .loops import Loops
from .thread import Loop, Thread
from .types import NotFollowed
from .values import Group, Value, Variable

NO_EFFECT = {"comment", "static_assert_declaration", ";", "empty_statement", "preproc_call"}


class Statements(Declarations):
    def __init__(self, thread: Thread, expressions: Expressions):
        super().__init__(thread, expressions)
        self.loops = Loops(thread, expressions, self.run)
        expressions.calls.run_body = self.run

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
        if (match := TILE.match(self.its.of(node))) and node.named_children:
            return self._tile(match[1], node)
        for one in node.named_children:
            if one.type != "comment":
                self.its.value(one)

    def _tile(self, name: str, node):
        """`cg::thread_block_tile<32> tile = ...`, which the grammar takes for comparisons."""
        inner = node.named_children[0]
        while inner.type == "binary_expression":
            inner = self.its.field(inner, "right")
        made = (
            self.its.value(self.its.field(inner, "right")) if inner.type == "assignment_expression" else None
        )
        if not isinstance(made, Group) or self.its.of(self.its.field(inner, "left")) != name:
            raise NotFollowed("this tile is not followed", node)
        self.thread.declare(name, Variable(None, made))

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
