"""Loops over the grid, as ranges and as threads of a grid of another shape."""

import pytest
import torch

from cuffi import load_inline

KERNELS = """
__global__ void by_for(int* y, const int* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    if (x[i] % 3 == 0) continue;
    y[i] += x[i] * 2;
  }
}
__global__ void by_while(int* y, const int* x, int n) {
  const unsigned t = threadIdx.x + blockIdx.x * blockDim.x;
  if (t >= n) return;
  const auto stride = gridDim.x * blockDim.x;
  size_t i = t;
  while (i < n) { if (x[i] % 3) y[i] += x[i] * 2; i += stride; }
}
__global__ void by_words(int* y, const int* x, int n) {
  for (unsigned int j = blockIdx.y * blockDim.y + threadIdx.y; j < 1; j += blockDim.y * gridDim.y)
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
      if (x[i] % 3) y[i] += x[i] * 2;
}
__global__ void by_atomics(int* y, const int* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(y + i % 3, x[i]);
}
__global__ void by_rows(int* y, const int* x, int n) {
  const int w = 7, h = n / 7;
  for (int r = blockIdx.y * blockDim.y + threadIdx.y; r < h; r += blockDim.y * gridDim.y)
    for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < w; c += blockDim.x * gridDim.x)
      y[r * w + c] += x[r * w + c] + r;
}
"""
SHAPES = [((3, 1, 1), (32, 1, 1)), ((1, 1, 1), (1, 1, 1)), ((64, 1, 1), (256, 1, 1)), ((2, 3, 1), (4, 2, 1))]
SHAPES += [((2, 1, 2), (4, 1, 1)), ((1, 1, 1), (8, 1, 4))]


@pytest.fixture(scope="module")
def strides():
    return load_inline("strides", KERNELS, backends="host")


@pytest.mark.parametrize("grid, block", SHAPES)
@pytest.mark.parametrize("n", [-3, 0, 1, 63, 700, 100_001])
@pytest.mark.parametrize("name", ["by_for", "by_while", "by_words", "by_atomics", "by_rows"])
def test_numbers(strides, name, n, grid, block):
    """Threads that differ in y or z alone do the same again, one after the other on the processor."""
    count = max(n, 0)
    x = torch.randint(0, 99, (100_001,), dtype=torch.int32, generator=torch.Generator().manual_seed(3))
    y, wanted = torch.zeros_like(x), torch.zeros_like(x)
    used = x[:count]
    again = grid[1] * grid[2] * block[1] * block[2]
    if name == "by_atomics":
        for k in range(3):
            wanted[k] = used[k::3].sum() * again
    elif name == "by_rows":
        rows = torch.arange(count // 7, dtype=torch.int32).repeat_interleave(7)
        wanted[: len(rows)] = (used[: len(rows)] + rows) * grid[2] * block[2]
    else:
        rows = grid[2] * block[2] if name == "by_words" else again
        wanted[:count] = torch.where(used % 3 == 0, 0, used * 2) * rows
    if name == "by_while" and n < 0:
        return  # size_t: beyond all memory
    if again > 1 and n > 1000 and name != "by_atomics":
        return  # `y +=` of blocks on two cores is a race
    getattr(strides, f"strides_{name}")(y, x, n, *grid, *block)
    assert torch.equal(y, wanted)
