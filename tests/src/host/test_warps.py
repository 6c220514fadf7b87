"""Kernels whose warps are loops: the numbers of fibres, bit by bit, and of torch."""

import warnings

import pytest
import torch

from cuffi import load_inline
from tools.cuda.analysis import Unit
from tools.cuda.rewrite import rewrite_unit
from tools.cuda.to_host import HostRewriter

HEAD = """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
#define FULL 0xffffffff
template <typename T> __device__ T warp_sum(T v) {
#pragma unroll
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(FULL, v, d);
  return v;
}
__device__ float block_sum(float v) {
  static __shared__ float s[32];
  const int lane = threadIdx.x % 32, wid = threadIdx.x / 32;
  v = warp_sum(v);
  if (lane == 0) s[wid] = v;
  __syncthreads();
  v = lane < (blockDim.x + 31) / 32 ? s[lane] : 0.f;
  v = warp_sum(v);
  __syncthreads();
  return v;
}
"""
BODIES = {
    "rows_of_blocks": """
      const float* p = x + blockIdx.x * d;
      float s = 0;
      for (int i = threadIdx.x; i < d; i += blockDim.x) s += p[i];
      float mean = block_sum(s) / d, v = 0;
      for (int i = threadIdx.x; i < d; i += blockDim.x) { float t = p[i] - mean; v += t * t; }
      float r = 1 / sqrtf(block_sum(v) / d + 1e-5f);
      for (int i = threadIdx.x; i < d; i += blockDim.x) y[blockIdx.x * d + i] = (p[i] - mean) * r;""",
    "rows_of_warps": """
      const int lane = threadIdx.x & 31, warps = (blockDim.x + 31) / 32;
      for (int row = blockIdx.x * warps + threadIdx.x / 32; row < rows; row += gridDim.x * warps) {
        const float* p = x + row * d;
        float s = 0;
        for (int i = lane; i < d; i += 32) s += p[i];
        float mean = warp_sum(s) / d;
        float v = 0;
        for (int i = lane; i < d; i += 32) { float t = p[i] - mean; v += t * t; }
        float r = 1 / sqrtf(warp_sum(v) / d + 1e-5f);
        for (int i = lane; i < d; i += 32) y[row * d + i] = (p[i] - mean) * r;
      }""",
    "votes": """
      const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
      const unsigned above = __ballot_sync(FULL, x[i] > 0);
      double wide = x[i];
      for (int k = 1; k < 32; k *= 2) { double o = __shfl_up_sync(FULL, wide, k); if (lane >= k) wide += o; }
      if (threadIdx.x / 32 == 1) y[i] = __popc(above) + __any_sync(FULL, x[i] > 2) + wide;
      else y[i] = __shfl_sync(FULL, __shfl_down_sync(FULL, x[i], 3), lane * 5, 16);""",
    "groups": """
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      auto warp = cg::tiled_partition<32>(cg::this_thread_block());
      auto tile = cg::tiled_partition<8>(warp);
      float v = cg::reduce(warp, x[i], cg::plus<float>()) + cg::reduce(tile, x[i] * 3, cg::greater<float>());
      v += tile.shfl_xor(v, 3) + tile.shfl_xor(v, 9) + tile.shfl_down(v, 2) + warp.meta_group_rank();
      y[i] = v + tile.any(x[i] > 1) + tile.ballot(x[i] > 0) + __reduce_add_sync(FULL, int(x[i] * 9));""",
    # Who leaves behind a meeting has been at it, for all others.
    "behind_a_meeting": """
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      float v = __popc(__match_any_sync(FULL, x[i] > 0)) + __shfl_sync(FULL, x[i], threadIdx.x * 7);
      if (x[i] > 1) return;
      v += __shfl_down_sync(FULL, v, 1) + __shfl_sync(FULL, v, threadIdx.x * 5);
      if (x[i] < -1) return;
      y[i] = v + __shfl_up_sync(FULL, v, 3);""",
    "early": """
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (x[i] > 1.5f) return;
      float v = warp_sum(x[i]) + __popc(__ballot_sync(FULL, x[i] > 0)) + __all_sync(FULL, x[i] > -2);
      while (__any_sync(FULL, v > 3)) v -= 1.5f;
      if (x[i] < -1) { y[i] = v; return; }
      __shared__ float s[1024];
      s[threadIdx.x + blockDim.x * threadIdx.y] = v;
      __syncthreads();
      v += s[threadIdx.x / 2] * 0 + __shfl_up_sync(FULL, v, 3) + __popc(__match_any_sync(FULL, v > 1));
      y[i] = v;""",
}


def text() -> str:
    parts = [HEAD]
    for name, body in BODIES.items():
        for suffix, end in (("", ""), ("_fibres", "if (d == -12345) goto out; out:;")):
            head = f"__global__ void {name}{suffix}(float* y, const float* x, int d, int rows)"
            parts.append(f"{head} {{{body}\n{end}}}\n")
    return "".join(parts)


@pytest.fixture(scope="module")
def warps():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # the loops compile
        return load_inline("warps", text(), backends="host")


def test_all_but_the_fibres_are_loops():
    rewritten = rewrite_unit(Unit(text(), "x.cu"), HostRewriter, "", "")[0][""]
    assert rewritten.count("::cuda_host::kWarps") == len(BODIES)
    # The kernel's own text begins anew at its line.
    lines = rewritten.splitlines()
    begins = next(i for i, line in enumerate(text().splitlines(), 1) if "__global__" in line)
    at = lines.index(f'#line {begins} "x.cu"')
    assert lines[at + 2].startswith("      const float* p = x")


@pytest.mark.parametrize("block", [(32, 1, 1), (256, 1, 1), (1024, 1, 1), (64, 3, 1), (40, 1, 1)])
@pytest.mark.parametrize("name", BODIES)
def test_the_bits_of_fibres(warps, name, block):
    rows, d = 24, 200
    x = torch.randn(rows * d * 8, generator=torch.Generator().manual_seed(2))
    ours, theirs = torch.zeros(2, len(x))
    for kernel, y in ((name, ours), (f"{name}_fibres", theirs)):
        getattr(warps, f"warps_{kernel}")(y, x, d, rows, rows, 1, 1, *block)
    assert torch.equal(ours, theirs)
    if block[1] == 1 and block[0] % 32 == 0 and name.startswith("rows"):
        wanted = torch.nn.functional.layer_norm(x[: rows * d].view(rows, d).double(), (d,), eps=1e-5)
        torch.testing.assert_close(ours[: rows * d].view(rows, d).double(), wanted, atol=1e-5, rtol=1e-5)


def test_an_error_in_a_warp(warps):
    """Memory that is not there ends the launch, and the next one runs."""
    x, y = torch.randn(4096), torch.zeros(4096)
    with pytest.raises(RuntimeError, match="kernel rows_of_blocks: used memory that is not there"):
        warps.warps_rows_of_blocks(y, x, 1 << 30, 1, 1, 1, 1, 64, 1, 1)  # it reads until no memory is there
    warps.warps_votes(y, x, 1, 1, 4, 1, 1, 64, 1, 1)
    assert y[:256].any()


# By a distance that is the same for the warp the values move in registers (cuda_launch.h), as their size asks for.
MOVES = """
__global__ void moves(int* y, const int* x) {
  const int lane = threadIdx.x;
  const unsigned char a = x[lane];
  const short b = x[lane];
  const float c = x[lane];
  const double d = x[lane];
  for (int k = 0; k < 6; ++k) {
    const int by = k < 5 ? 1 << k : 5;
%s  }
}
"""
WAYS = {"up": lambda i, by: i - by, "down": lambda i, by: i + by, "xor": lambda i, by: i ^ by}


def test_moves_of_all_sizes():
    places = [(value, way) for value in "abcd" for way in WAYS]
    lines = "".join(
        f"    y[({n} * 6 + k) * 32 + lane] = __shfl_{way}_sync(0xffffffff, {value}, by);\n"
        for n, (value, way) in enumerate(places)
    )
    text = MOVES % lines
    assert 'kWarps>("moves"' in rewrite_unit(Unit(text, "x.cu"), HostRewriter, "", "")[0][""]
    x, y = torch.arange(40, 72, dtype=torch.int32), torch.zeros(12 * 6 * 32, dtype=torch.int32)
    load_inline("moves", text, backends="host").moves_kernel(y, x, 1, 1, 1, 32, 1, 1)
    for n, (value, way) in enumerate(places):
        for k, by in enumerate((1, 2, 4, 8, 16, 5)):
            of = [WAYS[way](i, by) for i in range(32)]
            wanted = [int(x[j if 0 <= j < 32 else i]) for i, j in enumerate(of)]
            assert y.view(12, 6, 32)[n, k].tolist() == wanted, (value, way, by)
