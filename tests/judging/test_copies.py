"""memcpy and memset inside of kernels are watched, and what the host copies is as unset as it was."""

import pytest

from cuffi.judge import judge

PROGRAM = """#include <cuda_runtime.h>
#include <string.h>
__constant__ int constant[4];
{kernel}
int main() {{
  int *a, *b, *c;
  cudaMalloc(&a, 256); cudaMemset(a, 0, 256);
  cudaMalloc(&b, 256); cudaMemset(b, 0, 256);
  cudaMalloc(&c, 256);
  {launch}
}}
"""
READ = "__global__ void k(int* a, int* b) { b[threadIdx.x] = a[threadIdx.x]; }"
ASYNC = """#include <cuda_pipeline.h>
__global__ void k(int* a, int* b) {{
  __shared__ int s[64];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&s[t], &a[t], 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  {barrier}
  b[t] = s[63 - t];
}}"""
GROUP = """#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void k(int* a, int* b) {{
  __shared__ int s[64];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, a, sizeof s);
  {wait}
  b[threadIdx.x] = s[63 - threadIdx.x];
}}"""
CASES = {
    "memset by all": (
        "__global__ void k(int* a, int* b) { memset(a, threadIdx.x + 1, b[0] + 4); }",
        "k<<<1, 2>>>(a, b);",
        "race",
    ),
    "memcpy to one element": (
        "__global__ void k(int* a, int* b) { std::memcpy(a, b + threadIdx.x, b[0] + 4); }",
        "int values[2] = {0, 5}; cudaMemcpy(b, values, 8, cudaMemcpyHostToDevice); k<<<1, 2>>>(a, b);",
        "race",
    ),
    "memmove from what another writes": (
        "__global__ void k(int* a, int* b) {\n  if (threadIdx.x) memmove(b, a, b[3] + 8); else a[1] = 7; }",
        "k<<<1, 2>>>(a, b);",
        "race",
    ),
    "an asynchronous copy": (
        ASYNC.format(barrier="__syncthreads();"),
        "k<<<1, 64>>>(a, b);",
        "ok",
    ),
    "an asynchronous copy without a barrier": (ASYNC.format(barrier=""), "k<<<1, 64>>>(a, b);", "race"),
    "a copy by a group": (
        GROUP.format(wait="cg::wait(block);"),
        "k<<<1, 64>>>(a, b);",
        "ok",
    ),
    "a copy by a group that nobody waits for": (GROUP.format(wait=""), "k<<<1, 64>>>(a, b);", "race"),
    "memcpy of own elements": (
        "__global__ void k(int* a, int* b) { memcpy(a + threadIdx.x, b + threadIdx.x, b[0] + 4); }",
        "k<<<1, 32>>>(a, b);",
        "ok",
    ),
    "memset of constants": (
        "__global__ void k(int* a, int* b) { memset((void*)constant, 0, b[0] + 16); }",
        "k<<<1, 1>>>(a, b);",
        "constant",
    ),
    "memcpy of unset memory": (
        "__global__ void k(int* a, int* b) { memcpy(b, a, b[0] + 4); }",
        "k<<<1, 1>>>(c, b);",
        "unset",
    ),
    "a copy of unset memory": (
        READ,
        "cudaMemcpy(a, c, 256, cudaMemcpyDeviceToDevice); k<<<1, 32>>>(a, b);",
        "unset",
    ),
    "a copy of what is half set": (
        READ,
        "cudaMemset(c, 0, 128); cudaMemcpy(a, c, 256, cudaMemcpyDeviceToDevice); k<<<1, 32>>>(a, b);",
        "ok",
    ),
    "and more": (
        READ,
        "cudaMemset(c, 0, 128); cudaMemcpy(a, c, 256, cudaMemcpyDeviceToDevice); k<<<1, 33>>>(a, b);",
        "unset",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_copies(name, tmp_path):
    kernel, launch, kind = CASES[name]
    (tmp_path / "k.cu").write_text(PROGRAM.format(kernel=kernel, launch=launch))
    assert judge([tmp_path / "k.cu"])["verdict"] == kind
