"""What programs that check nothing must compute. Each function looks at the folder where one ran, and at its output.

They are written from the programs' words, in Python, and share nothing with the toolkit.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy

REFERENCES: dict[str, Callable[[Path, str], bool]] = {}


def reference(function):
    REFERENCES[f"{function.__name__}()"] = function
    return function


def freed(folder: Path, number: int, kind: str) -> numpy.ndarray:
    """The array of this number of freed.h."""
    return numpy.fromfile(folder / f"freed{number}", kind)


@reference
def transposed(folder: Path, output: str) -> bool:
    """The second array is the first, transposed, which counts."""
    given, made = freed(folder, 0, "i4"), freed(folder, 1, "i4")
    side = round(len(given) ** 0.5)
    counts = numpy.arange(side * side, dtype="i4")
    return side > 1000 and (given == counts).all() and (made == counts.reshape(side, side).T.ravel()).all()


@reference
def least(folder: Path, output: str) -> bool:
    """The second array is the least of the first, for 64 blocks."""
    given, made = freed(folder, 0, "f4"), freed(folder, 1, "f4")
    return (given == numpy.arange(512)).all() and (made == numpy.full(64, given.min())).all()


@reference
def histogram(folder: Path, output: str) -> bool:
    """How many of C's random letters are in each seventh of the alphabet; as many letters as the file counts."""
    counts = [int(word) for word in (folder / "histogram.dat").read_text().split()]
    library = ctypes.CDLL(None)
    library.srand(1)
    expected = [0] * len(counts)
    for _ in range(sum(counts)):
        expected[library.rand() % 26 // -(-26 // len(counts))] += 1
    return sum(counts) >= 1 << 16 and counts == expected


@reference
def sums(folder: Path, output: str) -> bool:
    """Lines a + b = c, of a and b that count from 0."""
    lines = [list(map(int, line)) for line in re.findall(r"(\d+) \+ (\d+)\s+= (\d+)", output)]
    return len(lines) == 512 and lines == [[n, n, 2 * n] for n in range(512)]


# ------------------------------------------------------------------------ casts with a rounding


def whole(value: Fraction, way: str) -> int:
    """An integer: down, nearest even, up, to zero."""
    down = value.numerator // value.denominator
    if way == "rn":
        return round(value)
    return down if way == "rd" or value == down or (way == "rz" and value > 0) else down + 1


def single(value: Fraction, way: str, digits: int = 24) -> Fraction:
    """The floating-point number of so many digits."""
    if not value:
        return value
    scale = Fraction(1)
    while abs(value) * scale >= 1 << digits:
        scale /= 2
    while abs(value) * scale < 1 << (digits - 1):
        scale *= 2
    return whole(value * scale, way) / scale


def bits(kind: str, value) -> int:
    return int.from_bytes(struct.pack(f"<{kind}", value), "little")


def signed(number: int, width: int) -> int:
    number &= (1 << width) - 1
    return number - (1 << width) if number >> (width - 1) else number


WAYS = ("rd", "rn", "ru", "rz")


def cast_to_integers(x: float) -> int:
    exact, low = Fraction(x), numpy.float32(x)
    rounded = [whole(part, way) for part in (exact, Fraction(float(low))) for way in WAYS]
    narrow = wide = 0
    for number in rounded:
        narrow, wide = narrow ^ number, wide ^ number
    own = bits("d", x)
    first = signed((own >> 32) ^ (own & 0xFFFFFFFF) ^ narrow ^ bits("f", low), 32)
    second = (narrow ^ bits("f", low)) & 0xFFFFFFFF
    return signed(((first + second) & 0xFFFFFFFF) + (wide ^ own) + wide, 64)


def cast_to_floats(x: int) -> int:
    low, unsigned, own = signed(x, 32), x & 0xFFFFFFFF, x & (1 << 64) - 1
    as_double = struct.unpack("<d", struct.pack("<Q", own))[0]
    as_single = struct.unpack("<f", struct.pack("<I", unsigned))[0]
    parts = [Fraction(number) for number in (low, unsigned)]
    first = numpy.float32(as_double)  # of a sum of doubles
    for part in parts:
        for way in WAYS:
            first = numpy.float32(first + numpy.float32(float(single(part, way))))
    first = numpy.float32(numpy.float32(first + numpy.float32(as_single)) + numpy.float32(as_single))
    for part in (Fraction(x), Fraction(own)):
        for way in WAYS:
            first = numpy.float32(first + numpy.float32(float(single(part, way))))
    second = float(parts[0]) + float(parts[1])
    for part in (Fraction(x), Fraction(own)):
        for way in WAYS:
            second += float(single(part, way, 53))
    return signed(bits("d", float(first) + (second + as_double)), 64)


@reference
def casts(folder: Path, output: str) -> bool:
    """HeCBench's intrinsics-cast: all casts with a rounding, by fractions."""
    doubles, first = freed(folder, 0, "f8"), freed(folder, 1, "i8")
    numbers, second = freed(folder, 2, "i8"), freed(folder, 3, "i8")
    return (
        len(doubles) == 1000
        and [cast_to_integers(float(x)) for x in doubles] == first.tolist()
        and [cast_to_floats(int(x)) for x in numbers] == second.tolist()
    )
