"""Loops by which the whole grid walks over a range of indices, as people write CUDA_KERNEL_LOOP by hand.

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = x[i];
    int i = ..., stride = gridDim.x * blockDim.x; while (i < n) { y[i] = x[i]; i += stride; }

Each thread's elements are far apart. If an iteration has nothing of another one, and the threads are used for nothing
else, a few calls can run contiguous parts of the range. The same text serves both: `caffe_range` is a type, true for a
call that runs a part, and false for one thread of a grid of another shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from .body import Body, component, operands, plain, walk
from .guard import is_along, without_casts
from .names import GRID, INDEX, WIDTH
from .outline import Function
from .reasons import Reason, Unclear, check
from .source import Source
from .tokens import LOOP, position_from
from .uniform import Uniform
from .unit_names import INTEGERS, UnitNames
from .uses import LOOPS, Uses
from .variables import Variable

PURE = re.compile(r"(__ldg|min|max|abs|fabs|sqrt|exp|log|static_cast|reinterpret_cast)[fl]?\Z")
UNCLEAR = {"goto", "decltype", "typeof", "printf", "__shared__", "caffe_range", "caffe_end_x", "caffe_end_y"}
NO_LOOP = "no loop over the grid"


class _Loop(NamedTuple):
    node: Any  # the statement
    variable: Variable
    axis: str
    bound: Any
    step: Any  # the node that is added


class Strides:
    """The loops over the grid in a kernel whose threads wait for nobody."""

    def __init__(self, source: Source, function: Function, names: UnitNames):
        self.source, self.body = source, Body(source, function)
        self.of = self.body.of
        words = self.body.words
        directives = (*source.lexed.directives, *source.lexed.conditions)
        inside = [d for d in directives if function.body < d.start < function.end and d.word != "pragma"]
        self._check(
            not self.body.tree.has_error, "a statement that the parser does not know", self.body.unread()
        )
        self._check(not inside, "a preprocessor line in the kernel", inside[0].start if inside else None)
        unclear = UNCLEAR & words | {word for word in words if LOOP.match(word)}
        self._check(not unclear, f"{' and '.join(sorted(unclear))} in the kernel", self.body.first(unclear))
        tokens = source.lexed.tokens
        head = tokens[position_from(tokens, function.head) : position_from(tokens, function.body)]
        pairs = [(a.text, b.text) for a, b in pairwise(head)]
        self.uses = Uses(self.body, function, names, {b for a, b in pairs if a in ("typename", "class")})
        self.uses.constants |= {b for a, b in pairs if a in INTEGERS} - {p.name for p in function.parameters}
        self.uniform = Uniform(self.uses, set())

    def _check(self, holds: bool, why: str = NO_LOOP, at=None):
        check(self.body, holds, why, at)

    def _value(self, node):
        """What a variable that never changes stands for."""
        node = without_casts(self.body, node)
        while node.type == "identifier" and (variable := self.uses.variable(node)) is not None:
            if variable.changes or variable.value is None or variable.statement is None:
                break
            if not variable.is_of(INTEGERS) and not self.uniform.is_whole_auto(variable):
                break
            node = without_casts(self.body, variable.value)
        return node

    def _axis(self, start) -> str:
        """The axis along which a value is the thread's place in the grid; "" of none."""
        node = self._value(start)
        return next((axis for axis in "xy" if is_along(self.body, node, axis, self._value)), "")

    def _is_width(self, step, axis: str) -> bool:
        """Is it blockDim.x * gridDim.x?"""
        left, sign, right = operands(self._value(step))
        if sign != "*":
            return False
        return {component(self.body, self._value(part)) for part in (left, right)} == {
            f"{WIDTH}.{axis}",
            f"{GRID}.{axis}",
        }

    def _loop(self, node) -> _Loop | None:
        """The statement as a loop over the grid; None of another one."""
        condition = node.child_by_field_name("condition")
        if condition is None:
            return None
        left, sign, right = operands(
            plain(condition.named_children[0] if node.type == "while_statement" else condition)
        )
        if sign not in ("<", ">"):
            return None
        index, bound = (left, right) if sign == "<" else (right, left)
        index = plain(index)
        variable = self.uses.variable(index) if index.type == "identifier" else None
        if (
            variable is None
            or variable.value is None
            or not variable.is_of(INTEGERS)
            or len(variable.changes) != 1
        ):
            return None
        step, axis = self._added(variable.changes[0]), self._axis(variable.value)
        if step is None or not axis or not self._is_width(step, axis):
            return None
        if not self._steps_in(node, variable) or not self.uniform.is_same(bound):
            return None
        return _Loop(node, variable, axis, bound, step)

    def _added(self, change):
        """S of `i += S` and `i = i + S`."""
        if change is None or change.type != "assignment_expression":
            return None
        left, right = (change.child_by_field_name(field) for field in ("left", "right"))
        if change.child_by_field_name("operator").type == "+=":
            return right
        first, sign, second = operands(plain(right))
        return second if sign == "+" and self.of(first) == self.of(left) else None

    def _steps_in(self, node, variable: Variable) -> bool:
        """Is the step the loop's own, and the variable no other statement's?"""
        change, body = variable.changes[0], node.child_by_field_name("body")
        if node.type == "for_statement":
            initializer = node.child_by_field_name("initializer")
            return node.child_by_field_name("update") == change and initializer == variable.statement
        last = body.named_children[-1] if body.type == "compound_statement" and body.named_children else None
        if last is None or change.parent != last or any(n.type == "continue_statement" for n in walk(body)):
            return False
        used = [
            n for n in walk(self.body.root) if n.type == "identifier" and self.uses.variable(n) == variable
        ]
        inside = [n for n in used if node.start_byte <= n.start_byte < node.end_byte]
        return len(used) == len(inside) + 1  # and where it is declared

    def _loops(self) -> list[_Loop]:
        found = []
        for node in walk(self.body.root):
            if node.type in ("for_statement", "while_statement") and (loop := self._loop(node)):
                found.append(loop)
        outer = found[0] if found else None
        self._check(
            outer is not None and len(found) <= 2 and len({loop.axis for loop in found}) == len(found)
        )
        if len(found) == 2:
            within = found[0].node.end_byte >= found[1].node.end_byte
            self._check(within, "two loops over the grid", found[1].node)
            body = found[0].node.child_by_field_name("body")
            beside = body.named_children if body.type == "compound_statement" else [body]
            self._check(found[1].node in beside, "a loop deep in another one", found[1].node)
            for node in beside:
                known = node.type in ("declaration", "comment") or node == found[1].node
                self._check(known, "a statement between two loops over the grid", node)
        alone = len(found) == 1 and found[0].axis != "x"
        self._check(not alone, "a loop along y alone", found[0].node)
        return found

    def _check_threads(self, loops: list[_Loop]):
        """Nothing but these loops asks for a thread or a block, or for variables that do."""
        allowed: list[Any] = [part for loop in loops for part in (loop.variable.value, loop.step)]
        personal: list[Variable] = []
        for variable in self.uses.scopes:
            if variable.value is not None and variable.statement is not None:
                named = any(component(self.body, n).split(".")[0] in INDEX for n in walk(variable.value))
                others = [v for v in self.uses.variables(variable.value) if v in personal]
                if (named or others) and not any(loop.variable == variable for loop in loops):
                    self._check(not variable.changes, f"{variable.name} is changed", variable.statement)
                    personal.append(variable)
                    allowed.append(variable.value)
        guards = {n.id for guard in self._guards(loops) for n in walk(guard)}
        for node in walk(self.body.root):
            asks = node.type == "identifier" and self.of(node) in INDEX
            asks = asks or (node.type == "identifier" and self.uses.variable(node) in personal)
            if not asks or node.id in guards or node.start_byte in {v.start for v in personal}:
                continue
            is_within = any(part.start_byte <= node.start_byte < part.end_byte for part in allowed)
            self._check(is_within, "the thread's place is used for more than the loop", node)

    def _guards(self, loops: list[_Loop]) -> Iterator:
        """The conditions before the loop which say that the thread has no element: `if (tid >= n) return;`."""
        first = loops[0]
        for node in walk(self.body.root):
            if node.type != "if_statement" or node.end_byte > first.node.start_byte:
                continue
            left, sign, right = operands(plain(node.child_by_field_name("condition").named_children[0]))
            way = node.child_by_field_name("consequence")
            while way.type == "compound_statement" and way.named_child_count == 1:
                way = way.named_children[0]
            leaves = way.type == "return_statement" and node.child_by_field_name("alternative") is None
            same = right is not None and self.of(plain(right)) == self.of(plain(first.bound))
            if leaves and same and sign == ">=" and self._axis(left) == first.axis:
                yield node

    def _check_around(self, loops: list[_Loop]):
        """What stands around the loops writes nothing, and an iteration has nothing of another one."""
        outer, inner = loops[0].node, loops[-1].node
        inside = range(inner.start_byte, inner.end_byte)
        guards = {guard.id for guard in self._guards(loops)}
        for statement in self.body.root.named_children:
            known = statement.type in ("declaration", "comment", "type_definition", "alias_declaration")
            known = known or statement == outer or statement.id in guards
            self._check(known, "a statement beside the loop", statement)
        for node in walk(self.body.root):
            if node.type == "call_expression" and node.start_byte not in inside:
                name = self.of(node.named_children[0]).split("<")[0].strip()
                known = name in INTEGERS or bool(PURE.match(name))
                self._check(known, f"a call of {name} beside the loop", node)
        self._jumps(inner.child_by_field_name("body"), False)
        for variable in self.uses.scopes:
            if any(loop.variable == variable for loop in loops) or variable.start >= inner.start_byte:
                continue
            change = next((node for node in variable.changes if node is not None), None)
            self._check(not variable.changes, f"{variable.name} is changed", change)

    def _jumps(self, node, is_own: bool):
        """No jump out of the loop. is_own: within a loop or switch of the body."""
        self._check(node.type != "return_statement", "a return in the loop", node)
        self._check(node.type != "break_statement" or is_own, "a break of the loop", node)
        for child in node.named_children:
            self._jumps(child, is_own or node.type in LOOPS or node.type == "switch_statement")

    def edits(self) -> list[tuple[int, int, str]]:
        loops = self._loops()
        self._check_threads(loops)
        self._check_around(loops)
        edits = []
        for loop in loops:
            whole = "false" if loop is loops[0] else "true"
            start, end = self.body.place(loop.node)
            bound = " ".join(self.of(loop.bound).split())
            kind = " ".join(word for word in loop.variable.words if word != "const")
            name = f"caffe_end_{loop.axis}"
            last = f"::cuda_host::range_end<{kind}, {whole}>(caffe_range, {bound})"
            edits.append((start, start, f"{{ const auto {name} = {last}; "))
            value = self.body.place(loop.variable.value)
            begin = f"caffe_range ? ::cuda_host::range_begin<{kind}, {whole}>(caffe_range, {bound})"
            begin += f" : static_cast<{kind}>("
            edits += [(value[0], value[0], begin), (value[1], value[1], ")")]
            edits.append((*self.body.place(loop.bound), name + self._blank(loop.bound, name)))
            step = self.body.place(loop.step)
            edits += [(step[0], step[0], "caffe_range ? 1 : ("), (step[1], step[1], ")")]
            edits.append((end, end, " }"))
        return edits

    def _blank(self, node, name: str) -> str:
        """Blanks in place of the rest of a node's text, so that what follows keeps its column."""
        return re.sub(r"[^\n]", " ", self.of(node))[len(name) :] + "\n" * self.of(node)[: len(name)].count(
            "\n"
        )


def strides_of(
    source: Source, function: Function, names: UnitNames
) -> tuple[list[tuple[int, int, str]], int] | Reason:
    """The edits by which loops over the grid become ranges, and the number of axes; or why there are none."""
    try:
        found = Strides(source, function, names)
        edits = found.edits()
        return edits, len(found._loops())
    except Unclear as unclear:
        return unclear.reason(source, function)
