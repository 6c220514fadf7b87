"""Random numbers of an extension's launches on the processor: torch's generator decides where they begin."""

import itertools
import random

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from cuffi.old_torch import aten_random, cpp_extension

WHERE = torch.device("cpu")


def places(*counts: int) -> list[tuple[int, int]]:
    return [aten_random.philox(count, WHERE) for count in counts]


def test_after_a_seed_they_are_those_of_a_gpu():
    torch.manual_seed(7)
    assert places(1, 4, 5, 1) == [(7, 0), (7, 4), (7, 8), (7, 16)]
    torch.manual_seed(8)
    assert places(4) == [(8, 0)]
    torch.manual_seed(-1)  # torch's seed is 2 ** 64 - 1, which C++ reads as this
    assert places(4) == [(-1, 0)]


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 1])
def test_launches_take_no_number_twice(seed):
    """Each takes [offset, offset + count): beyond the generator's first words, and between torch's own numbers, too."""
    torch.manual_seed(seed)
    counts = random.Random(seed).choices([1, 4, 30, 256, 2480, 8000], k=150)
    taken = []
    for i, count in enumerate(counts):
        taken.append((aten_random.philox(count, WHERE)[1], count))
        torch.randn(i % 3)
    taken.sort()
    assert all(a + count <= b for (a, count), (b, _) in itertools.pairwise(taken))
    assert all(offset % 4 == 0 and 0 <= offset < 2**63 for offset, _ in taken)


def again_by_the_seed(draw):
    torch.manual_seed(5)
    return draw()


def again_by_the_state(draw, states=[]):  # noqa: B006 - the first call keeps its state for the second one
    states.append(torch.get_rng_state())
    torch.set_rng_state(states[0])
    return draw()


def again_by_a_fork(draw):
    with torch.random.fork_rng(devices=[]):
        return draw()


@pytest.mark.parametrize("before", [0, 3, 5000])
@pytest.mark.parametrize("again", [again_by_the_seed, again_by_the_state, again_by_a_fork])
def test_what_sets_the_generator_sets_the_place(again, before):
    """After any number of torch's own numbers."""
    torch.manual_seed(6)

    def draw():
        torch.randn(before)
        return places(4, 4)

    first, second = again(draw), again(draw)
    assert first == second and first[0] != first[1]


DROPOUT = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <curand_kernel.h>
__global__ void noise(float* y, int n, uint64_t seed, uint64_t offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  curandStatePhilox4_32_10_t s;
  curand_init(seed, i, offset, &s);
  if (i < n) y[i] = curand_uniform(&s);
}
torch::Tensor draw(torch::Tensor x) {
  auto y = torch::empty_like(x);
  auto g = at::get_generator_or_default<at::CUDAGeneratorImpl>(c10::nullopt,
                                                                at::cuda::detail::getDefaultCUDAGenerator());
  const auto [seed, offset] = g->philox_engine_inputs(4);
  noise<<<1, 64>>>(y.data_ptr<float>(), x.numel(), seed, offset);
  return y;
}
"""


def test_a_mask_of_an_extension(extensions):
    """With the same seed it is the same one, and a checkpoint computes its gradient with the mask of its output."""
    draw = cpp_extension.load_inline("masks", "torch::Tensor draw(torch::Tensor x);", DROPOUT, "draw").draw
    x = torch.ones(64, requires_grad=True)
    torch.manual_seed(5)
    first, other = draw(x.detach()), draw(x.detach())
    torch.manual_seed(5)
    assert torch.equal(draw(x.detach()), first) and not torch.equal(other, first)
    y = x
    for _ in range(3):
        y = checkpoint(lambda y: y * (draw(y.detach()) + 0.5), y, use_reentrant=False)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())
