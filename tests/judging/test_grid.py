"""Blocks that wait for each other are watched, too: barriers of the grid, of CUDA's and of one's own."""

import pytest

from cuffi.judge import judge

COOPERATIVE = """#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* a, int* b, int n) {{
  cg::grid_group grid = cg::this_grid();
  const int i = grid.thread_rank();
  a[i] = i;
  {first}
  b[i] = a[n - 1 - i];
  {second}
  a[i] = b[i] + 1;
}}
int main() {{
  int *a, *b, n = 160;
  cudaMallocManaged(&a, 4 * n); cudaMallocManaged(&b, 4 * n);
  void* arguments[] = {{&a, &b, &n}};
  cudaLaunchCooperativeKernel((void*)k, 5, 32, arguments);
  return cudaDeviceSynchronize() || a[5] != n - 5;
}}
"""
SYNC = "grid.sync();"


@pytest.mark.parametrize(
    ("first", "second", "line"), [(SYNC, SYNC, None), ("", SYNC, (6, 8)), (SYNC, "", (8, 10))]
)
def test_grid_sync(first, second, line, tmp_path):
    (tmp_path / "k.cu").write_text(COOPERATIVE.format(first=first, second=second))
    said = judge([tmp_path / "k.cu"])
    if line is None:
        assert said["verdict"] == "ok" and said["ran"] == ["k"], said
        return
    races = [one for one in said["findings"] if one["kind"] == "race"]
    assert races and all(f"k.cu:{n}: thread" in races[0]["text"] for n in line), said


OWN = """#include <cuda_runtime.h>
__device__ int arrived, passed;
__global__ void k(int* a, int* b) {{
  const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  a[i] = i;
  {fence}
  __syncthreads();
  if (threadIdx.x == 0) {{
    atomicAdd(&arrived, 1);
    while (atomicAdd(&arrived, 0) < gridDim.x) {{}}
    __threadfence();
  }}
  __syncthreads();
  b[i] =
    a[n - 1 - i];
}}
int main() {{
  int *a, *b;
  cudaMallocManaged(&a, 640); cudaMallocManaged(&b, 640);
  k<<<5, 32>>>(a, b);
  return cudaDeviceSynchronize() || b[5] != 154;
}}
"""


@pytest.mark.parametrize(("fence", "verdict"), [("__threadfence();", "ok"), ("", "race")])
def test_a_barrier_of_one_s_own(fence, verdict, tmp_path):
    (tmp_path / "k.cu").write_text(OWN.format(fence=fence))
    said = judge([tmp_path / "k.cu"])
    assert said["verdict"] == verdict, said
    assert verdict == "ok" or said["findings"][0]["place"].endswith("k.cu:15")
