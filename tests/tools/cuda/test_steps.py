"""Volatile shared memory without a barrier: a warp runs in step, and the race finder tells it all the same."""

import subprocess
import sys

import torch
from support.workshop import ROOT

from cuffi import load_inline
from tools.cuda.analysis import Unit
from tools.cuda.rewrite import rewrite_unit
from tools.cuda.to_host import HostRewriter

SHARED = """
template <typename T> __device__ void warp_reduce(volatile T* s, int t) {
  s[t] += s[t + 32]; s[t] += s[t + 16]; s[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2]; s[t] += s[t + 1];
}
__global__ void helper(const float* x, float* y) {
  __shared__ float s[256];
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  for (int d = 128; d > 32; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  if (t < 32) warp_reduce(s, t);
  if (t == 0) y[blockIdx.x] = s[0];
}
__global__ void inlined(const float* x, float* y) {
  extern __shared__ float s[];
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 256 + t];
  __syncthreads();
  if (t < 128) s[t] += s[t + 128];
  __syncthreads();
  if (t < 64) s[t] += s[t + 64];
  __syncthreads();
  if (t < 32) {
    volatile float* v = s;
    v[t] = v[t] + v[t + 32];
    v[t] += v[t + 16];
    if (t < 8) v[t] += v[t + 8];
    if (t < 4) { v[t] += v[t + 4]; }
    for (int d = 2; d > 0; d /= 2) if (t < d) v[t] += v[t + d];
  }
  if (t == 0) y[blockIdx.x] = s[0];
}
__global__ void scan(const float* x, float* y) {
  __shared__ volatile float s[8][64];
  const int t = threadIdx.x, w = t / 32, l = t % 32;
  float v = x[blockIdx.x * 256 + t];
  s[w][l] = 0; s[w][l + 32] = v;
  for (int d = 1; d < 32; d *= 2) { float u = s[w][l + 32 - d]; v += u; s[w][l + 32] = v; }
  y[blockIdx.x * 256 + t] = v;
}
__global__ void neighbour(const float* x, float* y) {
  volatile __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = x[t]; s[(t + 1) % 32] = s[t]; y[t] = s[t];
}
__global__ void sort(const float* x, float* y) {
  __shared__ float own[32];
  volatile float* s = own;
  const int t = threadIdx.x;
  s[t] = x[t];
  for (int k = 0; k < 32; ++k) {
    const int a = 2 * t + (k & 1);
    if (t < 16 && a + 1 < 32) { if (s[a] > s[a + 1]) { float b = s[a]; s[a] = s[a + 1]; s[a + 1] = b; } }
  }
  y[t] = s[t];
}
"""
WANTED = {
    "helper": lambda x: x.view(4, 256).sum(1),
    "inlined": lambda x: x.view(4, 256).sum(1),
    "scan": lambda x: x.view(32, 32).cumsum(1).flatten(),
    "neighbour": lambda x: x[:32].roll(1),
    "sort": lambda x: x[:32].sort().values,
}


def test_lanes_in_step(cache):
    m = load_inline("steps", SHARED, backends="host")
    x = torch.randint(0, 100, (1024,), generator=torch.Generator().manual_seed(7)).float()
    for name, wanted in WANTED.items():
        blocks, threads = (4, 256) if name in ("helper", "inlined", "scan") else (1, 32)
        more = {"shared_bytes": 1024} if name == "inlined" else {}
        sizes = {"grid_x": blocks, "grid_y": 1, "grid_z": 1, "block_x": threads, "block_y": 1, "block_z": 1}
        y = torch.zeros_like(wanted(x))
        getattr(m, f"steps_{name}")(x, y, **sizes, **more)
        assert torch.equal(y, wanted(x)), name


PROGRAM = """#include <cstdio>
__global__ void sum(const float* x, float* y) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  volatile float* v = s;
  v[t] = x[t];
  if (t < 16) {
    v[t] += v[t + 16];
    v[t] += v[t + 8];
    v[t] += v[t + 4];
    v[t] += v[t + 2];
    v[t] += v[t + 1];
  }
  if (t == 0) *y = s[0];
}
int main() {
  float h[32], *x, *y, r;
  for (int i = 0; i < 32; ++i) h[i] = i;
  cudaMalloc(&x, 128);
  cudaMalloc(&y, 4);
  cudaMemcpy(x, h, 128, cudaMemcpyHostToDevice);
  sum<<<1, 32>>>(x, y);
  cudaMemcpy(&r, y, 4, cudaMemcpyDeviceToHost);
  return r != 496;
}
"""


def test_a_program_runs_right_and_its_race_is_told(tmp_path):
    (tmp_path / "sum.cu").write_text(PROGRAM)

    def done(module):
        command = [sys.executable, "-m", f"cuffi.{module}", str(tmp_path / "sum.cu")]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

    assert done("run").returncode == 0
    judged = done("judge")
    assert judged.returncode == 1 and "race in kernel sum" in judged.stdout and "sum.cu:8" in judged.stdout


def test_memory_that_no_block_shares_is_left_alone():
    texts, problems, _ = rewrite_unit(
        Unit(
            "__global__ void k(volatile int* flag, int* y) { int n = 0; while (*flag == 0) ++n; *y = n; }\n"
            "__global__ void c(int* y) { __shared__ int f; *(volatile int*)(&f) = 1; f = *y; }",
            "x.cu",
        ),
        HostRewriter,
        "x",
        "",
    )
    assert not problems and "Step" not in texts[""] and "meet_lanes" not in texts[""]


def test_a_pointer_that_a_block_shares_is_not_read_where_it_is_set():
    texts, problems, _ = rewrite_unit(
        Unit(
            "__global__ void k(double* y) {\n  extern __shared__ volatile double s[];\n"
            "  __shared__ volatile double* p;\n  p = y;\n  if (threadIdx.x == 0) p = y;\n  p = (double*)s;\n"
            "  p[1] = 2;\n}",
            "x.cu",
        ),
        HostRewriter,
        "x",
        "",
    )
    lines = texts[""].splitlines()
    assert not problems and sum("Step" in line for line in lines) == 1
    assert [line.partition("meet_lanes(")[2][:2] for line in lines if "meet_lanes" in line] == ["s,", "p,"]
