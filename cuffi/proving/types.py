"""The types of CUDA C that a proof follows: whole numbers, pointers, and numbers that no index is made of."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


class NotFollowed(Exception):
    """What the proof does not follow. `node`: where, if it is known."""

    def __init__(self, text: str, node=None):
        super().__init__(text)
        self.text, self.node = text, node


@dataclass(frozen=True)
class Integer:
    """A whole number's type. bool has one bit."""

    name: str
    bits: int
    signed: bool

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    @property
    def size(self) -> int:
        return max(self.bits // 8, 1)


@dataclass(frozen=True)
class Real:
    """Numbers that no index is made of, or a template's type of numbers, whose size is not known."""

    name: str
    size: int | None = None


@dataclass(frozen=True)
class Vector:
    """int4, float2 and the like."""

    name: str
    element: Integer | Real
    count: int

    @property
    def size(self) -> int:
        assert self.element.size is not None
        return self.element.size * self.count


@dataclass(frozen=True)
class PointerTo:
    to: Integer | Real | Vector | PointerTo | Void

    size = 8


@dataclass(frozen=True)
class Void:
    name: str = "void"
    size = None


Type = Integer | Real | Vector | PointerTo | Void

BOOL = Integer("bool", 1, False)
INT, UNSIGNED = Integer("int", 32, True), Integer("unsigned", 32, False)
LONG, SIZE = Integer("long", 64, True), Integer("size_t", 64, False)
_WORDS = {
    8: ("char signed+char int8_t", "unsigned+char uint8_t uchar"),
    16: ("short short+int int16_t", "unsigned+short unsigned+short+int uint16_t ushort"),
    32: ("int signed signed+int int32_t", "unsigned unsigned+int uint uint32_t"),
    64: (
        "long long+int long+long long+long+int int64_t ptrdiff_t intptr_t",
        "unsigned+long unsigned+long+int unsigned+long+long unsigned+long+long+int uint64_t size_t uintptr_t ulong",
    ),
}
NAMES: dict[str, Type] = {"bool": BOOL, "void": Void()}
for _bits, _both in _WORDS.items():
    for _signed, _all in zip((True, False), _both, strict=True):
        for _word in _all.split():
            NAMES[_word.replace("+", " ")] = Integer(_word.replace("+", " "), _bits, _signed)
_REALS = {
    8: "double",
    4: "float",
    2: "half __half __nv_bfloat16 nv_bfloat16",
    1: "__nv_fp8_e4m3 __nv_fp8_e5m2",
}
for _size, _all in _REALS.items():
    NAMES |= {word: Real(word, _size) for word in _all.split()}
for _word, _element in (
    ("float", NAMES["float"]), ("double", NAMES["double"]), ("int", INT), ("uint", UNSIGNED), ("char", NAMES["char"]),
    ("uchar", NAMES["uchar"]), ("short", NAMES["short"]), ("ushort", NAMES["ushort"]),
):  # fmt: skip
    for _count in (2, 3, 4):
        assert isinstance(_element, Integer | Real)
        NAMES[f"{_word}{_count}"] = Vector(f"{_word}{_count}", _element, _count)
for _word, _of in (("half2", "half"), ("__half2", "half"), ("__nv_bfloat162", "__nv_bfloat16")):
    _element = NAMES[_of]
    assert isinstance(_element, Real)
    NAMES[_word] = Vector(_word, _element, 2)

_LEFT_OUT = re.compile(
    r"\b(const|constexpr|volatile|static|register|inline|typename|__restrict__|__restrict|restrict|__shared__|extern"
    r"|__constant__|__device__|__forceinline__|__inline__|__noinline__|__host__|struct)\b"
)


def type_of(words: str, names: Mapping[str, Type]) -> Type:
    """The type that these words say. `names`: of typedefs and templates.

    Raises:
        NotFollowed: it is none that a proof follows.
    """
    plain = re.sub(r"\b(std)?\s*::", "", _LEFT_OUT.sub(" ", words))
    stars = plain.count("*")
    plain = " ".join(plain.replace("*", " ").split())
    found = names.get(plain) or NAMES.get(plain) or NAMES.get(" ".join(sorted(plain.split(), key=_order)))
    if found is None:
        raise NotFollowed(f"the type {plain or words!r} is not followed")
    for _ in range(stars):
        found = PointerTo(found)
    return found


def _order(word: str) -> int:
    """unsigned, long and int may stand in any order."""
    return {"unsigned": 0, "signed": 0, "long": 1, "short": 1}.get(word, 2)


def common(a: Integer, b: Integer) -> Integer:
    """The type in which C++ computes with both."""
    a, b = promoted(a), promoted(b)
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return a if not a.signed else b


def promoted(a: Integer) -> Integer:
    return INT if a.bits < 32 else a
