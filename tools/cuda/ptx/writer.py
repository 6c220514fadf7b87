"""Writes the instructions of one asm statement as calls of include/host/cuda_ptx.h.

`FAMILIES` maps the first word of an opcode to a function that writes the statement. It gets the other words, takes
those that it knows, and refuses those that are left: an instruction is either right or an error that names it. The
modules beside this one fill it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .text import Block, Instruction, Label, Operand, PtxError, Registers

NS = "::cuda_ptx::"
HOST = "::cuda_host::"
TYPES = {
    **{t: t for t in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64", "f16", "bf16")},
    **{t: t for t in ("f16x2", "bf16x2", "f32x2", "u16x2", "s16x2")},
    **{"b8": "u8", "b16": "u16", "b32": "u32", "b64": "u64", "b128": "b128", "pred": "bool", "tf32": "f32"},
}
BITS = {"8": "u8", "16": "u16", "32": "u32", "64": "u64", "128": "b128"}
ROUNDING = {"rn": "kNearest", "rna": "kNearest", "rz": "kZero", "rp": "kUp", "rm": "kDown"}
# Words about an operation's result, and the bits by which include/host/ptx knows them.
FLAGS = {"ftz": "kFtz", "sat": "kSat", "NaN": "kNan", "relu": "kRelu", "abs": "kAbs", "xorsign": "kXorSign"}
SPECIAL = {
    **{f"{n}tid.{c}": f"::{w}.{c}" for c in "xyz" for n, w in (("", "threadIdx"), ("n", "blockDim"))},
    **{f"{n}ctaid.{c}": f"::{w}.{c}" for c in "xyz" for n, w in (("", "blockIdx"), ("n", "gridDim"))},
    "laneid": NS + "laneid()",
    "warpid": NS + "warpid()",
    "nwarpid": "((::blockDim.x * ::blockDim.y * ::blockDim.z + 31) / 32)",
    "smid": f"(::blockIdx.x % static_cast<unsigned int>({HOST}multiprocessor_count()))",
    "nsmid": f"static_cast<unsigned int>({HOST}multiprocessor_count())",
    "gridid": "0u",
    "clock": "static_cast<uint32_t>(::clock64())",
    "clock_hi": "static_cast<uint32_t>(::clock64() >> 32)",
    "clock64": "static_cast<uint64_t>(::clock64())",
    "globaltimer": NS + "globaltimer()",
    "globaltimer_lo": f"static_cast<uint32_t>({NS}globaltimer())",
    "lanemask_eq": f"(1u << {NS}laneid())",
    "lanemask_lt": f"((1u << {NS}laneid()) - 1)",
    "lanemask_le": f"((2u << {NS}laneid()) - 1)",
    "lanemask_gt": f"~((2u << {NS}laneid()) - 1)",
    "lanemask_ge": f"~((1u << {NS}laneid()) - 1)",
}

Family = Callable[["Writer", list[str], list[Operand]], str]
FAMILIES: dict[str, Family] = {}


def family(*names: str) -> Callable[[Family], Family]:
    """The function writes the instructions that begin with these words."""

    def keep(function: Family) -> Family:
        for name in names:
            FAMILIES[name] = function
        return function

    return keep


class Writer:
    """Writes one asm statement."""

    def __init__(self, operands: int):
        self.operands = operands
        self.scopes: list[dict[str, str]] = [{}]
        self.labels: list[set[str]] = [set()]

    # -------------------------------------------------------------------------------- operands

    def name(self, operand: Operand) -> str:
        """A register."""
        if operand.kind == "operand":
            number = operand.text[1:]
            if not number.isdigit() or int(number) >= self.operands:
                raise PtxError(f"the operand {operand.text}")
            return f"ptx{number}"
        if operand.kind == "name":
            if operand.text == "_":
                return NS + "Sink()"
            found = self._lookup(operand.text)
            if found:
                return found
            raise PtxError(f"the name {operand.text}")
        raise PtxError(f"{operand.kind} as a register")

    def _lookup(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return ""

    def value(self, operand: Operand) -> str:
        """The bits of a source operand."""
        if operand.kind == "number":
            return operand.text.removesuffix("U") + "ull"
        if operand.kind == "float":
            return _float(operand.text)
        if operand.kind == "negative":
            return _negative(*operand.parts)
        if operand.kind == "not":
            return f"!{self.value(operand.parts[0])}"
        if operand.kind == "name":
            special = operand.text.lstrip("%")
            if operand.text.startswith("%") and special in SPECIAL and not self._lookup(operand.text):
                return SPECIAL[special]
            if operand.text == "WARP_SZ":
                return "32u"
        return self.name(operand)

    def get(self, operand: Operand, kind: str) -> str:
        """A source operand as a value of this type."""
        if operand.kind == "vector":
            raise PtxError("a vector as an operand")
        if kind == "bool":
            return f"{NS}get<bool>({self.value(operand)})"
        if operand.kind == "float" and operand.text[1:2] not in "fFdD":
            kind = {"u32": "f32", "u64": "f64"}.get(kind, kind)
        return f"{NS}get<{NS}{kind}>({self.value(operand)})"

    def gets(self, operands: Sequence[Operand], kind: str) -> str:
        return ", ".join(self.get(operand, kind) for operand in operands)

    def set(self, operand: Operand, value: str) -> str:
        return f"{NS}set({self.name(operand)}, {value});"

    def address(self, operand: Operand, space: str) -> str:
        """A `char*`."""
        if operand.kind != "memory":
            raise PtxError("an address without brackets")
        base, *terms = operand.parts
        if any(term.kind == "comma" for term in terms):
            raise PtxError("an address with coordinates")
        total = " + ".join(f"static_cast<uint64_t>({self.value(term)})" for term in (base, *terms))
        return f"{NS}in_shared({total})" if space == "shared" else f"{NS}generic({total})"

    # -------------------------------------------------------------------------------- statements

    def statements(self, items: list) -> str:
        pieces, labels = [], [item.name for item in items if isinstance(item, Label)]
        self.scopes.append({})
        self.labels.append(set(labels))
        if labels:
            pieces.append("__label__ " + ", ".join(map(word_of, labels)) + ";")
        pieces += [self.registers(item) for item in items if isinstance(item, Registers)]
        for item in items:
            if isinstance(item, Label):
                pieces.append(f"{word_of(item.name)}: {HOST}may_spin();")
            elif isinstance(item, Block):
                pieces.append("{ " + self.statements(item.items) + " }")
            elif isinstance(item, Instruction):
                pieces.append(self.instruction(item))
        self.scopes.pop()
        self.labels.pop()
        return " ".join(pieces)

    def registers(self, item: Registers) -> str:
        words = item.type.split(".")
        kind = TYPES.get(next((word for word in words if word in TYPES), ""))
        if not kind or {"v2", "v4"} & set(words):
            raise PtxError(f"registers of the type {item.type}")
        size = "bool" if kind == "bool" else NS + bits_of(kind)
        names = []
        for name, many in item.names:
            for one in [f"{name}{i}" for i in range(many)] if many else [name]:
                self.scopes[-1][one] = word_of(one)
                names.append(word_of(one))
        declared = ", ".join(f"{name} = {NS}unset<{size}>()" for name in names)
        return f"{size} {declared}; " + " ".join(f"(void){name};" for name in names)

    def instruction(self, item: Instruction) -> str:
        root, *words = item.words
        write = FAMILIES.get(root)
        if not write:
            raise PtxError(f"the instruction {item.opcode}")
        try:
            text = write(self, words, list(item.operands))
        except (PtxError, ValueError, IndexError, KeyError, StopIteration) as error:
            why = str(error) if isinstance(error, PtxError) else "this form"
            raise PtxError(f"the instruction {item.opcode}: {why}") from None
        if item.guard:
            negated, predicate = item.guard
            text = f"if ({'!' if negated else ''}{self.value(predicate)}) {{ {text} }}"
        return text


def _float(text: str) -> str:
    if text[:2].lower() == "0f":
        return f"0x{text[2:]}u"
    return f"0x{text[2:]}ull" if text[:2].lower() == "0d" else text


def _negative(inner: Operand) -> str:
    if inner.kind == "number":
        return f"static_cast<uint64_t>(-{inner.text.removesuffix('U')}ll)"
    if inner.kind == "float" and inner.text[1:2] not in "fFdD":
        return f"(-{inner.text})"
    raise PtxError("a negative register")


# ------------------------------------------------------------------------------------- words and types


def word_of(name: str) -> str:
    """A name of the template as one of C++, which is nobody else's."""
    return "ptxr_" + re.sub(r"\W", "_", name)


def width_of(kind: str) -> int:
    """The bits of a type."""
    if kind == "bool":
        return 8
    return int(re.sub(r"\D", "", kind.removesuffix("x2"))) * (2 if kind.endswith("x2") else 1)


def bits_of(kind: str) -> str:
    """The unsigned type of the same size."""
    return BITS[str(width_of(kind))]


def take_type(words: list[str]) -> str:
    """The type of an instruction: its last word."""
    if words and words[-1] in TYPES:
        return TYPES[words.pop()]
    raise PtxError("no type is known")


def take(words: list[str], *known: str) -> str:
    """Remove one of these words, if it is there, and return it."""
    for word in words:
        if word in known:
            words.remove(word)
            return word
    return ""


def take_flags(words: list[str], *known: str) -> str:
    """Remove the flags that the instruction may have."""
    wrong = [word for word in words if word in FLAGS and word not in known]
    if wrong:
        raise PtxError("." + wrong[0])
    found = [NS + FLAGS[word] for word in words if word in known]
    words[:] = [word for word in words if word not in known]
    return " | ".join(found) or "0"


def none_left(words: list[str]):
    if words:
        raise PtxError("." + ".".join(words))


def expect(operands: Sequence[Operand], *counts: int):
    """Refuse another number of operands."""
    if len(operands) not in counts:
        raise PtxError("its operands")


def vector_of(operand: Operand) -> list[Operand]:
    """The parts of a vector, or the operand alone."""
    return list(operand.parts) if operand.kind == "vector" else [operand]


def rounded(function: str, kind: str, words: list[str]) -> str:
    """The function for this type and the rounding that the words name."""
    rounding = ROUNDING[take(words, "rn", "rz", "rp", "rm") or "rn"]
    if rounding != "kNearest" and kind not in ("f32", "f64"):
        raise PtxError("this rounding of this type")
    return f"{NS}{function}<{NS}{kind}, {NS}{rounding}>"


def flag(condition: object) -> str:
    return "true" if condition else "false"
