"""Loops of threads that become loops over threads: turns are outside, and what lies side by side is read in one go.

    for (int i = threadIdx.x; i < d; i += blockDim.x) s += p[i];    each thread's i, then each one's i + blockDim.x ...
    for (int k = 0; k < 32; ++k) sum.x += a[r][k] * b[k][c].x;      each thread's turn of k = 0, then of k = 1 ...

The first is a *strided* loop: neighbours begin at neighbours, and all go on by as much, up to one end. The second is a
*common* loop, whose head is the same for all threads. g++ itself vectorises sums of numbers over the threads, but none
of a `float4`; so only loops are taken in which fields of a variable change. Between two barriers no thread may see what
another one does, so the order of turns is nobody's business, if it is not told by atomics, printf and the like.
"""

from __future__ import annotations

from typing import NamedTuple

from .body import component, operands, walk
from .guard import WORDS_OF_NUMBERS, is_along_x
from .names import THREAD, WARP_SIZE
from .uniform import Uniform
from .unit_names import VECTORS
from .uses import LOOPS, Uses, Variable

JUMPS = {"return_statement", "goto_statement", "labeled_statement", "co_return_statement"}
CALLED = {"identifier", "template_function", "qualified_identifier", "primitive_type"}
LANES = {("%", "32"), ("&", "31"), ("%", WARP_SIZE)}


class Strided(NamedTuple):
    """A strided loop: its variable, and the nodes of its end, its head and its body."""

    variable: Variable
    sign: str  # `<` or `<=`
    end: object
    head: list
    body: object


class Interchange:
    """
    Args:
        value_of: what a variable stands for that each phase can compute again.
    """

    def __init__(self, uses: Uses, uniform: Uniform, value_of):
        self.uses, self.uniform, self.of, self.value_of = uses, uniform, uses.of, value_of

    def strided(self, node, lanes: bool) -> Strided | None:
        """The loop, if it is one. lanes: of a warp."""
        if node.type != "for_statement":
            return None
        first, condition, step, body = (
            node.child_by_field_name(field) for field in ("initializer", "condition", "update", "body")
        )
        variable = next((v for v in self.uses.scopes if v.statement and v.statement == first), None)
        if None in (first, condition, step, body) or variable is None or variable.value is None:
            return None
        if len(first.children_by_field_name("declarator")) != 1 or variable.stars != 0:
            return None
        if not set(variable.words) <= WORDS_OF_NUMBERS - {"const"} or variable.changes != [step]:
            return None
        left, sign, end = operands(condition)
        counts = end is not None and sign in ("<", "<=") and self.uses.variable(left) is variable
        if not counts or not self.uniform.is_same(end, warp=lanes):
            return None
        by = step.child_by_field_name("right") if step.type == "assignment_expression" else None
        is_sum = by is not None and step.child_by_field_name("operator").type == "+="
        if not is_sum or not self.uniform.is_same(by, warp=lanes) or self._slope(variable.value, lanes) != 1:
            return None
        if not in_any_order(self.uses, body):
            return None
        return Strided(variable, sign, end, [first, condition, step], body)

    def _slope(self, node, lanes: bool) -> int | None:
        """By how much the expression grows from a thread to the next one of its row, or of its warp."""
        node = self.value_of(node)
        while node.type == "parenthesized_expression":
            node = node.named_children[0]
        asked = component(self.uses.body, node)
        if asked == f"{THREAD}.x" or is_along_x(self.uses.body, node, self.value_of):
            return 1
        if asked or self.uniform.is_same(node, warp=lanes):
            return 0
        left, sign, right = operands(node)
        if lanes and right is not None and (sign, self.of(right)) in LANES:
            return 1 if component(self.uses.body, self.value_of(left)) == f"{THREAD}.x" else None
        if sign == "+":
            one, other = (self._slope(part, lanes) for part in (left, right))
            return None if one is None or other is None else one + other
        if sign in ("*", "-") and [self._slope(one, lanes) for one in (left, right)] == [0, 0]:
            return 0
        return None


def common_loops(uses: Uses, compound, hoisted: set[int]) -> list:
    """The statements of a compound that may be common loops."""
    found = []
    for node in compound.named_children:
        body = node.child_by_field_name("body") if node.type == "for_statement" else None
        if body is None or body.type != "compound_statement" or node.id in hoisted:
            continue
        if _changes_fields(uses, node) and in_any_order(uses, body):
            found.append(node)
    return found


def _changes_fields(uses: Uses, loop) -> bool:
    """Do fields of a vector change that is declared outside?"""
    for change in (n for n in walk(loop) if n.type == "assignment_expression"):
        place = change.child_by_field_name("left")
        owner = place.child_by_field_name("argument") if place.type == "field_expression" else None
        variable = uses.variable(owner) if owner is not None and owner.type == "identifier" else None
        if variable is not None and variable.statement is not None and set(variable.words) & VECTORS:
            return not loop.start_byte <= variable.start < loop.end_byte
    return False


def in_any_order(uses: Uses, body) -> bool:
    """Sees nobody in which order threads do this, if none of them sees what another one does?"""
    for node in walk(body):
        if node.type == "call_expression" and node.child_by_field_name("function").type not in CALLED:
            return False  # a member function or the like
        if node.type in ("identifier", "type_identifier") and uses.names.tells(uses.of(node)):
            return False
    return _stays(body)


def _stays(node, in_loop: bool = False, in_switch: bool = False) -> bool:
    """Is there no jump out of it?"""
    kind = node.type
    if kind in JUMPS or (kind == "continue_statement" and not in_loop):
        return False
    if kind == "break_statement" and not in_loop and not in_switch:
        return False
    inside = (in_loop or kind in LOOPS, in_switch or kind == "switch_statement")
    return all(_stays(child, *inside) for child in node.named_children)
