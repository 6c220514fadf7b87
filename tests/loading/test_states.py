"""Kernels that share states of random numbers."""

import pytest
import torch

from cuffi import CaffeTypeError, load_inline

pytestmark = pytest.mark.usefixtures("cache")

STATES = """
#include <curand_kernel.h>
__global__ void init(curandState* states, unsigned long long seed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) curand_init(seed, i, 0, &states[i]);
}
__global__ void draw(curandState_t* __restrict__ states, float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = curand_uniform(states + i);
}
__global__ void at_once(float* x, unsigned long long seed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  curandState state;
  curand_init(seed, i, 0, &state);
  x[i] = curand_uniform(&state);
  x[n + i] = curand_uniform(&state);
}
"""


def test_states_of_random_numbers():
    """Kernels share an array of states: a tensor of their bytes."""
    module, one = load_inline("numbers", STATES), (1, 1, 1, 128, 1, 1)
    states, x, expected = torch.zeros(100, 64, dtype=torch.uint8), torch.zeros(2, 100), torch.zeros(200)
    module.at_once(expected, 7, 100, *one)
    module.init(states, 7, 100, *one)
    for part in x:
        module.draw(states, part, 100, *one)
    assert x.flatten().tolist() == expected.tolist() and 0.4 < x.mean() < 0.6
    with pytest.raises(CaffeTypeError, match=r"states: .*uint8"):
        module.draw(x, x, 100, *one)
