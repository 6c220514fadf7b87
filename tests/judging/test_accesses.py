"""bounds: kernel, thread, block, array, index and size, and no addresses, which are others in each run."""

import pytest

from cuffi.judge import judge

PROGRAM = """#include <cuda_runtime.h>
__global__ void fine(const float* x, float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = x[i]; }
__global__ void k(const float* x, float* y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {body}
}}
int main() {{
  int n = 100; float *x, *y;
  cudaMalloc(&x, n * 4); cudaMalloc(&y, n * 4); cudaMemset(x, 0, n * 4);
  fine<<<1, 128>>>(x, y, n); k<<<2, 64>>>(x, y, n);
  return cudaDeviceSynchronize();
}}
"""
TOLD = {
    "if (i <= n) y[i] = 1;": ("writes 4 bytes 0 bytes after y, memory of 400 bytes (element 100)", 36),
    "if (i <= n) y[0] = 2 * x[i];": ("reads 4 bytes 0 bytes after x, memory of 400 bytes (element 100)", 36),
    "if (i < n) y[i - 2] = 1;": ("writes 4 bytes 8 bytes before y, memory of 400 bytes (element -2)", 0),
    "if (i < n) y[i + 10] += 1;": ("reads 4 bytes 0 bytes after y, memory of 400 bytes (element 100)", 26),
    "__syncthreads(); if (i <= n) y[i] = x[0];": ("writes 4 bytes 0 bytes after y", 36),
    "__syncwarp(); if (i <= n) y[i] = x[0];": ("writes 4 bytes 0 bytes after y", 36),
}


@pytest.mark.parametrize("body", TOLD)
def test_bounds_by_words(body, tmp_path):
    (tmp_path / "k.cu").write_text(PROGRAM.replace("{{", "{").replace("}}", "}").replace("{body}", body))
    words, thread = TOLD[body]
    one = next(one for one in judge([tmp_path / "k.cu"])["findings"] if one["kind"] == "bounds")
    block = 0 if "- 2" in body else 1
    assert one["kernel"] == "k" and words in one["text"] and "0x" not in one["text"], one
    assert f"k.cu:5: thread {thread} of block {block}: {body}" in one["text"] and one["place"].endswith(
        "k.cu:5"
    )


LOOK_BACK = """#include <cuda_runtime.h>
__device__ int sum_[8], all_[8], state[8], ticket;
__global__ void k(const int* x, int* y) {
  if (threadIdx.x) return;
  const int b = atomicAdd(&ticket, 1);
  sum_[b] = x[b];
  FENCE atomicExch(&state[b], 1);
  int before = 0;
  for (int p = b - 1; p >= 0; --p) {
    int s;
    while ((s = atomicAdd(&state[p], 0)) == 0) { }
    __threadfence();
    if (s == 2) { before += all_[p]; break; }
    before += sum_[p];
  }
  all_[b] = before + x[b];
  __threadfence();
  atomicExch(&state[b], 2);
  y[b] = all_[b];
}
int main() {
  int h[8] = {1, 2, 3, 4, 5, 6, 7, 8}, *x, *y;
  cudaMalloc(&x, 32); cudaMalloc(&y, 32); cudaMemcpy(x, h, 32, cudaMemcpyHostToDevice);
  k<<<8, 32>>>(x, y);
  cudaMemcpy(h, y, 32, cudaMemcpyDeviceToHost);
  return h[7] != 36;
}
"""


@pytest.mark.parametrize(("fence", "verdict"), [("__threadfence();", "ok"), ("", "race")])
def test_blocks_that_change_at_atomic_operations(fence, verdict, tmp_path):
    """Only then a block uses what another one has not ended."""
    (tmp_path / "k.cu").write_text(LOOK_BACK.replace("FENCE", fence))
    said = judge([tmp_path / "k.cu"])
    assert said["verdict"] == verdict, said
