"""An asm statement as C++, or why it cannot be one."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from . import arithmetic, barriers, bits, converting, copies, loads, matrices, moves, video, votes
from .text import PtxError, read_ptx
from .writer import NS, Writer

# Each fills the table of families.
ROOMS = (arithmetic, barriers, bits, converting, copies, loads, matrices, moves, video, votes)
# The unsigned type of a register by its constraint.
SIZES = {"h": "u16", "r": "u32", "l": "u64", "q": "b128", "f": "u32", "d": "u64", "n": "u64", "b": "u16"}
# A constraint, and the expression: here anything that stands for it.
Given = tuple[str | None, object]


@functools.cache
def covered(template: str) -> str:
    """Empty if the host can run this template, or why not. Its operands are taken to be right."""
    try:
        Writer(200).statements(read_ptx(template))
    except PtxError as error:
        return str(error)
    return ""


def as_cpp(template: str, outputs: Sequence[Given], inputs: Sequence[Given]) -> list:
    """The pieces of a C++ statement: texts, and what stands for the expressions of the operands."""
    given = [*outputs, *inputs]
    body = Writer(len(given)).statements(read_ptx(template))
    pieces: list = ["({ "]
    same = {}
    for number, (constraint, expression) in enumerate(given):
        letters = re.sub(r"[=+&,*]", "", constraint or "")
        if letters.isdigit() and int(letters) < len(outputs):  # the same as an output
            same[int(letters)] = number
            letters = re.sub(r"[=+&]", "", outputs[int(letters)][0] or "")
        if letters not in SIZES:
            raise PtxError(f"an operand with the constraint {constraint!r}")
        size = NS + SIZES[letters]
        if number >= len(outputs):
            pieces += [f"{size} ptx{number} = {NS}in<{size}>(", expression, "); "]
        else:
            start = f"in<{size}>(ptx_out{number})" if "+" in (constraint or "") else f"unset<{size}>()"
            pieces += [f"auto& ptx_out{number} = (", expression, f"); {size} ptx{number} = {NS}{start}; "]
    pieces += [f"ptx{a} = ptx{b}; " for a, b in same.items()]
    pieces.append("".join(f"(void)ptx{n}; " for n in range(len(given))))
    pieces.append(body)
    pieces += [f" {NS}out(ptx_out{n}, ptx{n});" for n in range(len(outputs))]
    pieces.append(" })")
    return pieces
