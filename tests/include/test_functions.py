"""CUDA's arithmetic and bit functions, on both backends, compared with torch in double and Python's integers."""

import math
import random
import re
import subprocess
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import ROOT
from support.compiler import WORDS

from cuffi.judging.programs import program, rewritten

NEAREST, TO_ZERO, DOWN, UP = range(4)
INTEGERS = ("int", "uint", "ll", "ull")
RANGES = {
    "int": (-(2**31), 2**31 - 1),
    "uint": (0, 2**32 - 1),
    "ll": (-(2**63), 2**63 - 1),
    "ull": (0, 2**64 - 1),
}
DTYPES = {"float": (torch.float32, np.float32), "double": (torch.float64, np.float64)}

special = torch.special
# By their places in functions.cu: the reference in double, and where it is looked at.
UNARY = [
    ("rcbrt", lambda x: x.sign() * x.abs() ** (-1 / 3), (-1e3, 1000.5)),
    ("sinpi", lambda x: torch.sin(math.pi * (x - 2 * torch.round(x / 2))), (-9, 9)),
    ("cospi", lambda x: torch.cos(math.pi * (x - 2 * torch.round(x / 2))), (-9, 9)),
    ("erfcinv", lambda x: -special.ndtri(x / 2) / math.sqrt(2), (0, 2)),
    ("erfinv", special.erfinv, (-1, 1)),
    ("normcdf", special.ndtr, (-12, 12)),
    ("normcdfinv", special.ndtri, (0, 1)),
    ("erfcx", special.erfcx, (-3, 60)),
    ("cyl_bessel_i0", special.i0, (-80, 80)),
    ("cyl_bessel_i1", special.i1, (-80, 80)),
]


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("which", range(len(UNARY)), ids=[name for name, _, _ in UNARY])
def test_functions_of_a_number(kernels, device, kind, which):
    _, reference, (low, high) = UNARY[which]
    x = torch.linspace(low, high, 4001, dtype=torch.float64)[1:-1].to(DTYPES[kind][0])
    if low == 0:  # where they are steep
        x = torch.cat([x, torch.logspace(-30, -2, 99, dtype=torch.float64).to(x.dtype)])
    y = torch.empty_like(x, device=device)
    getattr(kernels["functions"], f"functions_unary_{kind}")(which, x.to(device), y, x.numel())
    wanted = reference(x.double())
    # A zero crossing has no relative error to speak of.
    near_zero = 1e-6 if kind == "float" else 1e-14
    torch.testing.assert_close(
        y.cpu().double(), wanted, rtol=3e-6 if kind == "float" else 2e-13, atol=near_zero
    )


def test_at_their_ends(kernels, device):
    x = torch.tensor([0.0, 2.0, 1.0, 3.0, -1.0, math.nan], dtype=torch.float64, device=device)
    inf, nan = math.inf, math.nan
    for which, wanted in {
        3: [inf, -inf, 0.0, nan, nan, nan],  # erfcinv
        4: [0.0, nan, inf, nan, -inf, nan],  # erfinv
        6: [-inf, nan, inf, nan, nan, nan],  # normcdfinv
    }.items():
        y = torch.empty_like(x)
        kernels["functions"].functions_unary_double(which, x, y, x.numel())
        torch.testing.assert_close(
            y.cpu(), torch.tensor(wanted, dtype=torch.float64), equal_nan=True, atol=1e-15, rtol=0
        )


def test_norms(kernels, device):
    x = torch.empty(100, 4, dtype=torch.float64).uniform_(-4, 4, generator=torch.Generator().manual_seed(1))
    top = torch.empty(100, 10, dtype=torch.float64, device=device)
    kernels["functions"].functions_norms(x.to(device), top, 100)
    two, three, four = (x[:, :n].norm(dim=1) for n in (2, 3, 4))
    sine, cosine = torch.sin(math.pi * x[:, 0]), torch.cos(math.pi * x[:, 0])
    wanted = torch.stack(
        [1 / two, three, four, 1 / three, 1 / four, sine, cosine, sine, cosine, x[:, 0] / x[:, 1]], 1
    )
    torch.testing.assert_close(top.cpu()[:, :7], wanted[:, :7], rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(top.cpu()[:, 7:], wanted[:, 7:], rtol=1e-5, atol=2e-6)


# ---------------------------------------------------------------------------------------- rounding


def rounded(exact: Fraction, mode: int, real) -> float:
    """The exact number, rounded to that type of numpy."""
    near = real(float(exact))
    around = [np.nextafter(near, real(-np.inf)), near, np.nextafter(near, real(np.inf))]
    if mode == NEAREST:
        odd = {one: one.view(np.int64 if real is np.float64 else np.int32) & 1 for one in around}
        return float(min(around, key=lambda one: (abs(Fraction(float(one)) - exact), odd[one])))
    down = mode == DOWN or (mode == TO_ZERO and exact > 0)
    if down:
        return float(max(one for one in around if Fraction(float(one)) <= exact))
    return float(min(one for one in around if Fraction(float(one)) >= exact))


def root(x: float) -> Fraction:
    """With many more digits than any type has."""
    with localcontext() as context:
        context.prec = 60
        return Fraction(Decimal(x).sqrt())


OPERATIONS = [
    ("add", lambda x, y, z: Fraction(x) + Fraction(y)),
    ("sub", lambda x, y, z: Fraction(x) - Fraction(y)),
    ("mul", lambda x, y, z: Fraction(x) * Fraction(y)),
    ("div", lambda x, y, z: Fraction(x) / Fraction(y)),
    ("fma", lambda x, y, z: Fraction(x) * Fraction(y) + Fraction(z)),
    ("rcp", lambda x, y, z: 1 / Fraction(x)),
    ("sqrt", lambda x, y, z: root(x)),
    ("double2float", lambda x, y, z: Fraction(x)),
]


@pytest.mark.parametrize("mode", range(4), ids=["rn", "rz", "rd", "ru"])
@pytest.mark.parametrize(
    "kind, which",
    [
        (kind, i)
        for i, (name, _) in enumerate(OPERATIONS)
        for kind in DTYPES
        if (kind, name) != ("float", "double2float")
    ],
)
def test_arithmetic_that_says_how_it_rounds(kernels, device, kind, which, mode):
    name, exactly = OPERATIONS[which]
    dtype, real = DTYPES[kind]
    if name == "double2float":
        real = np.float32
    generator = torch.Generator().manual_seed(which)
    given = [
        torch.empty(200, dtype=torch.float64).uniform_(-3, 3, generator=generator).to(dtype) for _ in range(3)
    ]
    if name == "sqrt":
        given[0] = given[0].abs()
    top = torch.empty(200, dtype=dtype, device=device)
    getattr(kernels["functions"], f"functions_rounded_{kind}")(
        4 * which + mode, *(one.to(device) for one in given), top, 200
    )
    wanted = [
        rounded(exactly(*values), mode, real) for values in zip(*(g.tolist() for g in given), strict=True)
    ]
    assert top.tolist() == wanted


@pytest.mark.parametrize("mode", range(4), ids=["rn", "rz", "rd", "ru"])
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("which", range(4), ids=INTEGERS)
def test_a_real_number_as_an_integer(kernels, device, kind, which, mode):
    low, high = RANGES[INTEGERS[which]]
    edges = [
        float(low),
        float(high),
        2.0 * low,
        2.0 * high,
        math.inf,
        -math.inf,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        -2.25,
        7.75,
    ]
    x = torch.tensor(edges + torch.linspace(-40, 40, 77).tolist(), dtype=DTYPES[kind][0])
    y = torch.empty(len(x), dtype=torch.int64, device=device)
    getattr(kernels["functions"], f"functions_integer_of_{kind}")(4 * which + mode, x.to(device), y, len(x))
    to = {NEAREST: round, TO_ZERO: math.trunc, DOWN: math.floor, UP: math.ceil}[mode]
    whole = [low if v < low else high if v > high else min(max(to(v), low), high) for v in x.tolist()]
    assert y.tolist() == [n - 2**64 if n >= 2**63 else n for n in whole]


@pytest.mark.parametrize("mode", range(4), ids=["rn", "rz", "rd", "ru"])
@pytest.mark.parametrize(
    "which", range(6), ids=[*(f"{i}2float" for i in INTEGERS), "ll2double", "ull2double"]
)
def test_an_integer_as_a_real_number(kernels, device, which, mode):
    low, high = RANGES[[*INTEGERS, "ll", "ull"][which]]
    draw = random.Random(which)
    values = [draw.randint(low, high) >> draw.randrange(24) for _ in range(200)] + [low, high - 1, 0, 1]
    x = torch.tensor([v - 2**64 if v >= 2**63 else v for v in values], device=device)
    y = torch.empty(len(x), dtype=torch.float64, device=device)
    kernels["functions"].functions_real_of_integer(4 * which + mode, x, y, len(x))
    real = np.float64 if which >= 4 else np.float32
    assert y.tolist() == [rounded(Fraction(v), mode, real) for v in values]


# -------------------------------------------------------------------------------------------- bits


def signed(value: int, width: int = 32) -> int:
    value &= 2**width - 1
    return value - 2**width if value >= 2 ** (width - 1) else value


def unsigned(value: int, width: int = 32) -> int:
    return value & (2**width - 1)


def mirrored(value: int, width: int) -> int:
    return int(f"{unsigned(value, width):0{width}b}"[::-1], 2)


def byte_perm(x: int, y: int, select: int) -> int:
    taken = (unsigned(y) << 32 | unsigned(x)).to_bytes(8, "little")
    return int.from_bytes([taken[select >> 4 * i & 7] for i in range(4)], "little")


def funnel(x: int, y: int, shift: int, left: bool) -> int:
    both = unsigned(y) << 32 | unsigned(x)
    return unsigned(both << shift >> 32 if left else both >> shift)


def halved(value: int) -> int:
    return int(value / 2) if abs(value) < 2**50 else -(-value // 2) if value < 0 else value // 2


BITS = [
    lambda x, y, z: mirrored(x, 32),
    lambda x, y, z: mirrored(x, 64),
    lambda x, y, z: byte_perm(x, y, unsigned(z)),
    lambda x, y, z: signed(x) * signed(y) >> 32,
    lambda x, y, z: unsigned(x) * unsigned(y) >> 32,
    lambda x, y, z: x * y >> 64,
    lambda x, y, z: unsigned(x, 64) * unsigned(y, 64) >> 64,
    lambda x, y, z: signed(signed(x, 24) * signed(y, 24)),
    lambda x, y, z: unsigned(unsigned(x, 24) * unsigned(y, 24)),
    lambda x, y, z: unsigned(abs(signed(x) - signed(y)) + z),
    lambda x, y, z: unsigned(abs(unsigned(x) - unsigned(y)) + z),
    lambda x, y, z: signed(x) + signed(y) >> 1,
    lambda x, y, z: signed(x) + signed(y) + 1 >> 1,
    lambda x, y, z: unsigned(x) + unsigned(y) >> 1,
    lambda x, y, z: unsigned(x) + unsigned(y) + 1 >> 1,
    lambda x, y, z: funnel(x, y, z & 31, True),
    lambda x, y, z: funnel(x, y, z & 31, False),
    lambda x, y, z: funnel(x, y, min(unsigned(z), 32), True),
    lambda x, y, z: funnel(x, y, min(unsigned(z), 32), False),
    lambda x, y, z: (x & -x).bit_length(),
    lambda x, y, z: signed(x) << 32 | unsigned(y),
    lambda x, y, z: (x >> 32) + signed(y),
    lambda x, y, z: max(x, y) - min(x, z),
    lambda x, y, z: max(unsigned(x), unsigned(y)) - min(unsigned(x), unsigned(z)),
    lambda x, y, z: halved(x) + halved(y),
]


@pytest.mark.parametrize("which", range(len(BITS)))
def test_bits(kernels, device, which):
    draw = random.Random(which)
    edges = [0, 1, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 0x80, 0x8765, 31, 32, 33, 40]
    rows = [
        [draw.choice([draw.choice(edges), draw.randint(-(2**63), 2**63 - 1)]) for _ in range(3)]
        for _ in range(300)
    ]
    given = [torch.tensor(column, device=device) for column in zip(*rows, strict=True)]
    top = torch.empty(300, dtype=torch.int64, device=device)
    kernels["functions"].functions_bits(which, *given, top, 300)
    assert top.tolist() == [signed(BITS[which](*row), 64) for row in rows]


def test_the_host_has_cudas_functions(nvcc, tmp_path):
    """All functions that the headers of CUDA declare for kernels."""
    (tmp_path / "nothing.cu").touch()
    listed = subprocess.run([nvcc, "-M", tmp_path / "nothing.cu"], capture_output=True, text=True, check=True)
    headers = {Path(word) for word in listed.stdout.split() if re.search(r"crt/\w+_functions\.h$", word)}
    texts = [
        re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(errors="replace"), flags=re.S) for path in headers
    ]
    declared = r"extern[^;{}]*?(?:__device__|__device_builtin__|__DEVICE_FUNCTIONS_DECL__)[^;{}]*?\b(\w+)\s*\([^()]*\)"
    names = {name for text in texts for name in re.findall(declared, text)}
    others = r"__(nv|brkpt|pm\d|prof_|cuda|is|signbit|assert|builtin|cmath|pow_)|_[A-Za-z]|.*128"
    others += r"|(defined|delete|new|throw)\Z"
    names = {name for name in names if not re.match(others, name)}
    assert len(names) > 200
    lines = ['#include "caffe_cuda_macro.h"']
    lines += [f'#line 1 "{name}"\nnamespace has_{name} {{ using ::{name}; }}' for name in sorted(names)]
    (tmp_path / "all.cpp").write_text("\n".join(lines) + "\n")
    command = [
        *WORDS,
        "-std=c++17",
        "-fsyntax-only",
        "-DCAFFE_HOST_BACKEND",
        f"-I{ROOT / 'include'}",
        "all.cpp",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    lacking = set(re.findall(r"^(\w+):1:\d+: error", done.stderr, re.M))
    assert not lacking, " ".join(sorted(lacking))


INVARIANT = """#include <cuda_runtime.h>
__global__ void k(int i, float x) {
  printf("%a %a %a %a ", __int2float_rd(i), __int2float_ru(i), __fadd_rd(1.f, x), __fadd_ru(1.f, x));
  printf("%a %a\\n", __fdiv_rd(1.f, 3.f), __fdiv_ru(1.f, 3.f));
}
int main() { k<<<1, 1>>>(-687194767, 1e-10f); }
"""


def test_a_mode_of_rounding_where_the_operands_do_not_change(tmp_path):
    """g++ computes such values before the loop over a block's threads, unless it is told."""
    (tmp_path / "k.cu").write_text(INVARIANT)
    files = [tmp_path / "k.cu"]
    built = program(rewritten(files), files, "plain", tmp_path, [])
    made = [np.float32(float.fromhex(word)) for word in subprocess.check_output([built], text=True).split()]
    exact = [Fraction(-687194767), 1 + Fraction(float(np.float32(1e-10))), Fraction(1, 3)]
    for value, down, up in zip(exact, made[::2], made[1::2], strict=True):
        assert Fraction(float(down)) < value < Fraction(float(up)) and up == np.nextafter(down, np.float32(9))
