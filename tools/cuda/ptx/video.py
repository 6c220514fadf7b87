"""Video instructions: vadd, vshl ... of one number with a second operation, and vadd4, vabsdiff2 ... of two or four."""

from __future__ import annotations

from .text import Operand, PtxError
from .writer import FAMILIES, NS, Writer, expect, flag, none_left, take

SINGLE = {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr"}
LANES = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")


def _types(words: list[str]) -> list[str]:
    """Of the result, and of both operands."""
    found, words[:] = words[:3], words[3:]
    if len(found) < 3 or not {*found} <= {"u32", "s32"}:
        raise PtxError("its types")
    return found


def _single(root: str):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        to, a, b = _types(words)
        saturates = flag(take(words, "sat"))
        shifts = root in ("vshl", "vshr")
        if shifts and b != "u32":
            raise PtxError("its types")
        how = take(words, "clamp", "wrap") if shifts else ""
        if shifts and not how:
            raise PtxError("without .clamp or .wrap")
        second = take(words, "add", "min", "max")
        none_left(words)
        expect(ops, 4 if second else 3)
        value = f"{NS}video({NS}k{root.capitalize()}, {w.get(ops[1], a)}, {w.get(ops[2], b)}, {flag(how == 'wrap')})"
        value = f"{NS}video_result<{NS}{to}>({value}, {saturates})"
        if second:
            c = w.get(ops[3], to)
            least = flag(second == "max")
            more = f"{NS}min_max<{least}, {NS}{to}>(0, {value}, {c})"
            value = f"{NS}add<{NS}{to}>(0, {value}, {c})" if second == "add" else more
        return w.set(ops[0], value)

    return write


def _lanes(root: str, count: int):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        kinds = _types(words)
        saturates, adds = flag(take(words, "sat")), flag(take(words, "add"))
        none_left(words)
        expect(ops, 4)
        to, a, b = (NS + kind[0] + str(32 // count) for kind in kinds)
        how = f"{NS}k{root.capitalize()}, {saturates}, {adds}"
        call = f"{NS}video_lanes<{to}, {a}, {b}>({how}, {w.gets(ops[1:], 'u32')})"
        return w.set(ops[0], call)

    return write


for _root in SINGLE:
    FAMILIES[_root] = _single(_root)
for _root in LANES:
    for _count in (2, 4):
        FAMILIES[f"{_root}{_count}"] = _lanes(_root, _count)
