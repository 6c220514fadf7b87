"""The numbers and alignments of a C function's arguments: each C type, at its limits."""

import ctypes
import datetime
import importlib
import math
import operator
from decimal import Decimal
from fractions import Fraction

import numpy
import pytest
import torch
from support.reading import reads  # noqa: F401  (a fixture)
from support.workshop import Workshop

from cuffi.runtime.cases import load_package


class Subclass(torch.Tensor):
    pass


KINDS = ["double", "float", "int", "int64_t", "uint8_t", "bool", "long", "short", "unsigned", "unsigned char", "size_t",
         "unsigned long long", "signed char", "long unsigned int", "uint16_t"]  # fmt: skip
NUMBERS = """#include "caffe_cuda_macro.h"
#include <stddef.h>
struct float4_of_mine { float x, y, z, w; };
extern "C" int numbers_store(DECLARED) {
  int at = 0;
  STORED
  return 0;
}
extern "C" int numbers_aligned(const float* in, float* out, void* stream) { return out[0] = in[0], 0; }
extern "C" int64_t numbers_sum(long a, unsigned char b, int dtype) { return a + b + dtype; }
"""
DECLARED = """int numbers_store(DECLARED);
// in: aligned to 16 bytes
int numbers_aligned(const float* in, float* out, void* stream);
int64_t numbers_sum(long a, unsigned char b, int dtype);
"""


@pytest.fixture(scope="module")
def numbers(shared_layers, tmp_path_factory):
    """A C function that takes a number of each kind and stores it as a double, exactly if it has 53 bits."""
    declared = ", ".join(["double *top", *(f"{kind} n{i}" for i, kind in enumerate(KINDS))])
    stored = " ".join(f"top[at++] = double(n{i});" for i in range(len(KINDS)))
    workshop = Workshop(tmp_path_factory.mktemp("numbers") / "my_layers")
    workshop.layer(
        "numbers",
        cu=NUMBERS.replace("DECLARED", declared).replace("STORED", stored),
        numbers_h=DECLARED.replace("DECLARED", declared),
    )
    workshop.build()
    return importlib.import_module(f"{load_package(workshop.folder, 'numbers_layers')}.numbers").layer


class Subscripted:
    """True, with a length, but no number."""

    def __len__(self):
        return 1


TRUTHS = {
    "True": 1.0, "False": 0.0, "1": 1.0, "0": 0.0, repr(numpy.bool_(True)): 1.0, "tensor(True)": 1.0,
    repr(numpy.uint8(1)): 1.0,
    "tensor([False])": 0.0, repr(numpy.int64(1)): 1.0, "tensor(1)": 1.0, repr(numpy.array(1)): 1.0,
}  # fmt: skip


def right(kind: str, value):
    """C's value for a Python value, by ctypes; None if it must be refused."""
    names = {"bool": "bool", "double": "double", "float": "float"}
    # Python can make a number of some of these, as of "1".
    if isinstance(value, (str, bytes, bytearray, list, dict, Subscripted, numpy.complex64)):
        return None
    if str(getattr(value, "dtype", "")) in ("<U1", "torch.complex64"):
        return None
    if kind == "bool":
        # Compared as text, because 1.0 == 1 and every object has a truth.
        return TRUTHS.get(repr(value))
    if kind in names:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            return None
        found = getattr(ctypes, f"c_{kind}")(number).value
        return None if math.isinf(found) and not math.isinf(number) else found
    try:
        number = int(value) if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None
    sized = {"unsigned": ctypes.c_uint, "unsigned char": ctypes.c_ubyte, "signed char": ctypes.c_byte,
             "unsigned long long": ctypes.c_ulonglong, "long unsigned int": ctypes.c_ulong}  # fmt: skip
    number_type = sized.get(kind) or getattr(
        ctypes, f"c_{kind.removesuffix('_t')}" if kind != "size_t" else "c_size_t"
    )
    return float(number) if number_type(number).value == number else None


VALUES = [0, 1, -1, 2, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32, -2**31, -2**31 - 1, 2**63 - 1, 2**63,
          2**64 - 1, 2**64, -2**63, 10**400, True, False, 0.5, -0.0, 1e39, -1e39, 1e300, 3.4028235e38, float("inf"),
          "1", "1e3", "no", "", b"1", bytearray(b"1"), [], [1], {}, {1: 2}, None, ..., int, Subscripted(), object(),
          1j, numpy.complex64(1), Fraction(1, 2), Decimal("0.5"), float("nan"), datetime.timedelta(1),
          numpy.int64(7), numpy.int64(1), numpy.uint8(1), numpy.float32(0.5), numpy.float64(2), numpy.bool_(True),
          numpy.array(1), numpy.array("1"), numpy.array([1, 2]), numpy.array([True, False]), numpy.array(0.5),
          torch.tensor(1), torch.tensor(2), torch.tensor(0.5), torch.tensor(True), torch.tensor([False]),
          torch.tensor([1, 2]), torch.tensor(1j), torch.zeros(0)]  # fmt: skip


@pytest.mark.parametrize("place", range(len(KINDS)), ids=KINDS)
def test_numbers(numbers, place):
    """Each C type, at its limits and beyond them."""
    for value in VALUES:
        top = torch.full((len(KINDS),), -7.0, dtype=torch.float64)
        wanted = right(KINDS[place], value)
        given: list[object] = [1] * len(KINDS)
        given[place] = value
        if wanted is None:
            with pytest.raises((TypeError, ValueError), match=rf"^numbers: n{place}: expected "):
                assert numbers.numbers_store(top, *given), f"{value!r} was taken"
            assert (top == -7).all()
        else:
            numbers.numbers_store(top, *given)
            wanted_all = torch.ones(len(KINDS), dtype=torch.float64)
            wanted_all[place] = wanted
            assert torch.equal(top.nan_to_num(7.5), wanted_all.nan_to_num(7.5)), value


def test_a_number_that_c_returns(numbers):
    x = torch.zeros(3, dtype=torch.float64)
    for like in (x, x[::2], x.as_subclass(Subclass), torch._neg_view(x), torch.zeros(0, dtype=torch.float64)):
        assert numbers.numbers_sum(like, 40, 2) == 43
    with pytest.raises(ValueError, match="numbers: b: expected an int from 0 to 255, got 256"):
        numbers.numbers_sum(x, 40, 256)


def test_memory_is_aligned(numbers):
    """As the element type requires, and as the declaration says for C's wider type."""
    out, memory = torch.zeros(1), torch.arange(64, dtype=torch.float32)
    start = next(i for i in range(4) if memory[i:].data_ptr() % 16 == 0)
    numbers.numbers_aligned(memory[start:], out)
    assert out.item() == start
    for off in (1, 2, 3):
        with pytest.raises(
            ValueError, match=r"numbers: in: expected memory at a multiple of 16 bytes .*clone it"
        ):
            numbers.numbers_aligned(memory[start + off :], out)
        numbers.numbers_aligned(memory[start + off :].clone(), out)
        assert out.item() == start + off
    odd = torch.frombuffer(bytearray(65), dtype=torch.float32, offset=1, count=16)
    with pytest.raises(ValueError, match="numbers: out: expected memory at a multiple of 4 bytes"):
        numbers.numbers_aligned(memory[start:], odd)


def test_a_count_arrives_whole_or_not_at_all(kernels):
    """test_positions_near_2_31 looks at the indices."""
    declared = kernels["loops"].library("host").signatures["loops_fill"]
    parameters = declared["parameters"] if isinstance(declared, dict) else declared
    assert ["int64_t", "count"] in [list(p) for p in parameters]
    with pytest.raises((OverflowError, ValueError)):  # what C takes as an int is not cut down to one
        kernels["loops"].loops_fill_int(torch.zeros(4), 2**31, 0)
