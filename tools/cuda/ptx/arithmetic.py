"""Arithmetic: add, sub, mul, mad, fma, with carry; div, rem, min, max, neg, abs; functions of real numbers."""

from __future__ import annotations

from .text import Operand
from .writer import (
    FAMILIES,
    NS,
    Writer,
    expect,
    family,
    flag,
    none_left,
    rounded,
    take,
    take_flags,
    take_type,
)

REAL = {"f32", "f64", "f16", "bf16", "f16x2", "bf16x2", "f32x2"}
# The flags that results of these types may have.
FLAGS_OF = {
    **{kind: ("ftz", "sat") for kind in ("f32", "f16", "f16x2")},
    **{"f32x2": ("ftz",), "s32": ("sat",)},
}


def add_or_sub(root: str):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        expect(ops, 3)
        kind = take_type(words)
        writes, reads = bool(take(words, "cc")), root.endswith("c")
        if writes or reads:
            none_left(words)
            name = "add_carry" if root.startswith("add") else "sub_carry"
            values = f"{w.gets(ops[1:], kind)}, {flag(reads)}, {flag(writes)}"
            return w.set(ops[0], f"{NS}{name}<{NS}{kind}>({values})")
        flags = take_flags(words, *FLAGS_OF.get(kind, ()))
        call = rounded(root, kind, words)
        none_left(words)
        return w.set(ops[0], f"{call}({flags}, {w.gets(ops[1:], kind)})")

    return write


for _root in ("add", "sub", "addc", "subc"):
    FAMILIES[_root] = add_or_sub(_root)


@family("mul")
def _mul(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 3)
    kind = take_type(words)
    part = take(words, "lo", "hi", "wide")
    if part in ("wide", "hi"):
        none_left(words)
        return w.set(ops[0], f"{NS}mul_{part}<{NS}{kind}>({w.gets(ops[1:], kind)})")
    flags = take_flags(words, *FLAGS_OF.get(kind, ()))
    call = rounded("mul", kind, words)
    none_left(words)
    return w.set(ops[0], f"{call}({flags}, {w.gets(ops[1:], kind)})")


def _fma(w: Writer, words: list[str], ops: list[Operand], kind: str) -> str:
    halves = ("relu",) if kind.startswith(("f16", "bf16")) else ()
    flags = take_flags(words, *FLAGS_OF.get(kind, ()), *halves)
    call = rounded("fma_of", kind, words)
    none_left(words)
    return w.set(ops[0], f"{call}({flags}, {w.gets(ops[1:], kind)})")


def mad(reads: bool):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        expect(ops, 4)
        kind = take_type(words)
        part, writes = take(words, "lo", "hi", "wide"), bool(take(words, "cc"))
        if kind in REAL:
            return _fma(w, words, ops, kind)
        flags = take_flags(words, *FLAGS_OF.get(kind, ()))
        none_left(words)
        product = f"{NS}mul<{NS}{kind}>(0, {w.gets(ops[1:3], kind)})"
        if part in ("hi", "wide"):
            product = f"{NS}mul_{part}<{NS}{kind}>({w.gets(ops[1:3], kind)})"
        if part == "wide":
            kind = kind[0] + str(2 * int(kind[1:]))
        c = w.get(ops[3], kind)
        if writes or reads:
            values = f"{product}, {c}, {flag(reads)}, {flag(writes)}"
            return w.set(ops[0], f"{NS}add_carry<{NS}{kind}>({values})")
        return w.set(ops[0], f"{NS}add<{NS}{kind}>({flags}, {product}, {c})")

    return write


FAMILIES["mad"] = FAMILIES["fma"] = mad(False)
FAMILIES["madc"] = mad(True)


@family("mul24", "mad24")
def _mul24(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 3, 4)
    kind = take_type(words)
    high = flag(take(words, "lo", "hi") == "hi")
    none_left(words)
    product = f"{NS}mul24<{NS}{kind}>({w.gets(ops[1:3], kind)}, {high})"
    if len(ops) > 3:
        product = f"{NS}add<{NS}{kind}>(0, {product}, {w.get(ops[3], kind)})"
    return w.set(ops[0], product)


@family("div")
def _div(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 3)
    kind = take_type(words)
    take(words, "approx", "full")
    flags = take_flags(words, *(("ftz",) if kind == "f32" else ()))
    call = rounded("div_of", kind, words)
    none_left(words)
    return w.set(ops[0], f"{call}({flags}, {w.gets(ops[1:], kind)})")


@family("rem")
def _rem(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 3)
    kind = take_type(words)
    none_left(words)
    return w.set(ops[0], f"{NS}rem<{NS}{kind}>({w.gets(ops[1:], kind)})")


@family("copysign")
def _copysign(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 3)
    kind = take_type(words)
    none_left(words)
    return w.set(ops[0], f"static_cast<{NS}{kind}>(copysign({w.get(ops[2], kind)}, {w.get(ops[1], kind)}))")


def _min_max(most: str):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        expect(ops, 3, 4)
        kind = take_type(words)
        known = ("ftz", "NaN", "xorsign", "abs") if kind in REAL else ("relu",)
        flags = take_flags(words, *known)
        none_left(words)
        call = f"{NS}min_max<{most}, {NS}{kind}>"
        value = f"{call}({flags}, {w.gets(ops[1:3], kind)})"
        for more in ops[3:]:
            value = f"{call}({flags}, {value}, {w.get(more, kind)})"
        return w.set(ops[0], value)

    return write


FAMILIES["min"], FAMILIES["max"] = _min_max("false"), _min_max("true")


def unary(function: str, approximate: bool):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        expect(ops, 2)
        kind = take_type(words)
        if approximate:
            take(words, "approx")
        flags = take_flags(words, "ftz")
        if approximate and function in ("rcp", "sqrt_of"):
            call = rounded(function, kind, words)
        else:
            call = f"{NS}{function}<{NS}{kind}>"
        none_left(words)
        return w.set(ops[0], f"{call}({flags}, {w.get(ops[1], kind)})")

    return write


for _root, _function in {"neg": "neg", "abs": "abs_of"}.items():
    FAMILIES[_root] = unary(_function, False)
for _root, _function in {
    **{"ex2": "ex2", "lg2": "lg2", "rcp": "rcp", "sqrt": "sqrt_of"},
    **{"rsqrt": "rsqrt_of", "sin": "sin_of", "cos": "cos_of", "tanh": "tanh_of"},
}.items():
    FAMILIES[_root] = unary(_function, True)


def _dot(name: str):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        expect(ops, 4)
        b, a = words.pop(), words.pop()
        half = take(words, "lo", "hi")
        none_left(words)
        kinds = ", ".join(NS + {"u32": "u8", "s32": "s8"}[one] for one in (a, b))
        more = f", {flag(half == 'hi')}" if name == "dp2a" else ""
        return w.set(ops[0], f"{NS}{name}<{kinds}>({w.gets(ops[1:3], 'u32')}, {w.get(ops[3], 's32')}{more})")

    return write


FAMILIES["dp4a"], FAMILIES["dp2a"] = _dot("dp4a"), _dot("dp2a")


@family("sad")
def _sad(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 4)
    kind = take_type(words)
    none_left(words)
    return w.set(ops[0], f"{NS}sad<{NS}{kind}>({w.gets(ops[1:], kind)})")
