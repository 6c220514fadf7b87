"""C++'s operations on whole numbers, as terms of exact values.

Signed numbers do not overflow: that is assumed, and said. An unsigned number is its exact value modulo 2^bits, so that
`threadIdx.x - 1` may be negative until it is compared, divided, widened, or used as an index.
"""

from __future__ import annotations

from collections.abc import Callable

import z3

from .queries import Queries
from .types import BOOL, INT, Integer, common, promoted
from .values import Number, is_constant

LARGE_FACTOR = 1 << 16  # an index is rarely multiplied by more: then that it fits is not assumed
COMPARED = {"<", ">", "<=", ">=", "==", "!="}


class Arithmetic:
    """`path`: the conditions under which the thread is here. `fresh`: makes an unknown number of a type."""

    def __init__(self, queries: Queries, path: Callable[[], list], fresh: Callable[[Integer], Number]):
        self.queries, self.path, self.fresh = queries, path, fresh
        self.at_least_zero: set[str] = set()  # variables

    # ---- values and types
    def formula(self, a: Number):
        """As a condition."""
        return a.term if a.type == BOOL else self.plain(a) != 0

    def exact(self, a: Number):
        """As a whole number; of an unsigned one modulo 2^bits."""
        return z3.If(a.term, z3.IntVal(1), z3.IntVal(0)) if a.type == BOOL else a.term

    def plain(self, a: Number):
        """The value that the number has."""
        term = self.exact(a)
        if a.type.signed or a.type == BOOL or self.is_not_negative(term):
            return term
        return z3.If(term >= 0, term, term + (1 << a.type.bits))

    def is_not_negative(self, term) -> bool:
        return self._grows(term) or self.queries.valid(term >= 0, self.path())

    def _grows(self, term) -> bool:
        """Is it a sum of products of what is not negative?"""
        if is_constant(term):
            return term.as_long() >= 0
        if z3.is_const(term):
            return term.decl().name() in self.at_least_zero
        kind = term.decl().kind()
        if kind == z3.Z3_OP_ITE:
            return all(self._grows(one) for one in term.children()[1:])
        return kind in (z3.Z3_OP_ADD, z3.Z3_OP_MUL) and all(self._grows(one) for one in term.children())

    def into(self, a: Number, type: Integer) -> Number:
        """Converted, as C++ does it."""
        if type == a.type:
            return a
        if type == BOOL:
            return Number(self.formula(a), BOOL)
        term = self.exact(a)
        if a.type == BOOL or (a.type.low >= type.low and a.type.high <= type.high and a.type.signed):
            return Number(term, type)
        if not a.type.signed and type.bits > a.type.bits:
            return Number(self.plain(a), type)
        if (
            type.bits >= a.type.bits
        ):  # signed and unsigned of one width, or of a wider unsigned one: the same modulo
            return Number(term, type)
        value = term if type.signed and a.type.bits == 64 and type.bits == 32 else self.plain(a)
        fits = z3.And(value >= type.low, value <= type.high)
        if self.queries.valid(fits, self.path()):
            return Number(value, type)
        return self.fresh(type)

    # ---- operations
    def negated(self, a: Number) -> Number:
        a = self.into(a, promoted(a.type))
        return Number(z3.simplify(-a.term), a.type)

    def complement(self, a: Number) -> Number:
        a = self.into(a, promoted(a.type))
        return Number(z3.simplify(-a.term - 1), a.type)

    def binary(self, sign: str, a: Number, b: Number) -> Number:
        if sign in COMPARED:
            return self._compared(sign, a, b)
        if sign in ("<<", ">>"):
            return self._shifted(sign, a, b)
        if sign in "&|^" and a.type == b.type == BOOL:
            made = {"&": z3.And, "|": z3.Or, "^": z3.Xor}[sign](a.term, b.term)
            return Number(z3.If(made, z3.IntVal(1), z3.IntVal(0)), INT)
        type = common(a.type, b.type)
        a, b = self.into(a, type), self.into(b, type)
        if sign in "+-":
            made = a.term + b.term if sign == "+" else a.term - b.term
            return Number(z3.simplify(made), type)
        if sign == "*":
            return self._fitting(self.product(a.term, b.term), type)
        if sign in "/%":
            return Number(self._divided_by(self.plain(a), self.plain(b), sign), type)
        return self._bits(sign, a, b, type)

    def product(self, a, b):
        if is_constant(a) or is_constant(b):
            return z3.simplify(a * b)
        self.queries.products.append((a, b))
        return a * b

    def _fitting(self, term, type: Integer) -> Number:
        """It is assumed to fit its type, unless it is multiplied by a large number."""
        if not _has_large_factor(z3.simplify(term, som=True)):
            return Number(term, type)
        if self.queries.valid(z3.And(term >= type.low, term <= type.high), self.path()):
            return Number(term, type)
        return self.fresh(type)

    def _compared(self, sign: str, a: Number, b: Number) -> Number:
        if a.type == b.type == BOOL and sign in ("==", "!="):
            return Number(a.term == b.term if sign == "==" else a.term != b.term, BOOL)
        type = common(a.type, b.type)
        x, y = self.plain(self.into(a, type)), self.plain(self.into(b, type))
        made = {"<": x < y, ">": x > y, "<=": x <= y, ">=": x >= y, "==": x == y, "!=": x != y}[sign]
        return Number(z3.simplify(made), BOOL)

    def _shifted(self, sign: str, a: Number, b: Number) -> Number:
        a = self.into(a, promoted(a.type))
        by = z3.simplify(self.plain(b))
        if not is_constant(by) or not 0 <= by.as_long() < a.type.bits:
            return self._by_bounds(a, None) if sign == ">>" else self.fresh(a.type)
        factor = z3.IntVal(1 << by.as_long())
        if sign == "<<":
            return self._fitting(self.product(a.term, factor), a.type)
        return Number(self._quotient(self.plain(a), factor), a.type)

    def _by_bounds(self, a: Number, b: Number | None) -> Number:
        """An unknown number that is not larger than a, nor than b, if they are not negative."""
        x = self.plain(a)
        made = self.fresh(a.type)
        bounds = [made.term <= x, made.term >= 0]
        asked = [x >= 0]
        if b is not None:
            y = self.plain(b)
            bounds, asked = [*bounds, made.term <= y], [*asked, y >= 0]
        self.queries.fact(z3.Implies(z3.And(*asked), z3.And(*bounds)))
        return made

    def _bits(self, sign: str, a: Number, b: Number, type: Integer) -> Number:
        if sign == "&":
            for x, mask in ((a.term, b.term), (b.term, a.term)):
                if is_constant(mask) and (made := self._masked(x, mask.as_long(), type)) is not None:
                    return Number(made, type)
            return self._by_bounds(a, b)
        if is_constant(a.term) and is_constant(b.term) and min(a.term.as_long(), b.term.as_long()) >= 0:
            x, y = a.term.as_long(), b.term.as_long()
            return Number(z3.IntVal(x ^ y if sign == "^" else x | y), type)
        if sign == "^":
            return self._exclusive(self.plain(a), self.plain(b), type)
        x, y, made = self.plain(a), self.plain(b), self.fresh(type)
        larger = z3.And(made.term >= x, made.term >= y, made.term <= x + y)
        self.queries.fact(z3.Implies(z3.And(x >= 0, y >= 0), larger))
        return made

    def _masked(self, x, mask: int, type: Integer):
        """x & mask, where the mask is a row of ones, or all but such a row, or one bit."""
        if mask >= 0 and mask & (mask + 1) == 0:
            return x % (mask + 1)
        if mask < 0 and -mask & (-mask - 1) == 0:
            return x - x % (-mask)
        if mask > 0 and mask & (mask - 1) == 0:
            return x / mask % 2 * mask
        return None

    def _exclusive(self, a, b, type: Integer) -> Number:
        """xor as a function: it is its own inverse."""
        xor = z3.Function(f"xor{type.bits}", z3.IntSort(), z3.IntSort(), z3.IntSort())
        made = xor(a, b)
        self.queries.fact(xor(made, b) == a)
        self.queries.fact(z3.Implies(z3.And(a >= 0, b >= 0), z3.And(made >= 0, made <= a + b)))
        return Number(made, type)

    def _quotient(self, a, b):
        """a / b rounded down, for b > 0."""
        if not is_constant(b):
            self.queries.products.append((a / b, b))
            q, r = a / b, a % b
            rule = z3.And(b * q <= a, a < b * q + b, q >= 0, q <= a, r == a - b * q)
            self.queries.fact(z3.Implies(z3.And(a >= 0, b > 0), rule))
        return a / b

    def _divided_by(self, a, b, sign: str):
        """C++ rounds towards 0."""
        if is_constant(a) and is_constant(b) and b.as_long():
            x, y = a.as_long(), b.as_long()
            q = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            return z3.IntVal(q if sign == "/" else x - q * y)
        if not (is_constant(b) and b.as_long() > 0) and not self.queries.valid(b > 0, self.path()):
            made = z3.Function(
                "quotient" if sign == "/" else "rest", z3.IntSort(), z3.IntSort(), z3.IntSort()
            )(a, b)
            self._bounded(made, a, b, sign)
            return made
        if self.is_not_negative(a):
            q = self._quotient(a, b)
            return q if sign == "/" else a % b
        self._quotient(a, b), self._quotient(-a, b)
        if sign == "/":
            return z3.If(a >= 0, a / b, -((-a) / b))
        return z3.If(a >= 0, a % b, -((-a) % b))

    def _bounded(self, made, a, b, sign: str):
        """What holds of a / b or a % b if nobody knows the sign of b, nor whether it is 0: then there is no value."""
        if sign == "%":
            self.queries.fact(z3.Implies(z3.And(a >= 0, b > 0), z3.And(made >= 0, made < b, made <= a)))
        else:
            self.queries.products.append((made, b))
            within = z3.And(b * made <= a, a < b * made + b, made >= 0, made <= a)
            self.queries.fact(z3.Implies(z3.And(a >= 0, b > 0), within))

    def least(self, a: Number, b: Number, largest: bool) -> Number:
        type = common(a.type, b.type)
        x, y = self.plain(self.into(a, type)), self.plain(self.into(b, type))
        return Number(z3.simplify(z3.If(x < y, y, x) if largest else z3.If(x < y, x, y)), type)


def _has_large_factor(term) -> bool:
    if is_constant(term):
        return False
    kids = term.children()
    if z3.is_app(term) and term.decl().kind() in (z3.Z3_OP_ADD, z3.Z3_OP_ITE, z3.Z3_OP_MUL):
        return any(
            abs(one.as_long()) >= LARGE_FACTOR
            if is_constant(one) and term.decl().kind() == z3.Z3_OP_MUL
            else _has_large_factor(one)
            for one in kids
        )
    return False
