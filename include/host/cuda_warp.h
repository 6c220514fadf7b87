// Barriers, and exchange of values in a warp. A thread that waits is parked on a stack of its own
// (src/host/host_launch.cpp). Kernels that use none of this need no such stacks.
#pragma once

#include <string.h>

#include <type_traits>

#include "cuda_words.h"

namespace cuda_host {
// Where a barrier stands in the source. tools/cuda/to_host.py adds the column.
struct Place {
  int line = 0, column = 0;
};
// Wait for all threads of the block that have not returned. Returns the sum of their predicates. It is an error if they
// wait at different places.
int block_barrier(int predicate, Place place);
// Wait for the lanes of `mask` that have not returned.
void warp_barrier(unsigned int mask);
// The lanes of this warp that come to this place, when all others have returned or wait elsewhere.
unsigned int active_lanes(Place place);
// A call of a function that asks for the lanes at its place: those that came by another call are not there.
void enter(Place call);
void leave();
struct From {
  From(int line, int column) { enter({line, column}); }
  ~From() { leave(); }
};
// Wait for all threads of the grid, which was launched by cudaLaunchCooperativeKernel.
void grid_barrier(Place place);
bool is_cooperative();
int lane();

// Publish `bits`, wait for the lanes of `mask`, and return what lane `source` published. If this lane has returned,
// does not exist or is not in the mask, return `bits`.
uint64_t warp_exchange(unsigned int mask, uint64_t bits, int source);
// The lanes of `mask` whose predicate is not 0.
unsigned int warp_ballot(unsigned int mask, int predicate);

// The lanes of `mask` meet, each with an object of its own. When all have come, one calls `work` with the objects, by lane.
using WarpWork = void (*)(void* const* lanes, unsigned int there);
void warp_together(unsigned int mask, void* own, WarpWork work, const char* what);

// mma.sync, of which all lanes pass the address of the same shape (src/host/host_matrix.h).
enum MatrixType : char { kB1, kS4, kU4, kS8, kU8, kE4M3, kE5M2, kF16, kBf16, kTf32, kF32, kF64, kS32 };
struct MmaShape {
  int m, n, k;
  MatrixType a, b, c, d;
  bool saturate, by_and, volta, a_by_column, b_by_row;
};
struct MmaLane {
  const MmaShape* shape;
  const void *a, *b, *c;
  void* d;
};
void mma(const MmaShape* shape, const void* a, const void* b, const void* c, void* d);

// nvcuda::wmma. use: 0: A, 1: B, 2: the accumulator.
struct FragmentPlace {
  int row, column;
};
FragmentPlace fragment_place(int use, int m, int n, int k, MatrixType type, int lane, int index);
void wmma(const MmaShape* shape, const void* a, const void* b, const void* c, void* d, int a_held,
          int b_held);

// An asynchronous copy of `given` bytes, and zeros behind them. This thread's copies are in groups.
void async_copy(void* to, const void* from, size_t bytes, size_t given);
void async_commit();
void async_wait(int64_t groups_left);  // -1: for all, also those of no group

// Bulk copies to shared memory, which a barrier of the block waits for. bulk_done does them, and returns their bytes.
void bulk_copy(void* to, const void* from, size_t bytes, const void* barrier);
size_t bulk_done(const void* barrier);
// Bulk copies from shared memory, in groups of their own.
void bulk_store(void* to, const void* from, size_t bytes);
void bulk_commit();
void bulk_wait(int64_t groups_left);

// PTX: bar.sync and bar.arrive. threads: 0: all.
void named_barrier(uint32_t number, uint32_t threads, bool waits);
// A shared address of 32 bits.
char* shared_pointer(uint32_t address);
bool is_shared(const void* memory);
[[noreturn]] void ptx_problem(const char* what);

template <typename T>
__forceinline__ T shuffle(unsigned int mask, T value, int source) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "shuffles move up to 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  bits = warp_exchange(mask, bits, source);
  memcpy(&value, &bits, sizeof(T));
  return value;
}
}  // namespace cuda_host

__forceinline__ void __syncthreads(int line = __builtin_LINE(), int column = 0) {
  cuda_host::block_barrier(0, {line, column});
}
__forceinline__ int __syncthreads_count(cuda_host::Int predicate, int line = __builtin_LINE()) {
  return cuda_host::block_barrier(predicate != 0, {line});
}
__forceinline__ int __syncthreads_or(cuda_host::Int predicate, int line = __builtin_LINE()) {
  return cuda_host::block_barrier(predicate != 0, {line}) != 0;
}
__forceinline__ int __syncthreads_and(cuda_host::Int predicate, int line = __builtin_LINE()) {
  return cuda_host::block_barrier(predicate == 0, {line}) == 0;
}
__forceinline__ void __syncwarp(cuda_host::UInt mask = 0xffffffffu) { cuda_host::warp_barrier(mask); }
__forceinline__ unsigned int __activemask(int line = __builtin_LINE(), int column = 0) {
  return cuda_host::active_lanes({line, column});
}

namespace cuda_host {
// The lanes of a warp meet where they use a block's volatile memory (tools/cuda/steps.py).
void meet_lanes(const volatile void* memory, int line, int column);
// What is written there: all have read before it.
template <typename To>
struct Step {
  const volatile void* memory;
  int line, column;
  Step(const volatile void* memory_, int line_, int column_)
      : memory(memory_), line(line_), column(column_) {}
  template <typename From>
  To operator=(const From& x) const {
    const To value = cast<To, WithBranch>(x);
    meet_lanes(memory, line, column);
    return value;
  }
};
}  // namespace cuda_host

__forceinline__ unsigned int __ballot_sync(cuda_host::UInt mask, cuda_host::Int predicate) {
  return cuda_host::warp_ballot(mask, predicate);
}
__forceinline__ int __any_sync(cuda_host::UInt mask, cuda_host::Int predicate) {
  return cuda_host::warp_ballot(mask, predicate) != 0;
}
__forceinline__ int __all_sync(cuda_host::UInt mask, cuda_host::Int predicate) {
  return cuda_host::warp_ballot(mask, !predicate) == 0;
}

// `width` splits the warp into groups of lanes, which exchange values among themselves. If the source is outside of
// the group, a lane keeps its own value.
template <typename T>
__forceinline__ T __shfl_sync(cuda_host::UInt mask, T value, cuda_host::Int source,
                              cuda_host::Int width = warpSize) {
  const int group = cuda_host::lane() & ~(width - 1);
  return cuda_host::shuffle(mask, value, group + (source & (width - 1)));
}
template <typename T>
__forceinline__ T __shfl_up_sync(cuda_host::UInt mask, T value, cuda_host::UInt delta,
                                 cuda_host::Int width = warpSize) {
  const int lane = cuda_host::lane(), source = lane - static_cast<int>(delta);
  return cuda_host::shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source);
}
template <typename T>
__forceinline__ T __shfl_down_sync(cuda_host::UInt mask, T value, cuda_host::UInt delta,
                                   cuda_host::Int width = warpSize) {
  const int lane = cuda_host::lane(), source = lane + static_cast<int>(delta);
  return cuda_host::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source);
}
template <typename T>
__forceinline__ T __shfl_xor_sync(cuda_host::UInt mask, T value, cuda_host::Int lanes,
                                  cuda_host::Int width = warpSize) {
  const int lane = cuda_host::lane(), source = lane ^ lanes;
  return cuda_host::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source);
}

// The lanes of `mask` whose value has the same bits. all: these, if they are all lanes.
template <typename T>
__forceinline__ unsigned int __match_any_sync(cuda_host::UInt mask, T value) {
  const auto number = +value;  // of 32 or 64 bits
  uint64_t bits = 0;
  memcpy(&bits, &number, sizeof(number));
  unsigned int same = cuda_host::warp_ballot(mask, 1);
  for (unsigned int bit = 0; bit < 8 * sizeof(number); ++bit) {
    const int own = bits >> bit & 1;
    const unsigned int set = cuda_host::warp_ballot(mask, own);
    same &= own ? set : ~set;
  }
  return same;
}
template <typename T>
__forceinline__ unsigned int __match_all_sync(cuda_host::UInt mask, T value, int* all) {
  const unsigned int same = __match_any_sync(mask, value), there = cuda_host::warp_ballot(mask, 1);
  *all = same == there;
  return *all ? there : 0;
}

namespace cuda_host {
// merge(...) of the values of all lanes of `mask`, in their order.
template <typename T, typename Merge>
__forceinline__ T reduce(unsigned int mask, T value, Merge merge) {
  unsigned int lanes = warp_ballot(mask, 1);
  T result = shuffle(mask, value, __builtin_ctz(lanes));
  while (lanes &= lanes - 1) result = merge(result, shuffle(mask, value, __builtin_ctz(lanes)));
  return result;
}
}  // namespace cuda_host

#define CAFFE_HOST_REDUCE(type, name, expression)                                                        \
  __forceinline__ type __reduce_##name##_sync(cuda_host::UInt mask, type value) {                        \
    return cuda_host::reduce(mask, value, [](type a, type b) { return static_cast<type>(expression); }); \
  }
CAFFE_HOST_REDUCE(unsigned int, add, a + b)
CAFFE_HOST_REDUCE(unsigned int, min, a < b ? a : b)
CAFFE_HOST_REDUCE(unsigned int, max, a < b ? b : a)
CAFFE_HOST_REDUCE(unsigned int, and, a& b)
CAFFE_HOST_REDUCE(unsigned int, or, a | b)
CAFFE_HOST_REDUCE(unsigned int, xor, a ^ b)
CAFFE_HOST_REDUCE(int, add, static_cast<unsigned int>(a) + static_cast<unsigned int>(b))
CAFFE_HOST_REDUCE(int, min, a < b ? a : b)
CAFFE_HOST_REDUCE(int, max, a < b ? b : a)
#undef CAFFE_HOST_REDUCE

#include "../caffe_old_warp.h"

__forceinline__ unsigned int __ballot(cuda_host::Int predicate) {
  return __ballot_sync(0xffffffffu, predicate);
}
__forceinline__ int __any(cuda_host::Int predicate) { return __any_sync(0xffffffffu, predicate); }
__forceinline__ int __all(cuda_host::Int predicate) { return __all_sync(0xffffffffu, predicate); }
