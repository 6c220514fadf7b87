"""Conversions of numbers (cvt) and of addresses (cvta, isspacep)."""

from __future__ import annotations

from .text import Operand, PtxError
from .writer import (
    HOST,
    NS,
    ROUNDING,
    TYPES,
    Writer,
    expect,
    family,
    flag,
    none_left,
    take,
    take_flags,
    take_type,
)

WHOLE = {"rni": "kWholeNearest", "rzi": "kWholeZero", "rpi": "kWholeUp", "rmi": "kWholeDown"}
# Pairs of small floats: bits of the exponent, bits of the mantissa.
SMALL = {"e4m3x2": (4, 3), "e5m2x2": (5, 2), "e2m1x2": (2, 1), "e2m3x2": (2, 3), "e3m2x2": (3, 2)}
REAL = {"f16", "bf16", "f32", "f64"}


def _only(words: list[str], *known: str):
    none_left([word for word in words if word not in known])


def _to_small(w: Writer, words: list[str], ops: list[Operand], to: str, source: str) -> str:
    """cvt.rn.satfinite.e4m3x2.f32: the first operand becomes the upper half."""
    relu = flag(take(words, "relu"))
    if "satfinite" not in words:
        raise PtxError("without .satfinite")
    _only(words, "rn", "satfinite")
    bits = ", ".join(map(str, SMALL[to]))
    wide = 4 if to == "e2m1x2" else 8
    if source == "f32":
        expect(ops, 3)
        high, low = (w.get(o, "f32") for o in ops[1:3])
    else:
        expect(ops, 2)
        pair = w.get(ops[1], source)
        high, low = f"{pair}.y", f"{pair}.x"
    value = f"{NS}to_small({high}, {bits}, {relu}) << {wide} | {NS}to_small({low}, {bits}, {relu})"
    return w.set(ops[0], f"static_cast<{NS}{'u16' if wide == 8 else 'u8'}>({value})")


def _of_small(w: Writer, words: list[str], ops: list[Operand], source: str) -> str:
    expect(ops, 2)
    relu = flag(take(words, "relu"))
    _only(words, "rn")
    bits, wide = ", ".join(map(str, SMALL[source])), 4 if source == "e2m1x2" else 8
    a, mask = w.get(ops[1], "u16"), (1 << wide) - 1
    low, high = (f"{NS}half_of_small({a} >> {s} & {mask}, {bits}, {relu})" for s in (0, wide))
    return w.set(ops[0], f"{NS}f16x2{{{low}, {high}}}")


def _to_pair(w: Writer, words: list[str], ops: list[Operand], to: str) -> str:
    """cvt.rn.f16x2.f32 d, high, low."""
    expect(ops, 3)
    flags = take_flags(words, "relu")
    flags += f" | {NS}kSatFinite" if take(words, "satfinite") else ""
    rounding = ROUNDING[take(words, "rn", "rz")]
    none_left(words)
    one = f"{NS}cvt<{NS}{to[:-2]}, {NS}f32, {NS}{rounding}, {NS}kNotWhole>"
    high, low = (f"{one}({flags}, {w.get(o, 'f32')})" for o in ops[1:3])
    return w.set(ops[0], f"{NS}{to}{{{low}, {high}}}")


def _to_tf32(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 2)
    how = {"rna": "kAway", "rn": "kNearest", "rz": "kZero"}[take(words, "rna", "rn", "rz")]
    relu = flag(take(words, "relu"))
    take(words, "satfinite")
    none_left(words)
    return w.set(ops[0], f"{NS}to_tf32({w.get(ops[1], 'f32')}, {NS}{how}, {relu})")


@family("cvt")
def _cvt(w: Writer, words: list[str], ops: list[Operand]) -> str:
    rest, (to, source) = words[:-2], words[-2:]
    if "pack" in rest:
        return _pack(w, rest, ops, to, source)
    if to in SMALL and source in ("f32", "f16x2"):
        return _to_small(w, rest, ops, to, source)
    if source in SMALL and to == "f16x2":
        return _of_small(w, rest, ops, source)
    if to in ("f16x2", "bf16x2") and source == "f32":
        return _to_pair(w, rest, ops, to)
    if to == "tf32":
        return _to_tf32(w, rest, ops)
    expect(ops, 2)
    flags = take_flags(rest, "ftz", "sat", *(("relu",) if to in ("f16", "bf16") else ()))
    flags += f" | {NS}kSatFinite" if to in ("f16", "bf16") and take(rest, "satfinite") else ""
    whole = WHOLE.get(take(rest, *WHOLE), "kNotWhole")
    rounding = ROUNDING[take(rest, "rn", "rz", "rp", "rm") or "rn"]
    none_left(rest)
    to, source = TYPES[to], TYPES[source]
    if to.endswith("x2") or source.endswith("x2") or "b128" in (to, source):
        raise PtxError("its types")
    if source in REAL and to not in REAL and whole == "kNotWhole":
        raise PtxError("without a rounding to an integer")
    call = f"{NS}cvt<{NS}{to}, {NS}{source}, {NS}{rounding}, {NS}{whole}>"
    return w.set(ops[0], f"{call}({flags}, {w.get(ops[1], source)})")


def _pack(w: Writer, words: list[str], ops: list[Operand], to: str, source: str) -> str:
    """cvt.pack.sat.u8.s32.b32 d, a, b, c: two integers beside the lower bits of c."""
    if source == "b32":
        to, source = words.pop(), to
    _only(words, "pack", "sat")
    if source != "s32":
        raise PtxError("its types")
    # `to` and `source` of cvt.pack.sat.u16.s32 and of cvt.pack.sat.u8.s32.b32.
    expect(ops, 3, 4)
    c = w.get(ops[3], "u32") if len(ops) > 3 else "0u"
    return w.set(ops[0], f"{NS}pack_integers<{NS}{to}>({w.gets(ops[1:3], 's32')}, {c})")


@family("cvta")
def _cvta(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 2)
    kind = take_type(words)
    to = bool(take(words, "to"))
    space = take(words, "shared", "shared::cta", "global", "local", "const", "param")
    none_left(words)
    a = w.get(ops[1], kind)
    if space.startswith("shared"):
        a = (
            f"{NS}shared_address({NS}generic({a}))"
            if to
            else f"reinterpret_cast<uint64_t>({NS}in_shared({a}))"
        )
    return w.set(ops[0], f"static_cast<{NS}{kind}>({a})")


@family("isspacep")
def _isspacep(w: Writer, words: list[str], ops: list[Operand]) -> str:
    expect(ops, 2)
    space = take(words, "shared", "shared::cta", "global")
    none_left(words)
    if not space:
        raise PtxError("its space")
    call = f"{HOST}is_shared({NS}generic({w.get(ops[1], 'u64')}))"
    return f"{w.name(ops[0])} = {'!' if space == 'global' else ''}{call};"
