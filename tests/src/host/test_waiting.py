"""Threads and blocks that wait for each other in loops, and __activemask(), on the host."""

import os
import signal
import subprocess
import sys

import pytest
import torch
from conftest import ROOT
from support.typed import not_none

from cuffi import load_inline

TEXT = r"""
#include <cooperative_groups.h>
__global__ void flag_of_a_later_warp(int* o) {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    while (flag == 0);
    o[threadIdx.x] = 5;
  } else if (threadIdx.x == 63) {
    flag = 1;
  }
}
__device__ int read(const volatile int* at) { return *at; }
// Block b writes when b numbers are there, or when the later blocks have written.
__global__ void one_after_the_other(volatile int* written, int* o, int backwards) {
  const int turn = backwards ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  if (threadIdx.x == 0) {
    do {
    } while (read(written) != turn);
    o[turn] = blockIdx.x;
    __threadfence();
    *written = *written + 1;
  }
}
__global__ void all_blocks_meet(int* count, int* a, int* o) {
  __shared__ int own;
  const int n = gridDim.x;
  if (threadIdx.x == 0) {
    own = a[blockIdx.x] = blockIdx.x;
    __threadfence();
    atomicAdd(count, 1);
    while (atomicAdd(count, 0) < n) {
    }
  }
  __syncthreads();
  if (threadIdx.x == 1) o[blockIdx.x] = 100 * own + a[(blockIdx.x + 1) % n];
}
__global__ void lock_in_a_warp(int* lock, int* o) {
  for (bool done = false; !done;)
    if (atomicCAS(lock, 0, 1) == 0) {
      *o += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
}
__global__ void for_ever(volatile int* flag) {
  while (*flag == 0);
}
// The mask of those in the branch, then of all, and of the lanes in each turn of a loop.
__global__ void masks(const int* in, int* o) {
  int* own = o + 3 * threadIdx.x;
  if (in[threadIdx.x] > 0) {
    own[0] = __activemask();
  } else if (in[threadIdx.x] < 0) { own[0] = __activemask(); }
  own[1] = __activemask();
  for (int k = 0; k < in[threadIdx.x]; ++k) own[2] += __popc(__activemask());
}
// Two arms call one function: the lanes of one arm are not those of the other.
__device__ int count_here(int* counter) {
  cooperative_groups::coalesced_group here = cooperative_groups::coalesced_threads();
  int before = 0;
  if (here.thread_rank() == 0) before = atomicAdd(counter, here.size());
  return here.shfl(before, 0) + here.thread_rank();
}
template <typename T>
__device__ int through(T* counter) { return count_here(counter); }
struct Counter { int* at; __device__ int next() { return count_here(at); } };
#define COUNT(at) through<int>(at)
__global__ void two_arms(int* counters, int* o) {
  const int i = threadIdx.x;
  if (i % 32 < 7) o[i] = count_here(counters); else o[i] = count_here(counters + 1);
  Counter third{counters + 2}, fourth{counters + 3};
  const int which = i % 4 == 0 ? third.next() : i % 4 == 1 ? fourth.next() : ::through(counters + 4);
  i % 2 ? (void)COUNT(counters + 5) : (void)COUNT(counters + 6);
  o[i] += 1000 * which;
}
"""


@pytest.fixture
def waits(cache):
    return load_inline("waits", TEXT, backends="host")


def launch(waits, name, *arguments, grid=1, block=32):
    getattr(waits, f"waits_{name}")(*arguments, grid, 1, 1, block, 1, 1)


def ints(count: int) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.int32)


def test_a_flag_of_a_later_warp(waits):
    top = ints(32)
    launch(waits, "flag_of_a_later_warp", top, block=64)
    assert top.tolist() == [5] * 32


@pytest.mark.parametrize("backwards", [0, 1])
def test_blocks_one_after_the_other(waits, backwards):
    top, written = ints(40), ints(1)
    launch(waits, "one_after_the_other", written, top, backwards, grid=40)
    assert top.tolist() == list(range(40))[:: -1 if backwards else 1]


def test_a_barrier_of_all_blocks(waits):
    count, a, top = ints(1), ints(40), ints(40)
    launch(waits, "all_blocks_meet", count, a, top, grid=40)
    assert top.tolist() == [100 * b + (b + 1) % 40 for b in range(40)]


def test_two_arms_that_call_one_function(waits):
    """One arm's leader added the lanes of both to its counter."""
    counters, o = ints(7), ints(64)
    launch(waits, "two_arms", counters, o, block=64)
    assert counters.tolist() == [14, 50, 16, 16, 32, 32, 32]
    lanes = range(64)
    for of, total in ([i for i in lanes if i % 32 < 7], 14), ([i for i in lanes if i % 32 >= 7], 50):
        assert sorted(o[i].item() % 1000 for i in of) == list(range(total))
    for of, total in ([i for i in lanes if i % 4 == 1], 16), ([i for i in lanes if i % 4 > 1], 32):
        assert sorted(o[i].item() // 1000 for i in of) == list(range(total))


def test_a_lock_in_a_warp(waits):
    lock, top = ints(1), ints(1)
    launch(waits, "lock_in_a_warp", lock, top, grid=8, block=64)
    assert top.item() == 512


def test_more_blocks_than_can_wait(waits):
    count, a, top = ints(1), ints(3000), ints(3000)
    with pytest.raises(
        RuntimeError, match="all_blocks_meet: its blocks wait for each other, and the host runs no more"
    ):
        launch(waits, "all_blocks_meet", count, a, top, grid=3000)


def test_ctrl_c_ends_a_loop(waits):
    script = f"""
import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests" / "src" / "host")!r}]
sys.path.append({str(ROOT / "tests")!r})
import torch
from cuffi import load_inline
from test_waiting import TEXT
waits = load_inline("waits", TEXT, backends="host")
print("launching", flush=True)
try:
    waits.waits_for_ever(torch.zeros(1, dtype=torch.int32), 3, 1, 1, 64, 1, 1)
except KeyboardInterrupt:
    print("interrupted")
"""
    # pytest's own process may ignore SIGINT.
    child = subprocess.Popen(
        [sys.executable, "-uc", script], stdout=subprocess.PIPE, text=True, cwd=ROOT,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert not_none(child.stdout).readline() == "launching\n"
    try:
        child.communicate(timeout=1)
    except subprocess.TimeoutExpired:
        os.kill(child.pid, signal.SIGINT)
    assert child.communicate(timeout=60)[0].endswith("interrupted\n")


def test_the_lanes_at_a_statement(waits):
    numbers = torch.randint(-2, 4, (32,), generator=torch.Generator().manual_seed(1)).int()
    top = ints(96)
    launch(waits, "masks", numbers, top)
    place = numbers.sign().tolist()
    mask = {s: sum(1 << lane for lane in range(32) if place[lane] == s) for s in (1, -1)} | {0: 0}
    in_turn = [sum(int((numbers > k).sum()) for k in range(n)) for n in numbers.tolist()]
    rows = [[mask[s], 2**32 - 1, turns] for s, turns in zip(place, in_turn, strict=True)]
    assert (top.view(32, 3).long() % 2**32).tolist() == rows
