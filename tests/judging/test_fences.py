"""Fences of a block's threads before a barrier, and one thread's atomic behind it: what other blocks then may read."""

import pytest

from cuffi.judge import judge

PROGRAM = """#include <cuda_runtime.h>
__global__ void k(int* a, int* b) {{
  {write}
  __syncthreads();
  if (threadIdx.x || atomicAdd(b, 1) != 1) return;
  __threadfence();
  for (int i = 0; i < 64; i++) b[1] +=
    a[i];
}}
int main() {{
  int *a, *b;
  cudaMalloc(&a, 1024); cudaMemset(a, 0, 1024);
  cudaMalloc(&b, 1024); cudaMemset(b, 0, 1024);
  k<<<2, 32>>>(a, b);
}}
"""
WRITE = "a[blockIdx.x * 32 + threadIdx.x] = 5;"


@pytest.mark.parametrize(
    ("write", "verdict"),
    [
        (f"{WRITE} __threadfence();", "ok"),  # as torch's own reductions do
        (f"{WRITE} if (threadIdx.x != 7) __threadfence();", "race"),
        (f"__threadfence(); {WRITE}", "race"),
        (f"{WRITE} __threadfence_block();", "race"),
        (f"{WRITE} __threadfence(); if (threadIdx.x == 9) a[blockIdx.x * 32 + 9] = 6;", "race"),
    ],
)
def test_fences_before_a_barrier(write, verdict, tmp_path):
    (tmp_path / "k.cu").write_text(PROGRAM.format(write=write))
    said = judge([tmp_path / "k.cu"])
    assert said["verdict"] == verdict, said
    assert verdict == "ok" or said["findings"][0]["place"].endswith("k.cu:8")
