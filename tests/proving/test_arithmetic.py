"""C++'s operations on whole numbers, against Python's on words of their widths."""

import random

import pytest
import z3

from cuffi.proving.arithmetic import Arithmetic
from cuffi.proving.queries import Queries
from cuffi.proving.types import INT, LONG, SIZE, UNSIGNED, Integer, common
from cuffi.proving.values import Number

TYPES = [INT, UNSIGNED, SIZE, LONG, Integer("short", 16, True), Integer("unsigned char", 8, False)]


def wrapped(value: int, type: Integer) -> int:
    value %= 1 << type.bits
    return value - (1 << type.bits) if type.signed and value >> (type.bits - 1) else value


def in_cpp(sign: str, a: int, b: int) -> int:
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if sign in "/%" else 0
    made = {"+": a + b, "-": a - b, "*": a * b, "/": quotient, "%": a - b * quotient}
    made |= {"&": a & b, "|": a | b, "^": a ^ b}
    return {**made, "<": a < b, ">=": a >= b, "==": a == b}[sign]


@pytest.fixture
def math():
    def fresh(type: Integer) -> Number:
        return Number(z3.Int(f"unknown!{random.random()}"), type)

    return Arithmetic(Queries(), lambda: [], fresh)


@pytest.mark.parametrize("sign", ["+", "-", "*", "/", "%", "&", "|", "^", "<", ">=", "=="])
def test_as_cpp_computes(sign, math):
    rng = random.Random(sign)
    compared = 0
    for _ in range(60):
        types = rng.choice(TYPES), rng.choice(TYPES)
        values = [rng.randint(max(t.low, -500), min(t.high, 500)) for t in types]
        if sign in "/%" and not values[1]:
            continue
        type = common(*types)
        expected = wrapped(int(in_cpp(sign, *(wrapped(v, type) for v in values))), type)
        made = math.binary(sign, *(Number(z3.IntVal(v), t) for v, t in zip(values, types, strict=True)))
        term = z3.simplify(
            math.plain(made) if z3.is_int(made.term) else z3.If(made.term, z3.IntVal(1), z3.IntVal(0))
        )
        if z3.is_int_value(term):  # else it is unknown, which is any value
            compared += 1
            assert wrapped(term.as_long(), type) == expected, (sign, values, types)
    assert compared >= (3 if sign == "&" else 25)


def test_what_does_not_fit_is_unknown(math):
    for value, type in ((300, TYPES[5]), (-1, TYPES[5]), (40000, TYPES[4]), (1 << 40, INT)):
        made = math.into(Number(z3.IntVal(value), LONG), type)
        assert not z3.is_int_value(z3.simplify(made.term))
    assert math.into(Number(z3.IntVal(200), INT), TYPES[5]).term.as_long() == 200


def test_unsigned_numbers_are_modulo(math):
    less = math.binary("-", Number(z3.IntVal(0), UNSIGNED), Number(z3.IntVal(1), INT))
    assert z3.simplify(math.plain(less)).as_long() == 2**32 - 1
    assert z3.simplify(math.into(less, INT).term).as_long() == -1
    assert z3.simplify(math.plain(math.into(less, SIZE))).as_long() == 2**32 - 1


def test_large_factors_are_not_assumed_to_fit(math):
    n = Number(z3.Int("n"), UNSIGNED)
    assert "unknown" in str(math.binary("*", n, Number(z3.IntVal(1 << 20), UNSIGNED)).term)
    assert "unknown" not in str(math.binary("*", n, Number(z3.IntVal(12), UNSIGNED)).term)
    assert "unknown" in str(math.binary("<<", n, Number(z3.IntVal(20), INT)).term)
