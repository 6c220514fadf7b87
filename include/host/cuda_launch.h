// How a kernel runs on the host. tools/cuda/to_host.py turns
//
//   kernel<T><<<grid, block>>>(args);   into   (cuda_host::configure(grid, block), kernel<T>(args));
//
// and wraps the kernel's body in cuda_host::run, so that calling the kernel runs its whole grid.
#pragma once

#include <string.h>

#include <new>
#include <type_traits>
#include <utility>

#include "cuda_api.h"
#include "cuda_phases.h"
#include "cuda_words.h"

namespace cuda_host {

enum Mode {
  kThreads,  // thread by thread, with blocks in parallel. A thread may wait for others
  kBlocks,   // a plain loop over the threads of blocks, none of which waits (tools/cuda/alone.py)
  kRows,  // the same, and threadIdx.x is used only as blockIdx.x * blockDim.x + threadIdx.x (tools/cuda/guard.py)
  kPhases,   // loops over a block's threads from one barrier to the next (tools/cuda/phases.py)
  kWarps,    // phases of blocks and warps, if rows are whole warps, else threads (tools/cuda/warps.py)
  kStrides,  // a few calls or blocks, as the grid's shape is (tools/cuda/strides.py)
  kRange,    // a few calls, each for a contiguous part of the index range (CUDA_KERNEL_RANGE)
};

// The launch in which it stands. If an argument of the kernel throws, there is none.
struct Configured {
  const int exceptions;
  ~Configured();
};
// Set the geometry of the next launch. If CUDA would refuse it, cudaGetLastError() returns the error, as in CUDA,
// and the kernel does not run.
Configured configure(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr,
                     bool cooperative = false);
// Until its end a kernel that is called does not run: its launches may have this much dynamic shared memory.
struct Allowing {
  explicit Allowing(int bytes);
  ~Allowing();
};

// Run the configured grid. `call(body)` runs one thread (kThreads) or one part (kRange).
void run_grid(Mode mode, const char* name, void (*call)(const void* body), const void* body,
              size_t body_bytes);
// The same for kBlocks: `call(body, first, last)` runs the blocks [first, last).
void run_blocks(const char* name, void (*call)(const void* body, int64_t first, int64_t last),
                const void* body);

// The blocks, if their rows are whole warps, else the threads.
void run_warps(const char* name, void (*call_blocks)(const void* body, int64_t first, int64_t last),
               const void* body, void (*call)(const void* body), const void* threads, size_t threads_bytes);
// A part of the range, if the grid has threads along these axes alone, else blocks.
void run_either(const char* name, int axes, void (*call)(const void* body), const void* body,
                void (*call_blocks)(const void* body, int64_t first, int64_t last), const void* blocks_body);

// A body has the thread's identity as parameters, if nothing else asks for it. Then the compiler knows its values. Else
// it uses the launcher's variables.
#define CAFFE_HOST_IDENTITY ::uint3 threadIdx, ::uint3 blockIdx, ::uint3 blockDim, ::uint3 gridDim
template <typename Body>
constexpr bool has_identity = std::is_invocable_v<Body&, uint3, uint3, uint3, uint3>;

// A body with a guard (tools/cuda/guard.py) has one more parameter: whether it is asked if the guard lets the thread in. If
// not, it does what comes after the guard.
#define CAFFE_HOST_GUARDED CAFFE_HOST_IDENTITY, [[maybe_unused]] auto caffe_asked
// Before the guard, whose condition says who leaves, or who comes in. The brace is closed at the end of the body.
#define CAFFE_HOST_ASKED(condition, leaves) \
  if constexpr (caffe_asked)                \
    return bool(condition) != leaves;       \
  else {
template <typename Body>
constexpr bool has_guard = !has_identity<Body> && !std::is_invocable_v<Body&>;

// One thread of blocks that run in a loop.
template <typename Asked, typename Body>
inline auto call_one(const Body& body, uint3 thread, uint3 block, uint3 dim, uint3 grid, uint3* shown) {
  show(thread, block, dim);
  Body own(body);  // a copy, because a thread may change its parameters
  if constexpr (has_guard<Body>)
    return own(thread, block, dim, grid, Asked());
  else if constexpr (has_identity<Body>)
    own(thread, block, dim, grid);
  else
    *shown = thread, own();
}

// The same, where nobody waits for the loop.
template <typename Body>
__attribute__((noinline, cold)) void call_one_apart(const Body& body, uint3 thread, uint3 block, uint3 dim,
                                                    uint3 grid, uint3* shown) {
  call_one<std::false_type>(body, thread, block, dim, grid, shown);
}

// The place of a block by its number, and the place that many blocks of its row further.
inline uint3 block_at(int64_t number, uint3 grid) {
  if (!number) return {};
  return {static_cast<unsigned int>(number % grid.x), static_cast<unsigned int>(number / grid.x % grid.y),
          static_cast<unsigned int>(number / grid.x / grid.y)};
}
inline void step(uint3* block, unsigned int blocks, uint3 grid) {
  block->x += blocks;
  if (block->x == grid.x) block->x = 0, ++block->y;
  if (block->y == grid.y) block->y = 0, ++block->z;
}

// Runs the threads of blocks as a plain loop, which the compiler sees whole. It counts in int from the row's first
// thread of the grid, so that `int i = blockIdx.x * blockDim.x + threadIdx.x` is the counter itself. A row is one of a
// block, or of all these blocks that lie beside each other.
template <bool in_rows, typename Body>
void call_blocks(const void* shared, int64_t first, int64_t last) {
  const Body body(*static_cast<const Body*>(shared));
  const uint3 dim = blockDim, grid = gridDim;
  const bool is_small = int64_t(grid.x) * dim.x <= 1 << 30;  // else its counter overflows
  uint3* shown = nullptr;
  if constexpr (!has_identity<Body> && !has_guard<Body>) {
    shown = &threadIdx;
    __asm__("" : "+r"(shown));  // else the compiler asks for the address in each turn
  }
  uint3 block = block_at(first, grid);
  for (int64_t b = first; b < last;) {
    const unsigned int together =
        in_rows && is_small
            ? static_cast<unsigned int>(last - b < grid.x - block.x ? last - b : grid.x - block.x)
            : 1;
    blockIdx = block;
    const unsigned int base = block.x * dim.x;
    const int begin = static_cast<int>(base), end = static_cast<int>(base + dim.x * together);
    // In a row of several blocks the threads are counted from the grid's first one.
    const uint3 named{in_rows && is_small ? 0 : block.x, block.y, block.z};
    const unsigned int from = named.x * dim.x;
    for (unsigned int z = 0; z < dim.z; ++z)
      for (unsigned int y = 0; y < dim.y; ++y) {
        const auto thread = [=](int i) { return uint3{static_cast<unsigned int>(i) - from, y, z}; };
        const auto comes_in = [&](int i) {
          if constexpr (has_guard<Body>)
            return call_one<std::true_type>(body, thread(i), named, dim, grid, shown);
          else
            return true;
        };
        // Who comes in is a stretch of the row.
        for (int low = begin, next; low != end; low = next) {
          next = is_small || !has_guard<Body> ? end : low + 1;
          int high = next;
          while (low != high && !comes_in(low)) ++low;
          if (low != high && !comes_in(high - 1))
            for (int in = low; high - in > 1;) {
              const int between = in + (high - in) / 2;
              (comes_in(between) ? in : high) = between;
            }
          if (!is_small) {
            for (int i = low; i != high; ++i) call_one_apart(body, thread(i), named, dim, grid, shown);
            continue;
          }
          for (int i = low; i < high; ++i) {
            if (i < 0) __builtin_unreachable();  // so that an unsigned index is seen to count up, too
            call_one<std::false_type>(body, thread(i), named, dim, grid, shown);
          }
        }
      }
    b += together;
    step(&block, together, grid);
  }
}

#define CAFFE_HOST_BLOCK ::uint3 blockIdx, ::uint3 blockDim, [[maybe_unused]] ::uint3 gridDim
template <typename Body>
void call_phases(const void* shared, int64_t first, int64_t last) {
  const uint3 dim = blockDim, grid = gridDim;
  if (dim.x - 1 >= 1024) __builtin_unreachable();  // so that thread + distance is seen not to overflow
  uint3* shown = &blockIdx;
  __asm__("" : "+r"(shown));
  uint3 block = block_at(first, grid);
  for (int64_t b = first; b < last; ++b) {
    *shown = block;
    Body own(*static_cast<const Body*>(shared));
    own(block, dim, grid);
    step(&block, 1, grid);
  }
}

template <typename Body>
void call_thread(const void* shared) {
  Body own(*static_cast<const Body*>(shared));
  if constexpr (has_identity<Body>)
    own(threadIdx, blockIdx, blockDim, gridDim);
  else
    own();
}

// kRange: this call's part of [0, n). Together the parts of all calls cover it once.
struct Part {
  int64_t index, count;
};
extern __thread Part part;

template <typename Index>
inline Index part_edge(Index n, int64_t edge) {
  // Rounded to 64 elements so that two host threads never share a cache line.
  const int64_t share = (static_cast<int64_t>(n) / part.count + 64) & ~int64_t(63);
  const int64_t at = share * edge;
  return at < static_cast<int64_t>(n) ? static_cast<Index>(at) : n;
}
template <typename Index>
inline Index part_begin(Index n) {
  return part_edge(n, part.index);
}
template <typename Index>
inline Index part_end(Index n) {
  return part_edge(n, part.index + 1);
}

// A loop over the whole grid (tools/cuda/strides.py). `is_range` is a type: true in a call that runs a part of the range, false
// in one that runs a thread. is_whole: an inner loop, of which each part runs all.
template <typename Index, bool is_whole, typename IsRange, typename Bound>
inline auto range_begin(IsRange, Bound bound) {
  using Common = decltype(Index() + bound);
  return static_cast<Index>(is_whole ? 0 : part_begin(static_cast<Common>(bound)));
}
template <typename Index, bool is_whole, typename IsRange, typename Bound>
inline auto range_end(IsRange, Bound bound) {
  using Common = decltype(Index() + bound);
  if constexpr (IsRange() && !is_whole)
    return part_end(static_cast<Common>(bound));
  else
    return bound;
}
// `axes`: along how many there are loops. Along the others the grid has one thread.
#define CAFFE_HOST_STRIDES CAFFE_HOST_IDENTITY, [[maybe_unused]] auto caffe_range
template <int axes, typename Body>
inline void run_strides(const char* name, const Body& body) {
  auto one = [body = Body(body)](uint3 thread, uint3 block, uint3 dim, uint3 grid) mutable {
    body(thread, block, dim, grid, std::false_type());
  };
  auto part = [body = Body(body)]() mutable { body(uint3(), uint3(), blockDim, gridDim, std::true_type()); };
  run_either(name, axes, call_thread<decltype(part)>, &part, call_blocks<false, decltype(one)>, &one);
}

// kWarps: `threads` is the same kernel for blocks of other shapes.
template <Mode mode, typename Body, typename Threads>
inline void run(const char* name, const Body& body, const Threads& threads) {
  static_assert(mode == kWarps, "one text for two ways");
  run_warps(name, call_phases<Body>, &body, call_thread<Threads>, &threads, sizeof(Threads));
}

template <Mode mode, int axes = 0, typename Body>
inline void run(const char* name, const Body& body) {
#ifdef CAFFE_HOST_RACES  // it needs to know which thread runs
  constexpr bool as_loop = false;
#else
  constexpr bool as_loop = mode == kBlocks || mode == kRows;
#endif
  if constexpr (mode == kStrides)
    run_strides<axes>(name, body);
  else if constexpr (mode == kPhases)
    run_blocks(name, call_phases<Body>, &body);
  else if constexpr (as_loop)
    run_blocks(name, call_blocks<mode == kRows, Body>, &body);
  else
    run_grid(mode, name, call_thread<Body>, &body, sizeof(Body));
}

// The block's dynamic shared memory, `extern __shared__ T name[]`.
void* dynamic_shared_bytes();
template <typename T>
inline T* dynamic_shared() {
  return static_cast<T*>(dynamic_shared_bytes());
}
// The same for a declaration outside of a function.
template <typename T>
struct DynamicShared {
  operator T*() const { return dynamic_shared<T>(); }
};

}  // namespace cuda_host

#include "cuda_launch_calls.h"

// The rewriter replaces CUDA_KERNEL_LOOP by this in a kRange kernel. It is a plain loop, so it vectorises.
#ifndef CAFFE_HOST_RACES
#define CUDA_KERNEL_RANGE(i, n) \
  for (auto i = ::cuda_host::part_begin((n) + 0), i##_end = ::cuda_host::part_end((n) + 0); i < i##_end; ++i)
#define CUDA_2D_KERNEL_RANGE(i, n, j, m) CUDA_KERNEL_RANGE(i, n) for (decltype((m) + 0) j = 0; j < (m); ++j)
#else  // the race finder (src/host/host_races.h) needs to know which GPU thread runs an iteration
#define CUDA_KERNEL_RANGE_ALONG(axis, i, n)                                                    \
  for (int64_t i##_at = int64_t(blockIdx.axis) * blockDim.axis + threadIdx.axis; i##_at < (n); \
       i##_at += int64_t(gridDim.axis) * blockDim.axis)                                        \
    if (auto i = static_cast<decltype((n) + 0)>(i##_at); false) {                              \
    } else
#define CUDA_KERNEL_RANGE(i, n) CUDA_KERNEL_RANGE_ALONG(x, i, n)
#define CUDA_2D_KERNEL_RANGE(i, n, j, m) CUDA_KERNEL_RANGE(i, n) CUDA_KERNEL_RANGE_ALONG(y, j, m)
#endif
