"""Video instructions: vadd, vshl ... of one number with a second operation, and vadd4, vabsdiff2 ... of two or four.

An H200 limits some results by other rules than PTX's text has (tests/fixtures/ptx/video.cu): these forms are refused.
"""

from __future__ import annotations

from .text import Operand, PtxError
from .writer import FAMILIES, NS, Writer, expect, flag, none_left, take

SINGLE = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr")
LANES = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")
# The types of the result and of both operands that were compared with an H200.
ALIKE = ["u32 u32 u32", "s32 s32 s32"]
OF_SINGLE = [*ALIKE, "s32 u32 s32"]
OF_SHIFTS = ["u32 u32 u32", "s32 s32 u32"]


def _types(words: list[str], known: list[str]) -> list[str]:
    found, words[:] = words[:3], words[3:]
    if " ".join(found) not in known:
        raise PtxError("its types")
    return found


def _refuse(condition: bool, word: str) -> None:
    if condition:
        raise PtxError(f".{word}, which a GPU computes by other rules")


def _single(root: str):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        shifts = root in ("vshl", "vshr")
        to, a, b = _types(words, OF_SHIFTS if shifts else OF_SINGLE)
        limits = take(words, "sat")
        how = take(words, "clamp", "wrap") if shifts else ""
        if shifts and not how:
            raise PtxError("without .clamp or .wrap")
        second = take(words, "add", "min", "max")
        none_left(words)
        is_sum = to == "u32" and root in ("vadd", "vsub")
        _refuse(bool(limits) and (shifts or is_sum or second == "add"), "sat")
        expect(ops, 4 if second else 3)
        value = f"{NS}video({NS}k{root.capitalize()}, {w.get(ops[1], a)}, {w.get(ops[2], b)}, {flag(how == 'wrap')})"
        value = f"{NS}video_result<{NS}{to}>({value}, {flag(limits)})"
        if second:
            c = w.get(ops[3], to)
            least = flag(second == "max")
            more = f"{NS}min_max<{least}, {NS}{to}>(0, {value}, {c})"
            value = f"{NS}add<{NS}{to}>(0, {value}, {c})" if second == "add" else more
        return w.set(ops[0], value)

    return write


def _lanes(root: str, count: int):
    def write(w: Writer, words: list[str], ops: list[Operand]) -> str:
        kinds = _types(words, ALIKE)
        limits, sums = take(words, "sat"), take(words, "add")
        none_left(words)
        is_signed = kinds[0] == "s32"
        _refuse(bool(limits) and (bool(sums) or not is_signed), "sat")
        _refuse(bool(sums) and (root in ("vadd", "vsub") or (root == "vabsdiff" and is_signed)), "add")
        expect(ops, 4)
        to, a, b = (NS + kind[0] + str(32 // count) for kind in kinds)
        how = f"{NS}k{root.capitalize()}, {flag(limits)}, {flag(sums)}"
        call = f"{NS}video_lanes<{to}, {a}, {b}>({how}, {w.gets(ops[1:], 'u32')})"
        return w.set(ops[0], call)

    return write


for _root in SINGLE:
    FAMILIES[_root] = _single(_root)
for _root in LANES:
    for _count in (2, 4):
        FAMILIES[f"{_root}{_count}"] = _lanes(_root, _count)
