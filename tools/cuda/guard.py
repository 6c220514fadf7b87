"""The guard of a kernel: the `if` before all that it does, which lets a stretch of a row's threads in.

    int i = blockIdx.x * blockDim.x + threadIdx.x;        int c = ..., r = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < n) y[i] = x[i];                               if (c >= w || r >= h) return;

If the launcher knows the first and the last thread of a row that come in, it runs those in a loop without the question,
which g++ vectorises (call_blocks in include/host/cuda_launch.h). It asks at both ends of the row. So each comparison
must be true from some thread on, or up to one: the index along x stands alone on one side, and nothing on the other
side depends on it. Everything before the `if`, and in it, is arithmetic on the kernel's own numbers. So the answer is
the same whenever it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from .body import Body, component, operands, plain, walk
from .names import BLOCK, INDEX, THREAD, WIDTH
from .outline import Function
from .reasons import Reason, Unclear, check
from .source import Source
from .variables import declared

WORDS_OF_NUMBERS = {
    *("const", "int", "unsigned", "signed", "long", "size_t", "ssize_t", "ptrdiff_t"),
    *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (32, 64)),
}
ARITHMETIC = {"+", "-", "*", "/", "%"}
COMPARISONS = {"<", ">", "<=", ">="}
EQUALITIES = {"==", "!="}
NUMBER = re.compile(r"[-+]?(0|[1-9]\d*)[uUlL]*\Z")
SMALL = re.compile(r"[-+]?\d{1,6}\Z")
NO_IF = "no `if` before all that it does"
UNCLEAR = {"goto", "static", "__shared__"}
DEPENDS_ON_X = {f"{THREAD}.x", f"{BLOCK}.x"}


class Guard(NamedTuple):
    after: int  # offset behind the token before the `if`
    condition: tuple[int, int]  # offsets of what stands in its parentheses
    leaves: bool  # `if (...) return;`: who is not let in
    text: str  # the condition, on one line


def _is_number(type_text: str) -> bool:
    words = type_text.split()
    return bool(words) and set(words) <= WORDS_OF_NUMBERS | {"auto"} and words != ["const"]


def without_casts(body: Body, node):
    """An expression without parentheses, and without conversions to whole numbers."""
    node = plain(node)
    while node.type == "cast_expression" and set(body.of(node.named_children[0]).split()) <= WORDS_OF_NUMBERS:
        node = plain(node.child_by_field_name("value"))
    return node


def is_along_x(body: Body, node, value=lambda node: node) -> bool:
    return is_along(body, node, "x", value)


def is_along(body: Body, node, axis: str, value=lambda node: node) -> bool:
    """Is it blockIdx.x * blockDim.x + threadIdx.x, in any order? value: what stands for a variable."""
    left, sign, right = operands(node)
    if sign != "+":
        return False
    for product, other in ((left, right), (right, left)):
        factors = operands(without_casts(body, product))
        if factors[1] == "*" and component(body, without_casts(body, value(other))) == f"{THREAD}.{axis}":
            found = {component(body, without_casts(body, factors[i])) for i in (0, 2)}
            return found == {f"{BLOCK}.{axis}", f"{WIDTH}.{axis}"}
    return False


class GuardReader:
    """Reads the beginning of a kernel's body."""

    def __init__(self, body: Body, function: Function):
        self.body = body
        self.types = {p.name: p.type for p in function.parameters if _is_number(p.type)}
        # "x": the index along x. "": nothing of it. "?": anything else.
        self.along = dict.fromkeys(self.types, "")

    def _along(self, node) -> str | None:
        """How an expression depends on the thread's place along x. None: it may be no arithmetic on numbers."""
        body, node = self.body, without_casts(self.body, node)
        if is_along_x(body, node):
            return "x"
        if asked := component(body, node):
            return "?" if asked in DEPENDS_ON_X else ""
        if node.type == "identifier" and (along := self.along.get(body.of(node))) is not None:
            return "?" if along else ""
        if node.type == "number_literal":
            return "" if NUMBER.match(body.of(node)) else None
        left, sign, right = operands(node)
        if node.type == "unary_expression":
            sign, left = (node.child_by_field_name(field) for field in ("operator", "argument"))
            sign, right = sign.type if sign.type in "+-" else "", left
        if sign not in ARITHMETIC:
            return None
        parts = {self._along(left), self._along(right)}
        return None if None in parts else "?" if parts != {""} else ""

    def _declare(self, declaration) -> bool:
        """Read a declaration of numbers."""
        kind = " ".join(
            self.body.of(c) for c in declaration.children if c.type not in ("init_declarator", ",", ";")
        )
        if not _is_number(kind):
            return False
        for declarator in declaration.children_by_field_name("declarator"):
            variable = declared(self.body, declaration, declarator, kind.split(), self.body.root.end_byte)
            if variable.value is None or variable.stars != 0:
                return False
            name, along = variable.name, self._along(variable.value)
            if along is None or name in self.types or name in INDEX:
                return False
            self.types[name], self.along[name] = kind.replace("const", "").strip(), along
        return True

    def _terms(self, node, between: str) -> Iterator:
        """What stands between `&&` or `||`."""
        left, sign, right = operands(node)
        if sign == between:
            yield from self._terms(left, between)
            node = right
        yield plain(node)

    def _is_one_sided(self, term) -> bool:
        """Is this comparison true from one thread of a row on, or up to one, or the same for all?"""
        left, sign, right = operands(term)
        if sign not in COMPARISONS | EQUALITIES:
            return False
        along = [self._along(left), self._along(right)]
        if along == ["", ""]:
            return True
        if None in along or "" not in along or sign in EQUALITIES:
            return False
        index, other = (left, right) if along[1] == "" else (right, left)
        first, moved, number = operands(plain(index))
        name = self.body.of(first or plain(index))
        if self.along.get(name) != "x":
            return False
        if first is None:
            return True
        # A sum must not overflow, nor be compared as unsigned.
        small = moved in ("+", "-") and SMALL.match(self.body.of(number))
        return bool(small) and self.types[name] == "int" and all(map(self._is_small, walk(other)))

    def _is_small(self, node) -> bool:
        """Is it an int, or a small number?"""
        text = self.body.of(node)
        if node.type == "identifier":
            return self.types.get(text, "").replace("const", "").strip() == "int"
        return bool(node.type != "number_literal" or SMALL.match(text)) and not component(self.body, node)

    def guard(self, macros: Collection[str]) -> Guard:
        statements = [s for s in self.body.root.named_children if s.type != "comment"]
        while statements and statements[0].type == "declaration":
            declaration = statements.pop(0)
            self._check(
                self._declare(declaration), "a declaration that is no arithmetic on numbers", declaration
            )
        first = statements[0] if statements else self.body.root
        self._check(first.type == "if_statement", NO_IF, first)
        asks, way = (first.child_by_field_name(field) for field in ("condition", "consequence"))
        leaves = way.type == "return_statement" and not way.named_children
        other = first.child_by_field_name("alternative")
        self._check(other is None, "an `else` of the first `if`", other)
        self._check(asks.named_child_count == 1, "a condition of another form", asks)
        if not leaves:
            self._check(not statements[1:], "statements behind the first `if`", statements[-1])
            plain_way = way.type in ("compound_statement", "expression_statement")
            self._check(plain_way, "another statement in the first `if`", way)
        (opening, _), (_, last) = self.body.place(asks.children[0]), self.body.place(asks.children[-1])
        before = [token for token in self.body.tokens if token.start < last]
        by_macro = next((token for token in before if token.text in macros), None)
        self._check(by_macro is None, "a macro in the first `if`", by_macro and by_macro.start)
        for term in self._terms(asks.named_children[0], "||" if leaves else "&&"):
            why = "a comparison that need not be true from one thread of a row on, or up to one"
            self._check(self._is_one_sided(term), why, term)
        start = self.body.place(first)[0]
        text = " ".join(token.text for token in before[:-1] if token.start > opening)
        return Guard(max(t.end for t in before if t.start < start), (opening + 1, last - 1), leaves, text)

    def _check(self, clear: bool, why: str, at=None):
        check(self.body, clear, why, at)


def guard_of(source: Source, function: Function, macros: Collection[str]) -> Guard | Reason:
    """The guard of a kernel whose threads wait for nobody; or why each thread asks for itself."""
    body, lexed = Body(source, function), source.lexed
    inside = [
        d.start for d in (*lexed.directives, *lexed.conditions) if function.body < d.start < function.end
    ]
    try:
        check(body, not inside, "a preprocessor line in the kernel", min(inside, default=None))
        check(body, not body.tree.has_error, "a statement that the parser does not know", body.unread())
        unclear = body.words & UNCLEAR
        check(body, not unclear, f"{' and '.join(sorted(unclear))} in the kernel", body.first(unclear))
        return GuardReader(body, function).guard(macros)
    except Unclear as reason:
        return reason.reason(source, function)


def counts_along_x(source: Source, function: Function) -> bool:
    """Does the kernel use threadIdx.x and blockIdx.x only as `blockIdx.x * blockDim.x + threadIdx.x`?"""
    body = Body(source, function)

    def only_so(node) -> bool:
        if is_along_x(body, node):
            return True
        if asked := component(body, node):
            return asked not in DEPENDS_ON_X
        if node.type == "identifier":
            return body.of(node) not in (THREAD, BLOCK)
        return all(map(only_so, node.named_children))

    return not body.tree.has_error and only_so(body.root)
