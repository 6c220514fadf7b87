"""Expressions, calls and statements that are followed, and those that are not."""

from pathlib import Path

import pytest
from proving.test_proof import proof_of

KERNEL = """HEAD
// requires: blockDim.x == 64, n > 0
// size: x n, y n
__global__ void k(const float* x, float* y, int n) {
  __shared__ float s[8][8];
  int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  BODY
}
"""
RIGHT = [
    ("__constant__ float table[4]; __constant__ int count;", "if (i < n && i < count) y[i] = table[i % 4];"),
    ("", "s[t / 8][t % 8] = 1;"),
    ("", "s[t >> 3][t & 7] = 1;"),
    ("", "if (!(i >= n || i < 0)) y[i] = x[n - 1 - i];"),
    ("", "if (i < n) { float& place = y[i]; place += 1; }"),
    ("", "i < n ? y[i] = 1 : 0;"),
    ("", "float* p = y; p += i; if (i < n) *p++ = 1;"),
    ("", "if ((size_t)i < (size_t)n) y[i] = 1;"),
    (
        "__device__ int at(int i, int n) { if (i < n) return i; return n; }",
        "int j = at(i, n); if (j != n) y[j] = 1;",
    ),
    ("template <int W> __device__ void put(float* p, int i) { p[i * W] = W; }", "if (i < n) put<1>(y, i);"),
    ("__device__ void next(int& i) { i = i + 1; }", "next(i); if (i <= n) y[i - 1] = 1;"),
    ("template <class T> __device__ T twice(T v) { return v + v; }", "if (i < n) y[i] = twice(x[i]);"),
    ("#define AT(i) y[(i) * 2 / 2]", "if (i < n) AT(i) = 1;"),
    ("__device__ void all() { __syncthreads(); }", "all();"),
    ("", "if (i < n) atomicAdd(&y[0], x[i]);"),
    ("", "auto j = i; if (j < n) y[j] = fmaxf(x[j], 0.f);"),
]
WRONG = [
    ("__constant__ float table[4];", "if (i < n) y[i] = table[i % 5];"),
    ("__constant__ float table[4];", "if (i < n) table[0] = 1;"),
    ("__constant__ int count;", "if (i < n) count = i;"),
    ("", "s[0][t] = 1;"),  # inside of the array, and outside of its row
    ("", "y[i - i % 2] = 1;"),
    ("", "if (i < n) y['a' - 'a' + 0 * i] = 1;"),
    ("", "if (i < n) y[(short)i] = 1;"),
    ("", "if (i < n) y[i * 65536u * 65536u] = 1;"),
    ("", "if ((unsigned)(i - 1) < n) y[i] = 1;"),
    ("", "if (i < n) y[(bool)i] = 1;"),
    ("", "float* p = y; if (i < n) *++p = 1;"),
    ("", "const float* p = x; float* q = y; if (n > 3) q = (float*)p; if (i < n) q[i] = x[n - 1 - i];"),
    ("", "if (i < n) { float* p = (float*)x; p[i] = x[(i + 1) % n]; }"),
    ("__device__ int at(int i, int n) { return i < n ? i / 2 : n; }", "int j = at(i, n); if (j < n) y[j] = 1;"),
    ("__device__ void next(int& i) { i = i / 2; }", "next(i); if (i < n) y[i] = 1;"),
    ("__device__ void next(int i) { i = i + n; }", "if (i < n) y[i + 1] = 1;"),
    ("#define AT i / 2 + 1 - 1", "if (i < n) y[AT] = 1;"),
    ("__device__ int f(int n) { return n ? f(n - 1) : 0; }", "if (i < n) y[f(i)] = 1;"),
    ("__device__ void all() { __syncthreads(); }", "if (t < 3) all();"),
    ("", "if (i < n) { atomicAdd(&y[0], 1); if (y[0] > 3) y[0] = 0; }"),
    ("__device__ float* other;", "if (i < n) other[0] = i;"),
    ("", "if (t == 3) return; __syncthreads();"),
    ("", "if (i < n) y[x[i]] = 1;"),
    ("", "switch (t) { case 1: y[0] = 1; }"),
    ("", "if (i < n) y[__popc(i)] = 1;"),
    ("", "if (i < n) { auto f = [&](int j) { y[j / 2] = 1; }; f(i); }"),
    ("struct P { __device__ void operator[](int) const; };", "P p; p[i];"),
]  # fmt: skip


def text_of(head: str, body: str) -> str:
    return KERNEL.replace("HEAD", head).replace("BODY", body)


@pytest.mark.parametrize("head, body", RIGHT)
def test_right(head: str, body: str, tmp_path: Path):
    proof = proof_of(text_of(head, body), tmp_path)
    assert proof.is_proved, (proof.reasons, proof.counterexamples)


@pytest.mark.parametrize("head, body", WRONG)
def test_wrong(head: str, body: str, tmp_path: Path):
    assert not proof_of(text_of(head, body), tmp_path).is_proved


GROUPS = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
// requires: blockDim.x == 256
__global__ void k(const float* x, float* y) {
  __shared__ float s[256];
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<32>(block);
  int t = block.thread_rank();
  s[t] = x[t];
  MEET
  float v = tile.shfl_down(s[255 - t], 1);
  cg::sync(block);
  s[t] = v;
}
"""


@pytest.mark.parametrize(
    "meet, is_right", [("block.sync();", True), ("tile.sync();", False), ("if (t < 9) block.sync();", False)]
)
def test_cooperative_groups(meet, is_right, tmp_path):
    assert proof_of(GROUPS.replace("MEET", meet), tmp_path).is_proved == is_right
