"""Cooperative groups, compared with Python. On CUDA nvcc's own header serves."""

import math

import pytest
import torch

from cuffi import CaffeRuntimeError, load_inline

TEXT = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
// Eight numbers for each thread.
__global__ void tiles(const int* in, int* o) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  const int value = in[block.thread_rank()];
  int* own = o + 8 * block.thread_rank();
  own[0] = cg::reduce(tile, value, cg::plus<int>());
  own[1] = cg::reduce(tile, value, cg::greater<int>());
  own[2] = cg::inclusive_scan(tile, value);
  own[3] = cg::exclusive_scan(tile, value);
  own[4] = tile.shfl_down(value, 2);
  own[5] = tile.ballot(value % 2);
  own[6] = tile.meta_group_rank() * 100 + tile.thread_rank();
  own[7] = tile.shfl(value, 3);
}
__global__ void coalesced(const int* in, int* o) {
  const int i = threadIdx.x;
  if (in[i] % 2) {
    cg::coalesced_group active = cg::coalesced_threads();
    o[2 * i] = active.size() * 100 + active.thread_rank();
    o[2 * i + 1] = cg::reduce(active, in[i], cg::plus<int>());
  }
}
__global__ void parted(const int* in, int* o) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int i = threadIdx.x, value = in[i];
  auto same = cg::labeled_partition(warp, value % 5);
  o[4 * i] = 1000 * same.meta_group_size() + 100 * same.meta_group_rank() + same.thread_rank();
  o[4 * i + 1] = cg::reduce(same, value, cg::plus<int>());
  auto half = cg::binary_partition(warp, value % 3 == 0);
  o[4 * i + 2] = 1000 * half.meta_group_size() + 100 * half.meta_group_rank() + half.thread_rank();
  if (value % 2) {
    auto odd = cg::coalesced_threads();
    o[4 * i + 3] = cg::reduce(cg::labeled_partition(odd, value % 3), value, cg::plus<int>());
  }
}
__device__ int sum(const cg::thread_group& group, int* shared, int value) {
  for (int i = group.size() / 2; i > 0; i /= 2) {
    shared[group.thread_rank()] = value;
    group.sync();
    if (group.thread_rank() < i) value += shared[group.thread_rank() + i];
    group.sync();
  }
  return value;
}
__global__ void of_block(const int* in, int* o) {
  __shared__ int shared[64];
  auto block = cg::this_thread_block();
  const int total = sum(block, shared, in[block.thread_rank()]);
  if (block.thread_rank() == 0) o[0] = total;
}
__global__ void rounds(int* a, int count) {
  cg::grid_group grid = cg::this_grid();
  const int i = grid.thread_rank(), n = grid.size();
  for (int k = 0; k < count; ++k) {
    const int next = a[(i + 1) % n];
    grid.sync();
    a[i] = next;
    grid.sync();
  }
}
extern "C" int turn(int* a, int count, int blocks, int threads) {
  void* arguments[] = {&a, &count};
  cudaLaunchCooperativeKernel(rounds, dim3(blocks), dim3(threads), arguments);
  return CAFFE_LAUNCH_STATUS();
}
extern "C" int turn_plainly(int* a, int count, int blocks, int threads) {
  rounds<<<blocks, threads>>>(a, count);
  return CAFFE_LAUNCH_STATUS();
}
extern "C" int tiles_of(const int* in, int* o) { tiles<<<1, 64>>>(in, o); return CAFFE_LAUNCH_STATUS(); }
extern "C" int coalesced_of(const int* in, int* o) { coalesced<<<1, 32>>>(in, o); return CAFFE_LAUNCH_STATUS(); }
extern "C" int parted_of(const int* in, int* o) { parted<<<1, 32>>>(in, o); return CAFFE_LAUNCH_STATUS(); }
extern "C" int block_of(const int* in, int* o) { of_block<<<1, 64>>>(in, o); return CAFFE_LAUNCH_STATUS(); }
"""


@pytest.fixture
def groups(cache):
    return load_inline("groups", TEXT, backends="host")


NUMBERS = torch.randint(-50, 50, (64,), generator=torch.Generator().manual_seed(1)).int()


def test_tiles(groups):
    top = torch.zeros(64, 8, dtype=torch.int32)
    groups.tiles_of(NUMBERS, top)
    for i, row in enumerate(top.tolist()):
        own, at = NUMBERS[i // 8 * 8 : i // 8 * 8 + 8].tolist(), i % 8
        odd = sum(1 << k for k in range(8) if own[k] % 2)
        down = own[at + 2] if at < 6 else own[at]
        scans = [sum(own[: at + 1]), sum(own[:at])]
        assert row == [sum(own), max(own), *scans, down, odd, i // 8 * 100 + at, own[3]]


def test_the_lanes_at_a_statement(groups):
    top = torch.zeros(32, 2, dtype=torch.int32)
    groups.coalesced_of(NUMBERS[:32].clone(), top)
    odd = [i for i in range(32) if NUMBERS[i] % 2]
    total = sum(int(NUMBERS[i]) for i in odd)
    wanted = [[100 * len(odd) + odd.index(i), total] if i in odd else [0, 0] for i in range(32)]
    assert top.tolist() == wanted


def test_parts_of_a_group(groups):
    """By label and by answer. Numbers of C: -7 % 5 is -2."""
    top = torch.zeros(32, 4, dtype=torch.int32)
    groups.parted_of(NUMBERS[:32].clone(), top)
    own = NUMBERS[:32].tolist()
    labels = [math.fmod(v, 5) for v in own]
    firsts = list(dict.fromkeys(labels))  # in the order of their first lanes
    for i, row in enumerate(top.tolist()):
        same = [k for k in range(32) if labels[k] == labels[i]]
        half = [k for k in range(32) if (own[k] % 3 == 0) == (own[i] % 3 == 0)]
        odd = [k for k in range(32) if own[k] % 2 and math.fmod(own[k], 3) == math.fmod(own[i], 3)]
        assert row == [
            1000 * len(firsts) + 100 * firsts.index(labels[i]) + same.index(i),
            sum(own[k] for k in same),
            2000 + 100 * (own[i] % 3 == 0) + half.index(i),
            sum(own[k] for k in odd) if own[i] % 2 else 0,
        ]


def test_a_number_that_a_group_lacks_is_lane_31(groups):
    """So it is on a GPU. Where that lane takes no part the value is undefined, and the race finder tells."""
    text = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* o) {
  if (threadIdx.x >= 32 - PARTS) {
    auto g = cg::coalesced_threads();
    o[threadIdx.x] = g.shfl(threadIdx.x + 100, 9);
  }
}"""
    out = torch.zeros(32, dtype=torch.int32)
    load_inline("lanes", text.replace("PARTS", "4"), backends="host").k(out, 1, 1, 1, 32, 1, 1)
    assert out[-4:].tolist() == [131] * 4
    text = text.replace("threadIdx.x >= 32 - PARTS", "threadIdx.x < 4")
    with pytest.raises(CaffeRuntimeError, match="reads from lane 31, which takes no part"):
        load_inline("lanes", text, sanitize="races").k(out, 1, 1, 1, 32, 1, 1)


def test_a_block_as_a_group(groups):
    top = torch.zeros(1, dtype=torch.int32)
    groups.block_of(NUMBERS, top)
    assert top.item() == NUMBERS.sum().item()


def test_a_grid_that_meets(groups):
    numbers = torch.arange(20 * 32, dtype=torch.int32)
    turned = numbers.clone()
    groups.turn(turned, 5, 20, 32)
    assert torch.equal(turned, numbers.roll(-5))
    with pytest.raises(
        RuntimeError, match=r"kernel rounds: this_grid\(\).sync\(\) at line \d+ needs a cooperative"
    ):
        groups.turn_plainly(turned, 5, 20, 32)
