"""Which values are the same for all threads of a block, or of a warp, and which each thread can compute again.

A variable is uniform if it is changed only beside barriers, by what is uniform. All uses of it are known (uses.py).
In a warp this holds beside the places where its lanes meet, and threadIdx.x / 32 is uniform, too: warps are looked at
only in blocks whose rows are whole warps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .body import component, operands, walk
from .guard import is_along, without_casts
from .names import INDEX, THREAD, WARP_SIZE, WIDTH
from .unit_names import CASTS, INTEGERS
from .uses import Uses
from .variables import LISTS, Variable

OPERATIONS = {"binary_expression", "unary_expression", "parenthesized_expression", "conditional_expression"}
OPERATIONS |= {"condition_clause"}
WHOLE = re.compile(r"(0[xX][\da-fA-F]+|0[bB][01]+|\d+)[uUlL]*\Z")
BY_WARPS = {("/", "32"), (">>", "5"), ("/", WARP_SIZE)}


class Uniform:
    """
    Args:
        hoisted: the ids of the nodes around barriers.
        in_warp: of those around the places where lanes meet.
        votes: of the calls by which all lanes of a warp get one value.
    """

    def __init__(
        self,
        uses: Uses,
        hoisted: set[int],
        in_warp: frozenset[int] | set[int] = frozenset(),
        votes: frozenset[int] | set[int] = frozenset(),
    ):
        self.uses, self.of, self.root = uses, uses.of, uses.body.root
        self.hoisted, self.in_warp, self.votes = hoisted, in_warp, votes

    def is_same(self, node, again: bool = False, at=None, warp: bool = False) -> bool:
        """Has this expression the same value in all threads?

        Args:
            again: in this thread, whenever it is asked while `at`, a declaration, is known.
            warp: in all lanes of a warp.
        """
        kind = node.type
        if kind == "number_literal":
            return not again or bool(WHOLE.match(self.of(node)))
        if kind in ("true", "false", "sizeof_expression"):
            return True
        if kind == "identifier":
            return self._is_same_variable(node, again, at, warp)
        if kind == "field_expression":
            return self._is_same_field(node, again, warp)
        parts = node.named_children
        if kind == "cast_expression":
            to, *parts = parts
            return self.uses.is_integer_type(self.of(to)) and self.is_same(parts[0], again, at, warp)
        if node.id in self.votes:
            return warp and not again
        if kind == "call_expression":
            arguments = parts[1].named_children
            return self._is_known_call(node) and all(self.is_same(one, again, at, warp) for one in arguments)
        if warp and not again and (self._is_number_of_warp(node) or self._is_of_whole_warps(node)):
            return True
        return kind in OPERATIONS and all(self.is_same(part, again, at, warp) for part in parts)

    def _is_same_field(self, node, again: bool, warp: bool) -> bool:
        owner = node.child_by_field_name("argument")
        if owner.type != "identifier" or node.child_by_field_name("operator").type != ".":
            return False
        variable = self.uses.variable(owner)
        if self.of(owner) in INDEX and variable is None:
            along_x = self.of(node.child_by_field_name("field")) == "x"
            return again or self.of(owner) != THREAD or (warp and not along_x)
        return not again and variable is not None and variable.start == 0 and not variable.changes

    def _is_number_of_warp(self, node) -> bool:
        """Is it threadIdx.x / 32, or the thread's place in the grid by 32?"""
        left, sign, right = operands(node)
        if right is None or (sign, self._number(right)) not in BY_WARPS:
            return False
        index = self.value_of(left)
        if self._is_x(index) or is_along(self.uses.body, index, "x", self.value_of):
            return True
        first, sign, second = operands(index)
        return sign == "+" and any(
            self._is_x(self.value_of(x)) and self._is_row(self.value_of(row))
            for row, x in ((first, second), (second, first))
        )

    def _is_of_whole_warps(self, node) -> bool:
        """Is it threadIdx.x < 64 or the like, which a warp's lanes answer alike?"""
        left, sign, right = operands(node)
        if sign in ("<", ">=", "<=", ">") and self._is_x(self.value_of(left)):
            number = self._number(right)
            number = "32" if number == WARP_SIZE and self.uses.names.is_builtin(number) else number
            return number.isdigit() and (int(number) + (sign in ("<=", ">"))) % 32 == 0
        return False

    def _number(self, node) -> str:
        """A number's text, maybe that of a macro or a constant."""
        node = self.value_of(node)
        text = self.of(node)
        variable = self.uses.variable(node) if node.type == "identifier" else None
        if node.type == "identifier" and variable is None:
            text = self.uses.names.number(text) or text
        elif variable is not None and variable.is_constant and variable.value is not None:
            return self._number(variable.value)
        return text.rstrip("uU")

    def _is_x(self, node) -> bool:
        return component(self.uses.body, node) == f"{THREAD}.x"

    def _is_row(self, node) -> bool:
        """Is it a multiple of blockDim.x that a warp's lanes share?"""
        left, sign, right = operands(node)
        width = [
            component(self.uses.body, self.value_of(one)) == f"{WIDTH}.x" for one in (left, right) if one
        ]
        return sign == "*" and any(width) and all(self.is_same(one, warp=True) for one in (left, right))

    def value_of(self, node):
        """What a variable that never changes stands for, without conversions to whole numbers."""
        node = without_casts(self.uses.body, node)
        while node.type == "identifier" and (variable := self.uses.variable(node)) is not None:
            if not self.is_again(variable):
                break
            node = without_casts(self.uses.body, variable.value)
        return node

    def _is_same_variable(self, node, again: bool, at, warp: bool) -> bool:
        variable = self.uses.variable(node)
        if variable is None:
            name = self.of(node)
            known = name in self.uses.constants or self.uses.names.is_constant(name)
            return known or (name == WARP_SIZE and self.uses.names.is_builtin(name))
        if variable.is_shared and variable.statement is None:
            return True  # its address
        if variable.is_constant:
            return not again or variable.is_of(INTEGERS)
        if again:
            return (variable.is_of(INTEGERS) or self.is_whole_auto(variable)) and self._stays(variable, at)
        if variable.is_uniform or (variable.start == 0 and not variable.changes):
            return warp or not variable.is_of_warp
        return warp and self.is_again(variable) and self.is_same(variable.value, warp=True)

    def _is_known_call(self, node) -> bool:
        """A conversion to whole numbers or pointers, min, max."""
        callee = node.named_children[0]
        names, name = self.uses.names, self.of(callee)
        if callee.type == "template_function":
            name, given = (self.of(callee.child_by_field_name(field)) for field in ("name", "arguments"))
            return name in CASTS and self.uses.is_integer_type(given.strip()[1:-1].strip())
        return name in INTEGERS or (name in {"min", "max"} and names.is_builtin(name))

    def is_whole_auto(self, variable: Variable) -> bool:
        """Is it `auto` of arithmetic on whole numbers or pointers?"""
        if not variable.is_auto or variable.value is None or variable.value.type in LISTS:
            return False
        for node in walk(variable.value):
            if node.type == "number_literal" and not WHOLE.match(self.of(node)):
                return False
            other = self.uses.variable(node) if node.type == "identifier" else None
            if other is None or other.is_of(INTEGERS) or other.is_shared:
                continue
            if other.start >= variable.start or not self.is_whole_auto(other):
                return False
        return True

    def _stays(self, variable: Variable, at) -> bool:
        """Has the variable one value in this thread while `at` is known?"""
        if variable.start and not variable.is_uniform:
            return self.is_again(variable)
        for change in variable.changes:
            while change is not None and change.type not in ("for_statement", "expression_statement"):
                change = change.parent
            around = self.hoisted | self.in_warp
            if change is None or change.type != "for_statement" or change.id not in around:
                return False
            if not change.start_byte <= at.start_byte < change.end_byte:
                return False
        return True

    def is_again(self, variable: Variable) -> bool:
        """Is it arithmetic on whole numbers that do not change, so that each phase can compute it?"""
        if variable.value is None or variable.statement is None or variable.changes:
            return False
        if not variable.is_of(INTEGERS) and not self.is_whole_auto(variable):
            return False
        earlier = all(v.start < variable.start for v in self.uses.variables(variable.value))
        return earlier and self.is_same(variable.value, True, variable.statement)

    def place(self, node) -> str:
        """Where the node is a statement of its own, or stands in a loop's header: "block" if that is around a barrier,
        "warp" if lanes meet in it, "" elsewhere."""
        statement = node
        if node.type != "declaration":
            while statement.parent.type in ("comma_expression", "parenthesized_expression"):
                statement = statement.parent
            if statement.parent.type == "expression_statement":
                statement = statement.parent
        parent = statement.parent
        header = parent.type == "for_statement" and statement.type != "compound_statement"
        if parent.id == self.root.id:
            return "block" if self.hoisted or not self.in_warp else "warp"
        if not header and parent.type != "compound_statement":
            return ""
        return "block" if parent.id in self.hoisted else "warp" if parent.id in self.in_warp else ""

    def find(self):
        """All that may be uniform, less those of which something speaks against it."""
        scopes = self.uses.scopes
        for variable in scopes:
            known = None not in variable.changes
            known = known and (variable.is_of(INTEGERS) or self.is_whole_auto(variable))
            if variable.start == 0:
                known, place = known and bool(variable.changes), "block"
            else:
                known = known and variable.statement is not None
                place = self.place(variable.statement) if known else ""
            variable.is_of_warp = place == "warp"
            variable.is_uniform = (
                known and bool(place) and all(self.place(c) == place for c in variable.changes)
            )
        before = None
        while before != (before := [v for v in scopes if v.is_uniform]):
            for variable in before:
                beside = [v for v in scopes if v.statement and v.statement == variable.statement]
                values = [v.value for v in beside if v.value is not None] + list(self._operands(variable))
                same = all(self.is_same(value, warp=variable.is_of_warp) for value in values)
                variable.is_uniform = same and all(v.is_uniform for v in beside)

    def _operands(self, variable: Variable) -> Iterator:
        """What must be the same for all threads: what is assigned, and what stands beside that behind a comma."""
        for change in variable.changes:
            if change.type == "assignment_expression":
                yield change.child_by_field_name("right")
            while change.parent.type in ("comma_expression", "parenthesized_expression"):
                change = change.parent
                yield from (part for part in change.named_children if not self.is_step(part))

    def is_step(self, node) -> bool:
        """Does the node change a uniform variable, and nothing else?"""
        while node.type == "parenthesized_expression":
            node = node.named_children[0]
        if node.type == "comma_expression":
            return all(self.is_step(part) for part in node.named_children)
        field = {"assignment_expression": "left", "update_expression": "argument"}.get(node.type)
        place = node.child_by_field_name(field) if field else None
        variable = self.uses.variable(place) if place is not None and place.type == "identifier" else None
        return variable is not None and variable.is_uniform
