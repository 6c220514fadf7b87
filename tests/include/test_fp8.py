"""8-bit floats on the host. Each has the nearest value, of two equally near the even one."""

import bisect
import math
from fractions import Fraction

import pytest
import torch

from cuffi import load_inline

TEXT = """
#include <cuda_fp8.h>
__global__ void of(float* e4m3, float* e5m2, __half* half) {
  const int i = threadIdx.x;
  __nv_fp8_e4m3 a;
  a.__x = i;
  __nv_fp8x2_e5m2 b;
  b.__x = i | (i ^ 1) << 8;
  e4m3[i] = float(a);
  e5m2[i] = float2(b).x;
  half[i] = __half(__nv_cvt_fp8_to_halfraw(i ^ 1, __NV_E5M2));
}
__global__ void to(int n, const double* x, uint8_t* o) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    o[i] = __nv_fp8_e4m3(x[i]).__x;
    o[n + i] = __nv_cvt_double_to_fp8(x[i], __NV_NOSAT, __NV_E4M3);
    o[2 * n + i] = __nv_fp8_e5m2(x[i]).__x;
    o[3 * n + i] = __nv_cvt_double_to_fp8(x[i], __NV_NOSAT, __NV_E5M2);
    o[4 * n + i] = __nv_fp8_e4m3(float(x[i])).__x;
    o[5 * n + i] = __nv_fp8x4_e5m2(float4{0.f, float(x[i]), 0.f, 0.f}).__x >> 8;
  }
}
__global__ void whole(int* o) {
  __nv_fp8_e4m3 a;
  a.__x = threadIdx.x;
  o[threadIdx.x] = int(a);
  o[256 + threadIdx.x] = int(static_cast<unsigned char>(a));
  o[512 + threadIdx.x] = int(static_cast<signed char>(a));
  o[768 + threadIdx.x] = int(__nv_fp8_e5m2(-int(threadIdx.x)).__x);
}
"""


@pytest.fixture
def m(cache):
    return load_inline("fp8", TEXT, backends="host")


def value(code: int, bits: int, bias: int) -> float:
    """By the format's definition."""
    exponent, mantissa = (code & 0x7F) >> bits, code & ((1 << bits) - 1)
    sign = -1 if code & 0x80 else 1
    if bits == 3 and code & 0x7F == 0x7F:
        return math.nan
    if bits == 2 and exponent == 31:
        return math.nan if mantissa else sign * math.inf
    own = Fraction(mantissa, 1 << bits) + (1 if exponent else 0)
    return sign * float(own * Fraction(2) ** (max(exponent, 1) - bias))


FORMATS = {"e4m3": (3, 7), "e5m2": (2, 15)}
ALL = {name: [value(code, *given) for code in range(256)] for name, given in FORMATS.items()}


# The finite codes of each format, with their exact values, which grow with the code.
FINITE = {
    name: [(Fraction(v), code) for code, v in enumerate(values[:128]) if math.isfinite(v)]
    for name, values in ALL.items()
}


def nearest(x: float, name: str, saturate: bool) -> int:
    """The code of a number: of the values around it the nearer one, of two equally near the even one."""
    sign = 0x80 if math.copysign(1, x) < 0 else 0
    values = FINITE[name]
    (second, _), (most, last) = values[-2:]
    beyond = most + (most - second) / 2
    size = abs(x)
    if math.isinf(size) or size > beyond or (size == beyond and last % 2):
        return sign | (last if saturate else 0x7F if name == "e4m3" else 0x7C)
    above = bisect.bisect(values, (size,))
    around = values[max(above - 1, 0) : above + 1]
    return sign | min(around, key=lambda v: (abs(v[0] - Fraction(size)), v[1] % 2))[1]


def test_all_values(m):
    e4m3, e5m2, half = torch.empty(256), torch.empty(256), torch.empty(256, dtype=torch.float16)
    m.of(e4m3, e5m2, half, 1, 1, 1, 256, 1, 1)
    torch.testing.assert_close(e4m3, torch.tensor(ALL["e4m3"]), rtol=0, atol=0, equal_nan=True)
    torch.testing.assert_close(e5m2, torch.tensor(ALL["e5m2"]), rtol=0, atol=0, equal_nan=True)
    swapped = torch.tensor([ALL["e5m2"][i ^ 1] for i in range(256)])
    torch.testing.assert_close(half.float(), swapped, rtol=0, atol=0, equal_nan=True)


def numbers() -> torch.Tensor:
    """Each value, what lies half way between two, and the next doubles around both; large ones, small ones."""
    own = torch.tensor(
        sorted({v for values in ALL.values() for v in values if math.isfinite(v)}), dtype=torch.double
    )
    own = torch.cat(
        [own, (own[1:] + own[:-1]) / 2, torch.tensor([464.0, 61440.0, 1e9, 2.0**-10, 2.0**-17, 1e-30])]
    )
    around = [own, torch.nextafter(own, own + 1), torch.nextafter(own, own - 1)]
    random = torch.randn(500, dtype=torch.double) * torch.logspace(-6, 6, 500, dtype=torch.double)
    ends = torch.tensor([math.inf, -math.inf, 0.0, -0.0], dtype=torch.double)
    return torch.cat([*around, -torch.cat(around), random, ends])


def test_rounding_and_saturation(m):
    x = numbers()
    n = len(x)
    o = torch.zeros(6, n, dtype=torch.uint8)
    m.to(n, x, o, 1, 1, 1, 64, 1, 1)
    floats = x.float().double().tolist()
    for row, (name, saturate, given) in enumerate(
        [
            ("e4m3", True, x.tolist()),
            ("e4m3", False, x.tolist()),
            ("e5m2", True, x.tolist()),
            ("e5m2", False, x.tolist()),
            ("e4m3", True, floats),
            ("e5m2", True, floats),
        ]
    ):
        assert o[row].tolist() == [nearest(v, name, saturate) for v in given]
    x = torch.tensor([math.nan], dtype=torch.double)
    o = torch.zeros(6, 1, dtype=torch.uint8)
    m.to(1, x, o, 1, 1, 1, 1, 1, 1)
    assert [code & 0x7F for code in o.flatten().tolist()] == [0x7F, 0x7F, 0x7E, 0x7E, 0x7F, 0x7F]


def test_whole_numbers(m):
    o = torch.zeros(4, 256, dtype=torch.int32)
    m.whole(o, 1, 1, 1, 256, 1, 1)
    exact = [0 if math.isnan(v) else math.trunc(v) for v in ALL["e4m3"]]
    assert o[0].tolist() == exact
    assert o[1].tolist() == [min(max(v, 0), 255) for v in exact]
    assert o[2].tolist() == [min(max(v, -128), 127) for v in exact]
    assert o[3].tolist() == [nearest(float(-i), "e5m2", True) if i else 0 for i in range(256)]
