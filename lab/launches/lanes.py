"""Compare random kernels whose lanes exchange values, as loops over warps and on fibres, with a simulator.

    python -m lab.launches.lanes [--count 12] [--seed 1] [--seeds 1]

The kernels are those of phases.py, with shuffles, votes, sums of a warp and of a block, loops and conditions that are
the same for a warp alone, and shared memory that lanes of a warp hand over. Blocks have whole and partial warps.
"""

from __future__ import annotations

import random
import sys

from .phases import HEAD, NUMBER, SHARED, Writer, command
from .simulated import Comparison, Kernel, Outcome

BLOCKS = ((32, 1, 1), (64, 1, 1), (96, 1, 1), (32, 3, 1), (64, 2, 2), (33, 1, 1), (5, 1, 1), (72, 1, 1))
HELPERS = """#ifndef CAFFE_SIMULATOR
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#endif
namespace cg = cooperative_groups;
#define FULL 0xffffffff
#define DOWN(v, by) __shfl_down_sync(FULL, v, by)
#define AT(a, i) (a)[(i) & 3]
__device__ __forceinline__ int warp_sum(int v) {
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(FULL, v, o);
  return v;
}
template <typename T> __inline__ __device__ T warp_most(T val) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) val = max(val, __shfl_down_sync(0xffffffffu, val, mask, 32));
  return __shfl_sync(~0u, val, 0);
}
template <typename T, int WIDTH = 32> __device__ T tile_sum(T v) {
  for (int o = WIDTH / 2; o > 0; o /= 2) v += __shfl_xor_sync(FULL, v, o, WIDTH);
  return v;
}
template <typename T> __device__ T block_sum(T v) {
  static __shared__ T sums[32];
  const int place = threadIdx.x + threadIdx.y * blockDim.x + threadIdx.z * blockDim.x * blockDim.y;
  v = warp_sum(v) % 1009;
  if (place % 32 == 0) sums[place / 32] = v;
  __syncthreads();
  v = 0;
  for (int k = 0; k < (blockDim.x * blockDim.y * blockDim.z + 31) / 32; ++k) v += sums[k];
  __syncthreads();
  return v;
}
__device__ int warp_sum(int v, int by) { return warp_sum(v) * by; }
template <typename Group> __device__ int group_sum(const Group& group, int v) {
  for (int o = group.size() / 2; o > 0; o /= 2) v += group.shfl_down(v, o);
  return group.shfl(v, 0);
}
__device__ int group_most(cg::thread_block_tile<32> tile, int v) { return cg::reduce(tile, v, cg::greater<int>()); }
__device__ int own_lane() { return threadIdx.x % 32; }
__device__ void scan(int& v, int lane) {
  for (int o = 1; o < 32; o *= 2) {
    const int other = __shfl_up_sync(FULL, v, o);
    if (lane >= o) v = (v + other) % 1009;
  }
}
"""
# As those of phases.py. {p} is a distance.
MEET = [
    "{m} = (__shfl_xor_sync(FULL, {e}, {p}) + 1) % 1009;|",
    "{m} += __shfl_down_sync(FULL, {m}, {p}); {m} %= 1009;|",
    "int {a} = __shfl_up_sync(FULL, {e}, {p});|own changing",
    "const float {a} = __shfl_xor_sync(FULL, {e} * 0.5f, {p}); acc += (int){a};|",
    "{m} = __shfl_sync(FULL, {e}, {e}) % 1009;|",
    "{m} = __shfl_sync(FULL, {e}, {k}, 8);|",
    "acc += __shfl_sync(FULL, __shfl_up_sync(FULL, {e}, 1), {p});|",
    "acc += __shfl_xor_sync(FULL, {e}, 1) - __shfl_down_sync(FULL, {e}, 2);|",
    "unsigned {a} = __ballot_sync(FULL, {e} % 2); acc += __popc({a});|",
    "acc += __any_sync(FULL, {e} == 3) + 2 * __all_sync(FULL, {e} > 2);|",
    "for (int o = 16; o > 0; o >>= 1) {m} = ({m} + __shfl_xor_sync(FULL, {m}, o)) % 1009;|",
    "for (int o = 1; o < 32; o *= 2) {{ int g = __shfl_up_sync(FULL, {m}, o); if (lane >= o) {m} += g % 99; }}|",
    "{m} = warp_sum({m}) % 1009;|",
    "{m} = warp_most({m}) - warp_most<int>(acc) % 7;|",
    "acc = tile_sum<int, 8>(acc) % 1009;|",
    "scan({m}, lane);|",
    "acc = block_sum(acc) % 1009;|block",
    "int {a} = {e}; {a} = block_sum({a});|own changing block",
    "if (warp == 1) {{ {m} = (warp_sum({m}) + {e}) % 1009; }} else acc += 1;|",
    "if (warp % 2 == 0) {m} = __shfl_xor_sync(FULL, {m}, {p});|",
    "for (int q = warp; q < 3; q += 2) {{ if (q == {k}) continue; acc += __shfl_xor_sync(FULL, {e}, 1) * q; }}|",
    "if (__any_sync(FULL, {e} % 3 == 0)) {m} += 1; else acc -= 2;|",
    "if (__all_sync(FULL, {e} % 9 > 0)) {{ {m} = __shfl_xor_sync(FULL, {m}, 1); }}|",
    "int {a} = 0; while (__any_sync(FULL, {a} < {e} % 5)) ++{a};|own changing",
    "int {a} = 3; do {{ {a} -= 1; acc += {e}; }} while (__any_sync(FULL, {a} > {e} % 4) && {a} > 0);|own",
    "unsigned {a} = __ballot_sync(FULL, {e} % 2); if ({a} > 1000u) {{ {m} = DOWN({m}, 3); }} acc += {a} % 7;|",
    "{{ unsigned b = __ballot_sync(FULL, {e} % 4 == 1); while (b) {{ int l = __ffs(b) - 1;"
    " acc = (acc + __shfl_sync(FULL, {m}, l)) % 1009; b &= b - 1; }} }}|",
    "acc += __popc(__match_any_sync(FULL, {e} % 3));|",
    "int {a}; acc += __match_all_sync(FULL, {e} / 900, &{a}) % 77; acc += {a};|",
    "acc += __reduce_add_sync(FULL, {e} % 50) - __reduce_max_sync(FULL, {e} % 50);|",
    "{{ auto tile = cg::tiled_partition<8>(cg::this_thread_block());"
    " acc += tile.shfl_xor({e}, {p}) + (int)tile.thread_rank() + (int)tile.ballot({e} % 2); }}|",
    "{{ cg::thread_block b = cg::this_thread_block(); cg::thread_block_tile<16> g = cg::tiled_partition<16>(b);"
    " {m} = cg::reduce(g, {m} % 100, cg::plus<int>()) + g.any({e} == 3) + (int)b.thread_rank(); }}|",
    "{{ auto g = cg::tiled_partition<32>(cg::this_thread_block()); {m} = group_sum(g, {m} % 99) + group_most(g, {e});"
    " if (g.meta_group_rank() == 1) acc += g.shfl_up({m} % 9, 2); }}|",
    "acc += warp_sum({e} % 100, 3) + own_lane();|",
    "if (threadIdx.x < 32) {m} = warp_sum({m}) % 1009;|",
    "acc += DOWN({e}, {p});|",
    "hand[id] = {e}; __syncwarp(); acc += hand[min(id | 1, count - 1)]; __syncwarp();|",
]


class LaneWriter(Writer):
    """Writes kernels in which the lanes of a warp meet."""

    number_text = NUMBER + " const int lane = id % 32, warp = threadIdx.x / 32; __shared__ int hand[1024];"

    def __init__(self, rng: random.Random):
        super().__init__(rng)
        self.meet = rng.sample(MEET, 7)
        if self.leaves:  # what a thread that is gone has not written is read
            self.meet = [text for text in self.meet if "block_sum" not in text]
        # Each kind of these keeps a kernel on fibres.
        if rng.random() < 0.7:
            self.declare = [text for text in self.declare if "Slot" not in text and "&(" not in text]
            self.change = [text for text in self.change if "Adder" not in text and "Giver" not in text]

    def statement(self, depth: int) -> str:
        if self.rng.random() < 0.6:
            return super().statement(depth)
        template, _, known = self.rng.choice(self.meet).rpartition("|")
        name = self.name("w")
        text = self.fill(template, name).replace("{p}", str(self.rng.choice((1, 2, 4, 8, 16, 3, 31))))
        for word in known.split():
            if word != "block":
                self.names[word].append(name)
        return text


def kernels_of(count: int, rng: random.Random) -> list[Kernel]:
    kernels = []
    for i in range(count):
        shared, size = rng.choice(SHARED)
        kernels.append(Kernel(f"k{i}", LaneWriter(rng).body(shared), size))
    return kernels


def compare(count: int, seed: int, outcome: Outcome, fibres: bool = True):
    rng = random.Random(seed)
    kernels = kernels_of(count, rng)
    Comparison(f"lanes{seed}", HEAD + HELPERS, kernels, fibres).run(rng, 3, outcome, BLOCKS)


if __name__ == "__main__":
    sys.exit(command(compare, "lanes of random kernels"))
