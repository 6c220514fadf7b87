"""Asynchronous copies to shared memory: the results of a pipeline are those of a plain copy."""

import torch

from cuffi import load_inline

TEXT = """
#include <cuda_pipeline.h>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
__global__ void primitives(const float4* x, float4* y, int n) {
  __shared__ float4 stage[2][32];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], x + t, sizeof(float4));
  __pipeline_commit();
  for (int i = 0; i < n; i++) {
    // The last element of each thread of the last round is filled with zeros.
    if (i + 1 < n) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], x + (i + 1) * 32 + t, 16, i + 2 == n ? 4 : 0);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    y[i * 32 + t] = stage[i % 2][31 - t];
    __syncthreads();
  }
}
__global__ void groups(const float* x, float* y, int n) {
  __shared__ float stage[2][64];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, stage[0], x, sizeof(stage[0]));
  for (int i = 0; i < n; i++) {
    if (i + 1 < n) {
      cg::memcpy_async(block, stage[(i + 1) % 2], x + (i + 1) * 64, sizeof(stage[0]));
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    y[i * 64 + threadIdx.x] = stage[i % 2][63 - threadIdx.x];
    block.sync();
  }
}
void run(const float4* x, float4* y, const float* a, float* b, int n) {
  primitives<<<1, 32>>>(x, y, n);
  groups<<<1, 64>>>(a, b, n);
}
"""


def test_pipelines(cache):
    module = load_inline("pipe", TEXT, backends="host")
    x, y = torch.randn(5, 32, 4), torch.empty(5, 32, 4)
    module.primitives(x, y, 5)
    x[-1, :, -1] = 0
    assert torch.equal(y, x.flip(1))
    a, b = torch.randn(5, 64), torch.empty(5, 64)
    module.groups(a, b, 5)
    assert torch.equal(b, a.flip(1))
