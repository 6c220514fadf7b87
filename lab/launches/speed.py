"""Time kernels with shuffles, barriers and strides on the processor, beside fibres, plain C++ and torch, in one run.

    python -m lab.launches.speed

CPU time of one thread, the least of several calls. "fibres" is the same kernel with a goto that nobody reaches.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time

import torch

from cuffi import load_inline

HEAD = """
__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  return v;
}
__device__ float block_sum(float v) {
  __shared__ float s[32];
  int lane = threadIdx.x % 32, w = threadIdx.x / 32;
  v = warp_sum(v);
  if (lane == 0) s[w] = v;
  __syncthreads();
  v = lane < blockDim.x / 32 ? s[lane] : 0.f;
  v = warp_sum(v);
  __syncthreads();
  return v;
}
"""
NORM = """
  float s = 0;
  for (int i = {first}; i < d; i += {step}) s += p[i];
  float mean = {sum}(s) / d;
  float v = 0;
  for (int i = {first}; i < d; i += {step}) {{ float t = p[i] - mean; v += t * t; }}
  float r = 1 / sqrtf({sum}(v) / d + 1e-5f);
  for (int i = {first}; i < d; i += {step}) q[i] = (p[i] - mean) * r;
"""
KERNELS = {
    "warp_sums": """
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < d ? x[i] : 0.f;
  for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);
  if (threadIdx.x % 32 == 0) y[i / 32] = v;""",
    "block_sums": """
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < d ? x[i] : 0.f;
  v = block_sum(v);
  if (threadIdx.x == 0) y[blockIdx.x] = v;""",
    "norm_of_blocks": "const float* p = x + blockIdx.x * d; float* q = y + blockIdx.x * d;"
    + NORM.format(first="threadIdx.x", step="blockDim.x", sum="block_sum"),
    "norm_of_warps": "int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;"
    " const float* p = x + row * d; float* q = y + row * d;"
    + NORM.format(first="lane", step="32", sum="warp_sum"),
    "strides": """
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += blockDim.x * gridDim.x) y[i] = 2.f * x[i] + y[i];""",
}
PLAIN = """
#include <math.h>
extern "C" {
void warp_sums(const float* __restrict x, float* __restrict y, int n) {
  for (int w = 0; w < n / 32; ++w) { float s = 0; for (int k = 0; k < 32; ++k) s += x[w * 32 + k]; y[w] = s; }
}
void block_sums(const float* __restrict x, float* __restrict y, int n) {
  for (int w = 0; w < n / 256; ++w) { float s = 0; for (int k = 0; k < 256; ++k) s += x[w * 256 + k]; y[w] = s; }
}
void norm(const float* __restrict x, float* __restrict y, int n) {
  const int d = 1024;
  for (int row = 0; row < n / d; ++row) {
    const float* p = x + row * d; float* q = y + row * d; float s = 0, v = 0;
    for (int i = 0; i < d; ++i) s += p[i];
    s /= d;
    for (int i = 0; i < d; ++i) v += (p[i] - s) * (p[i] - s);
    v = 1 / sqrtf(v / d + 1e-5f);
    for (int i = 0; i < d; ++i) q[i] = (p[i] - s) * v;
  }
}
void strides(const float* __restrict x, float* __restrict y, int n) {
  for (int i = 0; i < n; ++i) y[i] = 2.f * x[i] + y[i];
}
}
"""
ROWS, WIDTH = 4096, 1024
MILLION = 1 << 20
# name: the kernel, what it gets as d, blocks, the plain function, its elements, torch's function.
CASES = {
    "warp sum": ("warp_sums", MILLION, 4096, "warp_sums", MILLION, None),
    "block sum by warps": ("block_sums", MILLION, 4096, "block_sums", MILLION, None),
    "layer norm, a block a row": ("norm_of_blocks", WIDTH, ROWS, "norm", ROWS * WIDTH, "norm"),
    "layer norm, a warp a row": ("norm_of_warps", WIDTH, ROWS // 8, "norm", ROWS * WIDTH, "norm"),
    **{
        f"grid stride, {blocks} blocks": ("strides", MILLION, blocks, "strides", MILLION, None)
        for blocks in (32, 108, 256)
    },
}


def least(call, most: int = 12, seconds: float = 2) -> float:
    """The least CPU time of a call, in ms."""
    call()
    best, start = float("inf"), time.monotonic()
    for k in range(most):
        at = time.process_time_ns()
        call()
        best = min(best, (time.process_time_ns() - at) / 1e6)
        if k >= 2 and time.monotonic() - start > seconds:
            break
    return best


def plain_library(folder: str) -> ctypes.CDLL:
    source, library = os.path.join(folder, "plain.cpp"), os.path.join(folder, "plain.so")
    with open(source, "w") as file:
        file.write(PLAIN)
    flags = ["-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, source, "-o", library], check=True)
    return ctypes.CDLL(library)


def main() -> int:
    torch.set_num_threads(1)
    text = HEAD
    for name, body in KERNELS.items():
        for suffix, end in (("", ""), ("_fibres", "if (d == -12345) goto out; out:;")):
            text += f"__global__ void {name}{suffix}(const float* x, float* y, int d) {{{body}\n{end}}}\n"
    module = load_inline("speed_of_loops", text, backends="host")
    x, y = torch.randn(ROWS, WIDTH), torch.zeros(ROWS, WIDTH)
    pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, y)]
    with tempfile.TemporaryDirectory() as folder:
        plain = plain_library(folder)
    for title, (kernel, d, blocks, function, count, of_torch) in CASES.items():
        call = getattr(module, f"speed_of_loops_{kernel}")
        slow = getattr(module, f"speed_of_loops_{kernel}_fibres")
        ours = least(lambda: call(x, y, d, blocks, 1, 1, 256, 1, 1))  # noqa: B023
        fibres = least(lambda: slow(x, y, d, blocks, 1, 1, 256, 1, 1), 2)  # noqa: B023
        cpp = least(lambda: getattr(plain, function)(*pointers, count))  # noqa: B023
        line = f"{title:28} {ours:9.3f} ms, fibres {fibres:9.3f}, C++ {cpp:7.3f}: {ours / cpp:6.1f} times C++"
        if of_torch:
            norm = least(lambda: torch.nn.functional.layer_norm(x, (WIDTH,)))
            line += f", torch {norm:6.3f}: {ours / norm:5.1f} times"
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
