"""Moves and comparisons: mov, setp, set, selp, slct."""

from __future__ import annotations

from .text import Operand, PtxError
from .writer import (
    BITS,
    NS,
    Writer,
    bits_of,
    expect,
    family,
    none_left,
    take,
    take_flags,
    take_type,
    vector_of,
    width_of,
)

# How a comparison is called, and what it is if an operand is not a number.
COMPARISONS = {
    **{c: (f"k{c.capitalize()}", "false") for c in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{c + "u": (f"k{c.capitalize()}", "true") for c in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{"lo": ("kLt", "false"), "ls": ("kLe", "false"), "hi": ("kGt", "false"), "hs": ("kGe", "false")},
    **{"num": ("kNum", "false"), "nan": ("kIsNan", "false")},
}
UNORDERED = {"ltu", "leu", "gtu", "geu", "equ", "neu", "num", "nan"}
OPERATORS = {"and": "&", "or": "|", "xor": "^", "": ""}


@family("mov")
def _mov(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 2)
    kind = take_type(words)
    none_left(words)
    to, source = ops
    if to.kind == "vector" and source.kind == "vector":
        raise PtxError("a vector as an operand")
    if to.kind == "vector":
        return _unpack(w, kind, to, source)
    if source.kind == "vector":
        return _pack(w, kind, to, source)
    if kind == "bool":
        return f"{w.name(to)} = {w.get(source, kind)};"
    return w.set(to, w.get(source, kind))


def _pack(w: Writer, kind: str, to: Operand, source: Operand) -> str:
    total, parts = width_of(kind), vector_of(source)
    each, whole = total // len(parts), NS + bits_of(kind)
    values = (f"static_cast<{whole}>({w.get(o, BITS[str(each)])}) << {i * each}" for i, o in enumerate(parts))
    return w.set(to, " | ".join(values))


def _unpack(w: Writer, kind: str, to: Operand, source: Operand) -> str:
    total, parts = width_of(kind), vector_of(to)
    each = total // len(parts)
    text = f"{{ const auto ptx_whole = {w.get(source, bits_of(kind))}; "
    for i, part in enumerate(parts):
        if part.text != "_":
            text += w.set(part, f"static_cast<{NS}{BITS[str(each)]}>(ptx_whole >> {i * each})") + " "
    return text + "}"


def _compared(w: Writer, words: list[str], ops: list[Operand], kind: str, flags: str) -> str:
    how = next(word for word in words if word in COMPARISONS)
    words.remove(how)
    comparison, unordered = COMPARISONS[how]
    if kind[0] in "su" and how in UNORDERED:
        raise PtxError("." + how)
    return f"{NS}compare<{NS}{kind}>({NS}{comparison}, {unordered}, {flags}, {w.gets(ops[1:3], kind)})"


@family("set")
def _set(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 3, 4)
    kind, to = take_type(words), take_type(words)
    if kind.endswith("x2") or to[0] not in "us":  # PTX's text says 1.0, and an H200 gives 1
        raise PtxError("its types")
    call = _compared(w, words, ops, kind, take_flags(words, "ftz"))
    operator = OPERATORS[take(words, *OPERATORS)]
    none_left(words)
    expect(ops, 4 if operator else 3)
    value = f"({call}) {operator} {w.get(ops[3], 'bool')}" if operator else call
    return w.set(ops[0], f"({value}) ? static_cast<{NS}{to}>(-1) : static_cast<{NS}{to}>(0)")


@family("setp")
def _setp(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 3, 4)
    kind = take_type(words)
    if kind.endswith("x2"):
        raise PtxError("pairs")
    call = _compared(w, words, ops, kind, take_flags(words, "ftz"))
    operator = OPERATORS[take(words, *OPERATORS)]
    none_left(words)
    expect(ops, 4 if operator else 3)
    other = f" {operator} {w.get(ops[3], 'bool')}" if operator else ""
    p, q = ops[0].parts if ops[0].kind == "pair" else (ops[0], None)
    text = f"{{ const bool ptx_is = {call}; "
    text += f"const bool ptx_p = ptx_is{other}, ptx_q = (!ptx_is){other}; (void)ptx_p; (void)ptx_q;"
    for to, value in ((p, "ptx_p"), (q, "ptx_q")):
        if to is not None and to.text != "_":
            text += " " + w.set(to, value)
    return text + " }"


@family("selp")
def _selp(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 4)
    kind = take_type(words)
    none_left(words)
    return w.set(ops[0], f"{w.get(ops[3], 'bool')} ? {w.get(ops[1], kind)} : {w.get(ops[2], kind)}")


@family("slct")
def _slct(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 4)
    by, to = take_type(words), take_type(words)
    flags = take_flags(words, "ftz")
    none_left(words)
    if by not in ("s32", "f32"):
        raise PtxError("." + by)
    is_first = f"{NS}compare<{NS}{by}>({NS}kGe, false, {flags}, {w.get(ops[3], by)}, {NS}{by}(0))"
    return w.set(ops[0], f"{is_first} ? {w.get(ops[1], to)} : {w.get(ops[2], to)}")
