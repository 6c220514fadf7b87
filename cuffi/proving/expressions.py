"""Expressions of C++, evaluated for the generic thread."""

from __future__ import annotations

import re
from collections.abc import Callable

import z3

from .calls import Calls
from .places import Places
from .reading import Code, Text
from .thread import LAUNCH, Thread, element, is_followed
from .types import (
    BOOL,
    INT,
    LONG,
    NAMES,
    SIZE,
    UNSIGNED,
    Integer,
    NotFollowed,
)
from .values import Lost, Number, Opaque, Pointer, Value, Variable, is_plain, number, truth

WHOLE = re.compile(r"-?(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)([uUlL]*)")
REAL_NAMES = re.compile(
    r"(FLT|DBL)_(MAX|MIN|EPSILON)|INFINITY|NAN|HUGE_VALF?|M_\w+|CUDART_(INF|NAN|PI|MAX|MIN|ZERO|ONE)\w*"
)
NUMBERS = {
    "INT_MAX": (INT.high, INT), "INT_MIN": (INT.low, INT), "UINT_MAX": (-1, UNSIGNED), "warpSize": (32, INT),
    "LLONG_MAX": (LONG.high, LONG), "INT32_MAX": (INT.high, INT), "UINT32_MAX": (-1, UNSIGNED),
}  # fmt: skip
NULLS = {"nullptr", "NULL"}
UNEVALUATED = {"string_literal", "concatenated_string", "raw_string_literal"}


class Expressions(Places):
    """Evaluates them."""

    def __init__(self, thread: Thread, text: Text, code: Code, written: set[str]):
        super().__init__(thread, text, code, written)
        self.used: set[str] = set()  # threadIdx.x and the like
        self.calls = Calls(self)

    def value(self, node) -> Value:
        """Raises NotFollowed if there is none."""
        handler: Callable | None = getattr(self, f"_{node.type}", None)
        if node.type in UNEVALUATED:
            return Opaque()
        if handler is None:
            raise NotFollowed(f"{node.type}: {self.of(node)[:40]} is not followed", node)
        return is_followed(handler(node), node)

    def number(self, node) -> Number:
        made = self.value(node)
        if not isinstance(made, Number):
            raise NotFollowed(f"{self.of(node)[:40]} is used as a whole number, which is not followed", node)
        return made

    def condition(self, node):
        """A formula."""
        made = self.value(node)
        if isinstance(made, Number):
            return z3.simplify(self.math.formula(made))
        if isinstance(made, Pointer):
            return self.is_there(made).term
        return self.thread.fresh(BOOL, "condition").term

    # ---- kinds of expressions
    def _parenthesized_expression(self, node) -> Value:
        inside = [one for one in node.named_children if one.type != "comment"]
        if len(inside) != 1:
            raise NotFollowed(f"{self.of(node)[:40]} is not followed", node)
        return self.value(inside[0])

    def _condition_clause(self, node) -> Value:
        inside = [one for one in node.named_children if one.type != "comment"]
        if len(inside) != 1 or inside[0].type == "declaration":
            raise NotFollowed("a declaration in a condition is not followed", node)
        return self.value(inside[0])

    def _number_literal(self, node) -> Value:
        said = self.of(node).replace("'", "").strip()
        if self.of(node).strip() == "0" and self.code.is_character(node):
            return self.thread.fresh(INT, "character")
        match = WHOLE.fullmatch(said)
        if not match:
            return Opaque(NAMES["double"])
        digits, ends = match[1], match[2].lower()
        if said[0] == "-":
            made = self._whole(digits, ends)
            return self.math.negated(made)
        return self._whole(digits, ends)

    def _whole(self, digits: str, ends: str) -> Number:
        """A literal, with the type that C++ gives it. Large unsigned ones are what they are modulo 2^bits."""
        is_octal = digits.isdigit() and len(digits) > 1 and digits[0] == "0"
        amount = int(digits, 8 if is_octal else 0)
        is_long = (
            "l" in ends
            or amount > UNSIGNED.high
            or (amount > INT.high and digits.isdigit() and "u" not in ends)
        )
        if "u" in ends or (amount > INT.high and not is_long) or amount > LONG.high:
            type = SIZE if is_long else UNSIGNED
            return number(amount - (1 << type.bits) if amount >> (type.bits - 1) else amount, type)
        return number(amount, LONG if is_long else INT)

    def _true(self, node) -> Value:
        return truth(True)

    def _false(self, node) -> Value:
        return truth(False)

    def _null(self, node) -> Value:
        return number(0, INT)

    def _identifier(self, node) -> Value:
        name = self.of(node)
        found = self.thread.lookup(name)
        if found is not None:
            if found.is_memory:
                return self.loaded(self._memory(found.value, node), node)
            return is_followed(found.value, node)
        if name in NUMBERS:
            return number(*NUMBERS[name])
        if name in NULLS:
            return number(0, INT)
        if REAL_NAMES.fullmatch(name):
            return Opaque(NAMES["double"])
        raise NotFollowed(f"{name} is not a variable of the kernel, and is not followed", node)

    def _comma_expression(self, node) -> Value:
        made: Value = Opaque()
        for one in node.named_children:
            made = self.value(one) if one.type != "comment" else made
        return made

    def _field_expression(self, node) -> Value:
        said = "".join(self.of(node).split())
        if said in self.thread.index and self.thread.lookup(said[: said.index(".")]) is None:
            self.used.add(said)
            return self.thread.index[said]
        return self.loaded(self.place(node), node)

    def _subscript_expression(self, node) -> Value:
        return self.loaded(self.place(node), node)

    def _pointer_expression(self, node) -> Value:
        if not self.of(node).startswith("&"):
            return self.loaded(self.place(node), node)
        inner = self.field(node, "argument")
        place = self.place(inner)
        if isinstance(place, Pointer) and inner.type != "field_expression" and not place.is_row:
            return place
        raise NotFollowed(f"{self.of(node)[:40]}: the address of a variable is not followed", node)

    def _unary_expression(self, node) -> Value:
        sign = self.field(node, "operator").type
        inner = self.field(node, "argument")
        if sign in ("!", "not"):
            return Number(z3.simplify(z3.Not(self.condition(inner))), BOOL)
        made = self.value(inner)
        if isinstance(made, Opaque):
            if not is_plain(made):
                self.refuse_operators(node)
            return made
        if not isinstance(made, Number) or sign not in "+-~":
            raise NotFollowed(f"{self.of(node)[:40]} is not followed", node)
        return (
            self.math.binary("+", made, number(0, INT))
            if sign == "+"
            else (self.math.negated(made) if sign == "-" else self.math.complement(made))
        )

    def _cast_expression(self, node) -> Value:
        words = self.of(self.field(node, "type"))
        return self.converted(self.value(self.field(node, "value")), self.type(words, node), node)

    def _sizeof_expression(self, node) -> Value:
        words = self.of(node).removeprefix("sizeof").strip().removeprefix("(").removesuffix(")")
        found = self.thread.lookup(words)
        type = found.type if found and not found.is_array else self.type(words, node)
        if type is not None and type.size is not None:
            return number(type.size, SIZE)
        return self.thread.named(f"the size of {words}", LAUNCH, SIZE, 1, 64)

    def _conditional_expression(self, node) -> Value:
        asked = self.condition(self.field(node, "condition"))
        both = self.field(node, "consequence"), self.field(node, "alternative")
        if z3.is_true(asked) or z3.is_false(asked):
            return self.value(both[0] if z3.is_true(asked) else both[1])
        yes, no = (
            self.under(one, lambda node=node: self.value(node))
            for one, node in zip((asked, z3.Not(asked)), both, strict=True)
        )
        return self.chosen(asked, yes, no)

    def chosen(self, asked, yes: Value, no: Value) -> Value:
        """The value of `asked ? yes : no`."""
        if isinstance(yes, Number) and isinstance(no, Number) and yes.type != no.type:
            type = self.math.binary("+", yes, no).type
            yes, no = self.math.into(yes, type), self.math.into(no, type)
        if isinstance(yes, Opaque) or isinstance(no, Opaque):
            other = no if isinstance(yes, Opaque) else yes
            plain = NAMES["double"] if is_plain(yes) and is_plain(no) else None
            return Lost("a pointer or another value") if isinstance(other, Pointer | Lost) else Opaque(plain)
        return self.thread.merged(asked, yes, no)

    def under(self, asked, run: Callable[[], Value]) -> Value:
        """The value of an expression that is evaluated under a condition, and may change variables only then."""
        saved = self.thread.snapshot()
        self.thread.conditions.append(asked)
        made = run()
        self.thread.conditions.pop()
        for variable, before in saved:
            if variable.value is not before:
                variable.value = self.thread.merged(asked, variable.value, before)
        return made

    def _binary_expression(self, node) -> Value:
        sign = self.field(node, "operator").type
        left, right = self.field(node, "left"), self.field(node, "right")
        if sign in ("&&", "||", "and", "or"):
            first = self.condition(left)
            is_and = sign in ("&&", "and")
            under = first if is_and else z3.Not(first)
            second = self.under(under, lambda: Number(self.condition(right), BOOL))
            assert isinstance(second, Number)
            made = z3.And(first, second.term) if is_and else z3.Or(first, second.term)
            return Number(z3.simplify(made), BOOL)
        return self.binary(sign, self.value(left), self.value(right), node)

    def binary(self, sign: str, a: Value, b: Value, node) -> Value:
        is_followed(a, node), is_followed(b, node)
        if isinstance(a, Number) and isinstance(b, Number):
            return self.math.binary(sign, a, b)
        if isinstance(a, Pointer) or isinstance(b, Pointer):
            return self._of_pointers(sign, a, b, node)
        plain = is_plain(a) and is_plain(b)
        if not plain:
            self.refuse_operators(node)
        compared = sign in ("<", ">", "<=", ">=", "==", "!=")
        return self.thread.fresh(BOOL, "compared") if compared else Opaque(NAMES["double"] if plain else None)

    def refuse_operators(self, node):
        """Of values that are not followed, a file's own operator may do anything."""
        if "operator" in self.text.functions:
            raise NotFollowed(f"{self.of(node)[:40]}: it may be an operator of the file's", node)

    def _of_pointers(self, sign: str, a: Value, b: Value, node) -> Value:
        if isinstance(a, Pointer) and isinstance(b, Pointer):
            if a.array is b.array and a.unit == b.unit == 1 and not a.dims and not b.dims:
                if sign == "-":
                    return Number(z3.simplify(a.offset - b.offset), LONG)
                return self.math.binary(sign, Number(a.offset, LONG), Number(b.offset, LONG))
            if sign in ("==", "!="):
                return self.thread.fresh(BOOL, "pointers")
        elif sign in ("==", "!=") and isinstance(a if isinstance(b, Pointer) else b, Number):
            pointer = a if isinstance(a, Pointer) else b
            assert isinstance(pointer, Pointer)
            there = self.is_there(pointer).term
            return Number(there if sign == "!=" else z3.Not(there), BOOL)
        elif sign in "+-":
            pointer, by = (b, a) if isinstance(b, Pointer) and sign == "+" else (a, b)
            if isinstance(pointer, Pointer) and isinstance(by, Number):
                step = self._offset(by)
                return element(pointer, step if sign == "+" else -step, self.math)
        raise NotFollowed(f"{self.of(node)[:40]}: these pointers are not followed", node)

    def _assignment_expression(self, node) -> Value:
        sign = self.field(node, "operator").type
        left = self.field(node, "left")
        value = self.value(self.field(node, "right"))
        place = self.place(left)
        if sign != "=":
            value = self.binary(sign.removesuffix("="), self.loaded(place, left), value, node)
        self.stored(place, value, left)
        if isinstance(place, Variable):
            return place.value
        if isinstance(place, Pointer) and isinstance(place.type, Integer):
            return self.converted(value, place.type, node)
        return value

    def _update_expression(self, node) -> Value:
        inner = self.field(node, "argument")
        place = self.place(inner)
        old = self.loaded(place, inner)
        sign = "+" if "++" in (one.type for one in node.children) else "-"
        new = self.binary(sign, old, number(1, INT), node)
        self.stored(place, new, inner)
        is_after = node.children[0].type not in ("++", "--")
        return old if is_after else new

    def _call_expression(self, node) -> Value:
        return self.calls.value(node)

    def _initializer_list(self, node) -> Value:
        for one in node.named_children:
            if one.type != "comment":
                self.value(one)
        return Opaque()
