"""Functions of halves that the fixture `halves` lacks: limits, NaN, masks, rounding."""

import subprocess

from conftest import ROOT
from support.compiler import WORDS

PROGRAM = r"""
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdio.h>
#define CHECK(x) if (!(x)) printf("%s\n", #x);
int main() {
  const half n = __float2half(NAN), i = __float2half(INFINITY), a = __float2half(2.5f), b = __float2half(-3.f);
  const half2 ab = __halves2half2(a, b), ba = __halves2half2(b, a), na = __halves2half2(n, a);
  CHECK(__half2int_rn(i) == 2147483647 && __half2int_rz(__hneg(i)) == -2147483647 - 1 && __half2int_rn(n) == 0)
  CHECK(__half2short_rz(__float2half(60000.f)) == 32767 && __half2ushort_rz(b) == 0 && __half2uint_rz(b) == 0)
  CHECK(__half2int_rn(a) == 2 && __half2int_ru(a) == 3 && __half2ll_rd(b) == -3 && __half2int_rd(__hneg(a)) == -3)
  CHECK(__hequ(n, a) && !__heq(n, a) && __hgtu(a, b) && !__hltu(a, b) && __hneu(n, n) && !__hleu(a, b))
  CHECK(__heq2_mask(na, na) == 0xffff0000u && __hgt2_mask(ab, ba) == 0xffffu && __hgeu2_mask(na, ab) == 0xffffffffu)
  CHECK(__hbequ2(na, ab) == false && __hbgeu2(na, ab) == true)
  CHECK(float(__hfma_relu(a, b, a)) == 0.f && float(__hfma_relu(a, a, b)) == 3.25f && __hisnan(__hfma_relu(n, a, b)))
  CHECK(float(__hfma_sat(a, a, b)) == 1.f && float(__hsub_sat(b, a)) == 0.f && float(__hadd_rn(a, b)) == -0.5f)
  CHECK(__hisnan(__hmax_nan(n, a)) && !__hisnan(__hmax(n, a)) && float(__hmin_nan(a, b)) == -3.f)
  CHECK(float(__ll2half_rn(70000)) == INFINITY && float(__ull2half_rn(2049)) == 2048.f)
  CHECK(float(__short2half_rn(-7)) == -7.f)
  CHECK(__hisinf(__float2half(65520.f)) == 1 && __hisinf(__float2half(65519.f)) == 0 && __hisinf(__hneg(i)) == -1)
  CHECK(float(__int2bfloat16_rn(257)) == 256.f && float(__int2bfloat16_rn(259)) == 260.f)
  CHECK(float(hexp10(a)) == 316.25f && float(__hisnan2(na).x) == 1.f && float(__hisnan2(na).y) == 0.f)
}
"""


def test_functions_of_halves(tmp_path):
    (tmp_path / "halves.cpp").write_text(PROGRAM)
    flags = ["-std=c++17", "-O1", f"-I{ROOT}/include", f"-I{ROOT}/include/host"]
    subprocess.run([*WORDS, *flags, "halves.cpp", "-o", "halves"], cwd=tmp_path, check=True)
    assert not subprocess.run([tmp_path / "halves"], capture_output=True, text=True, check=True).stdout
