"""Which kernels' warps become loops over 32 lanes."""

import pytest

from tools.cuda.analysis import Unit
from tools.cuda.to_host import WarpsRewriter
from tools.cuda.warps import SHUFFLES

HEAD = """
#define FULL 0xffffffff
#define LANES 32
__device__ float warp_sum(float v) { for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(FULL, v, d); return v; }
template <typename T> __device__ T most(T v) { v = max(v, __shfl_down_sync(FULL, v, 1)); return v; }
template <typename T, int N = 32> __device__ __forceinline__ T tile(T v) {
#pragma unroll
  for (int d = N / 2; d > 0; d /= 2) v += __shfl_xor_sync(FULL, v, d, N);
  return v;
}
__device__ void scan(float& v, int lane) { float o = __shfl_up_sync(FULL, v, 1); if (lane) v += o; }
__device__ float block_sum(float v) {
  static __shared__ float s[32];
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  return s[0];
}
__device__ float early(float v) { if (v > 0) return v; return warp_sum(v); }
__device__ float again(float v) { v = __shfl_xor_sync(FULL, v, 1); return v > 0 ? again(v) : v; }
template <typename T> __device__ T special(T v) { return v + __shfl_xor_sync(FULL, v, 1); }
template <> __device__ float special<float>(float v) { return v - __shfl_xor_sync(FULL, v, 1); }
__device__ int own_index() { return threadIdx.x; }
"""
KERNEL = "__global__ void k(float* y, const float* x, int n, int rows) { %s }"
S = "int t = threadIdx.x, lane = t % 32, wid = t / 32; float v = x[t]; "
E = " y[t] = v;"
INDEX = "blockIdx.x * blockDim.x + threadIdx.x"
WARPS = {
    S + "v += __shfl_down_sync(FULL, v, 1);" + E: True,
    S + "for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);" + E: True,
    S + "float w = __shfl_sync(~0u, v * 2, lane ^ 3, 8); v = w;" + E: True,
    S + "const unsigned mask = 0xFFFFFFFF; v += __shfl_up_sync(mask, v, n);" + E: True,
    S + "v = warp_sum(v) / n;" + E: True,
    S + "v = most(v) + 1; v = tile<float, 8>(v); v = tile(v);" + E: True,
    S + "scan(v, lane);" + E: True,
    S + "v = block_sum(v); if (t == 0) y[0] = v;": True,
    S + "float a = block_sum(v); __syncthreads(); v = block_sum(v - a);" + E: True,
    S + "if (wid == 0) { v = warp_sum(v); if (lane == 0) y[0] = v; }": True,
    S + "if (threadIdx.y > 2) v = warp_sum(v); else v = 1;" + E: True,
    S + "for (int r = blockIdx.x * 8 + wid; r < rows; r += 8) { v += x[r]; v = warp_sum(v); }" + E: True,
    S + f"int i = {INDEX}; int row = i / 32; if (row >= rows) return; v = warp_sum(v);" + E: True,
    S + "unsigned m = __ballot_sync(FULL, v > 0); v = __popc(m) + __any_sync(FULL, v > 1);" + E: True,
    S + "__shared__ float s[64]; s[t] = v; __syncwarp(); v = s[t ^ 1];" + E: True,
    S + "v = __shfl_sync(FULL, __shfl_xor_sync(FULL, v, 1), 3);" + E: True,
    S + "while (__any_sync(FULL, v > 0)) v -= 1;" + E: True,
    S + "if (__all_sync(FULL, v > 0)) v -= 1; else v = warp_sum(v);" + E: True,
    S + "unsigned m = __ballot_sync(FULL, v > 0); if (m == 0) return; while (m) { v += m; m &= m - 1; }" + E: True,
    S + "v = warp_sum(v) + own_index();" + E: True,
    S + "if (t < 64) v = warp_sum(v);" + E: True,
    S + "if (t >= n) return; v = warp_sum(v);" + E: True,
    S + "if (wid == 1) return; v = warp_sum(v); __syncthreads();" + E: True,
    # Not all lanes need to come.
    S + "if (lane < 16) v = __shfl_down_sync(FULL, v, 8);" + E: False,
    S + "if (v > 0) v = warp_sum(v);" + E: False,
    S + "for (int i = t; i < n; i += blockDim.x) v += __shfl_xor_sync(FULL, v, 1);" + E: False,
    S + "v = v > 0 ? __shfl_xor_sync(FULL, v, 1) : v;" + E: False,
    S + "if (v > 0 && __shfl_xor_sync(FULL, v, 1) > 0) v = 1;" + E: False,
    S + "bool b = v > 0 && __any_sync(FULL, v > 1); v = b;" + E: False,
    # Masks that are not full.
    S + "v += __shfl_down_sync(0xffff, v, 1);" + E: False,
    S + "v += __shfl_down_sync(n, v, 1);" + E: False,
    S + "unsigned m = __ballot_sync(FULL, t < n); v += __shfl_down_sync(m, v, 1);" + E: False,
    S + "v += __shfl_down_sync(__activemask(), v, 1);" + E: False,
    # The order of what is done in a statement, and other forms.
    S + "v = (v += 1) + __shfl_xor_sync(FULL, v, 1);" + E: False,
    S + "float a = __shfl_xor_sync(FULL, v, 1), b = __shfl_xor_sync(FULL, a, 1); v = b;" + E: False,
    S + "v = early(v);" + E: False,
    S + "v = again(v);" + E: False,
    S + "v = special(v);" + E: False,
    S + "auto f = [&] { v = warp_sum(v); }; f();" + E: False,
    S + "v = __shfl_xor_sync(FULL, v, 1); while (n) { __threadfence(); n = y[0]; }" + E: False,
    S + "v += 1;" + E: False,
}  # fmt: skip


@pytest.mark.parametrize("body", WARPS)
def test_warps(body):
    unit = Unit(HEAD + KERNEL % body, "x.cu")
    found = WarpsRewriter.of(unit, unit.main)
    assert bool(found.texts) == WARPS[body], found.reasons
    assert all(name not in text for text in found.texts.values() for name in SHUFFLES)


def test_a_reason_names_the_line():
    unit = Unit(
        KERNEL % "int t = threadIdx.x;\nif (t < 3) y[t] = __shfl_xor_sync(0xffffffff, x[t], 1);", "x.cu"
    )
    ((reason,),) = WarpsRewriter.of(unit, unit.main).reasons.values()
    assert "not the same for a warp: (t < 3)" in reason.why
    assert (reason.path, reason.line) == ("x.cu", 2)
