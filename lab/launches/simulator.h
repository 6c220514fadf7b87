// A small CUDA for lab/launches/simulated.py: each thread of a block has a context of its own, and runs until it waits. It
// shares nothing with the toolkit's launcher. In which order threads and blocks run is chosen by `order`: a kernel whose
// numbers depend on it has a race.
#pragma once

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <functional>
#include <type_traits>
#include <vector>

struct uint3 {
  unsigned int x, y, z;
};
struct dim3 {
  unsigned int x, y, z;
  dim3(unsigned int a = 1, unsigned int b = 1, unsigned int c = 1) : x(a), y(b), z(c) {}
};
struct int2 {
  int x, y;
};
struct float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline int2 make_int2(int x, int y) { return {x, y}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
constexpr int warpSize = 32;
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static
#define __restrict__ __restrict

namespace simulator {

enum State { kRuns, kAtBarrier, kInWarp, kEnded };
constexpr int kNobody = -1, kVotes = -2;

struct Thread {
  ucontext_t context;
  std::vector<char> stack;
  uint3 index;
  State state;
  unsigned int mask = 0;  // the lanes that it waits for
  uint64_t published = 0, received = 0;
  int source = kNobody;  // of what it receives: a lane, or kVotes
  bool predicate = false;
};

static std::vector<Thread> threads;
static ucontext_t scheduler;
static Thread* current;
static std::function<void()> kernel;
static int count, order, barrier_sum;
static std::vector<char> dynamic_shared;

static void run_thread() {
  kernel();
  current->state = kEnded;
  swapcontext(&current->context, &scheduler);
}
inline void wait(State state) {
  Thread* const self = current;
  self->state = state;
  swapcontext(&self->context, &scheduler);
}
inline int lane() { return static_cast<int>(current - threads.data()) % 32; }

static void begin(int number) {
  Thread& thread = threads[number];
  thread.stack.resize(128 * 1024);
  const unsigned int t = static_cast<unsigned int>(number);
  thread.index = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
  thread.state = kRuns;
  getcontext(&thread.context);
  thread.context.uc_stack.ss_sp = thread.stack.data();
  thread.context.uc_stack.ss_size = thread.stack.size();
  thread.context.uc_link = nullptr;
  makecontext(&thread.context, run_thread, 0);
}

// The threads in the order of this run.
static std::vector<int> ordered() {
  std::vector<int> numbers(count);
  for (int i = 0; i < count; ++i) numbers[i] = i;
  if (order == 1) std::reverse(numbers.begin(), numbers.end());
  unsigned int random = order;
  for (int i = count - 1; order > 1 && i > 0; --i) {
    random = random * 1664525u + 1013904223u;
    std::swap(numbers[i], numbers[(random >> 8) % (i + 1)]);
  }
  return numbers;
}

// Let the lanes of a mask go on, if all of them wait for these lanes.
static bool meet(int warp, unsigned int mask) {
  unsigned int there = 0, votes = 0;
  for (int k = 0; k < 32; ++k) {
    if (!(mask >> k & 1) || warp * 32 + k >= count || threads[warp * 32 + k].state == kEnded) continue;
    const Thread& other = threads[warp * 32 + k];
    if (other.state != kInWarp || other.mask != mask) return false;
    there |= 1u << k;
    votes |= static_cast<unsigned int>(other.predicate) << k;
  }
  for (int k = 0; k < 32; ++k) {
    if (!(there >> k & 1)) continue;
    Thread& one = threads[warp * 32 + k];
    one.state = kRuns;
    if (one.source == kVotes)
      one.received = votes;
    else if (one.source >= 0)
      one.received = there >> one.source & 1 ? threads[warp * 32 + one.source].published : one.published;
  }
  return true;
}

static bool release_warps() {
  bool released = false;
  for (int i = 0; i < count; ++i)
    if (threads[i].state == kInWarp && threads[i].mask >> i % 32 & 1)
      released = meet(i / 32, threads[i].mask) || released;
  return released;
}

static void run_block() {
  const std::vector<int> numbers = ordered();
  for (int i = 0; i < count; ++i) begin(i);
  for (;;) {
    int running = 0, waiting = 0, at_barrier = 0;
    for (int number : numbers) {
      if (threads[number].state != kRuns) continue;
      ++running;
      current = &threads[number];
      threadIdx = current->index;
      swapcontext(&scheduler, &current->context);
    }
    if (running) continue;
    barrier_sum = 0;
    for (int i = 0; i < count; ++i) {
      waiting += threads[i].state != kEnded;
      at_barrier += threads[i].state == kAtBarrier;
      barrier_sum += threads[i].state == kAtBarrier && threads[i].predicate;
    }
    if (!waiting) return;
    if (at_barrier == waiting) {
      for (Thread& thread : threads)
        if (thread.state == kAtBarrier) thread.state = kRuns;
    } else if (!release_warps()) {
      fprintf(stderr, "simulator: the threads wait for each other\n");
      abort();
    }
  }
}

template <typename Body>
void launch(dim3 grid, dim3 block, size_t shared_bytes, Body body) {
  gridDim = grid, blockDim = block, kernel = body;
  count = static_cast<int>(block.x * block.y * block.z);
  threads.resize(std::max<size_t>(threads.size(), count));
  for (size_t i = count; i < threads.size(); ++i) threads[i].state = kEnded;
  const unsigned int blocks = grid.x * grid.y * grid.z;
  for (unsigned int k = 0; k < blocks; ++k) {
    const unsigned int b = order == 1 ? blocks - 1 - k : k;
    blockIdx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
    dynamic_shared.assign(shared_bytes, char(0xa5));
    run_block();
  }
}

template <typename T>
T exchange(unsigned int mask, T value, int source) {
  memcpy(&current->published, &value, sizeof value);
  current->source = source;
  current->mask = mask;
  wait(kInWarp);
  memcpy(&value, &current->received, sizeof value);
  return value;
}
}  // namespace simulator

inline int __syncthreads_count(int predicate) {
  simulator::current->predicate = predicate != 0;
  simulator::wait(simulator::kAtBarrier);
  return simulator::barrier_sum;
}
inline void __syncthreads() { __syncthreads_count(0); }
inline void __syncwarp(unsigned int mask = ~0u) { simulator::exchange(mask, 0, simulator::kNobody); }
inline unsigned int __ballot_sync(unsigned int mask, int predicate) {
  simulator::current->predicate = predicate != 0;
  return simulator::exchange(mask, 0u, simulator::kVotes);
}
template <typename T>
unsigned int __match_any_sync(unsigned int mask, T value) {
  simulator::current->predicate = true;
  unsigned int same = 0;
  const unsigned int there = simulator::exchange(mask, 0u, simulator::kVotes);
  const int own = simulator::lane();
  for (int k = 0; k < 32; ++k) {
    if (!(there >> k & 1)) continue;
    const T other = simulator::exchange(mask, value, k);
    if (k == own || other == value) same |= 1u << k;
  }
  return same;
}
template <typename T>
unsigned int __match_all_sync(unsigned int mask, T value, int* all) {
  const unsigned int same = __match_any_sync(mask, value);
  simulator::current->predicate = true;
  const unsigned int there = simulator::exchange(mask, 0u, simulator::kVotes);
  *all = same == there;
  return *all ? there : 0;
}
inline int __reduce_add_sync(unsigned int mask, int value) {
  simulator::current->predicate = true;
  const unsigned int there = simulator::exchange(mask, 0u, simulator::kVotes);
  int sum = 0;
  for (int k = 0; k < 32; ++k)
    if (there >> k & 1) sum += simulator::exchange(mask, value, k);
  return sum;
}
inline int __reduce_max_sync(unsigned int mask, int value) {
  simulator::current->predicate = true;
  const unsigned int there = simulator::exchange(mask, 0u, simulator::kVotes);
  int most = value;
  for (int k = 0; k < 32; ++k)
    if (there >> k & 1) most = std::max(most, simulator::exchange(mask, value, k));
  return most;
}
inline int __any_sync(unsigned int mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned int mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
template <typename T>
T __shfl_sync(unsigned int mask, T value, int source, int width = 32) {
  const int first = simulator::lane() & ~(width - 1);
  return simulator::exchange(mask, value, first + (source & (width - 1)));
}
template <typename T>
T __shfl_up_sync(unsigned int mask, T value, unsigned int by, int width = 32) {
  const int lane = simulator::lane(), from = lane - static_cast<int>(by);
  return simulator::exchange(mask, value, from < (lane & ~(width - 1)) ? lane : from);
}
template <typename T>
T __shfl_down_sync(unsigned int mask, T value, unsigned int by, int width = 32) {
  const int lane = simulator::lane(), from = lane + static_cast<int>(by);
  return simulator::exchange(mask, value, from > (lane | (width - 1)) ? lane : from);
}
template <typename T>
T __shfl_xor_sync(unsigned int mask, T value, int lanes, int width = 32) {
  const int lane = simulator::lane(), from = lane ^ lanes;
  return simulator::exchange(mask, value, from > (lane | (width - 1)) ? lane : from);
}

template <typename T, typename V>
T atomicAdd(T* to, V value) {
  const T old = *to;
  *to = old + static_cast<T>(value);
  return old;
}
template <typename T, typename V>
T atomicMax(T* to, V value) {
  const T old = *to;
  *to = std::max(old, static_cast<T>(value));
  return old;
}
template <typename T>
T __ldg(const T* from) {
  return *from;
}
inline int min(int a, int b) { return std::min(a, b); }
inline int max(int a, int b) { return std::max(a, b); }
inline unsigned int min(unsigned int a, unsigned int b) { return std::min(a, b); }
inline unsigned int max(unsigned int a, unsigned int b) { return std::max(a, b); }
inline int __popc(unsigned int v) { return __builtin_popcount(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }

#define CAFFE_SIMULATOR
namespace cooperative_groups {
struct thread_block {
  void sync() const { __syncthreads(); }
  unsigned int thread_rank() const {
    return static_cast<unsigned int>(simulator::current - simulator::threads.data());
  }
  unsigned int size() const { return static_cast<unsigned int>(simulator::count); }
};
inline thread_block this_thread_block() { return {}; }
template <int lanes>
struct thread_block_tile {
  static int first() { return simulator::lane() / lanes * lanes; }
  static unsigned int mask() {
    const unsigned int all = lanes == 32 ? ~0u : (1u << lanes) - 1;
    const int left =
        simulator::count - static_cast<int>(simulator::current - simulator::threads.data()) / 32 * 32;
    return all << first() & (left >= 32 ? ~0u : (1u << left) - 1);
  }
  unsigned int size() const { return lanes; }
  unsigned int thread_rank() const { return static_cast<unsigned int>(simulator::lane() - first()); }
  unsigned int meta_group_rank() const { return thread_block().thread_rank() / lanes; }
  void sync() const { __syncwarp(mask()); }
  template <typename T>
  T from(T value, int rank) const {
    return simulator::exchange(mask(), value, rank < 0 || rank >= lanes ? simulator::lane() : first() + rank);
  }
  template <typename T>
  T shfl(T value, int rank) const {
    return from(value, rank % lanes);
  }
  template <typename T>
  T shfl_down(T value, int by) const {
    return from(value, static_cast<int>(thread_rank()) + by);
  }
  template <typename T>
  T shfl_up(T value, int by) const {
    return from(value, static_cast<int>(thread_rank()) - by);
  }
  template <typename T>
  T shfl_xor(T value, int by) const {
    return from(value, static_cast<int>(thread_rank()) ^ by);
  }
  unsigned int ballot(int predicate) const { return __ballot_sync(mask(), predicate) >> first(); }
  int any(int predicate) const { return ballot(predicate) != 0; }
};
template <int lanes>
thread_block_tile<lanes> tiled_partition(thread_block) {
  return {};
}
template <typename T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <typename Tile, typename T, typename Merge>
T reduce(Tile tile, T value, Merge merge) {
  for (int by = static_cast<int>(tile.size()) / 2; by > 0; by /= 2)
    value = merge(value, tile.shfl_xor(value, by));
  return value;
}
}  // namespace cooperative_groups
