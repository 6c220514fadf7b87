// Barriers, and exchange of values in a warp. A thread that waits is parked on a stack of its own
// (src/host_launch.cpp). Kernels that use none of this need no such stacks.
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
// The lanes of this warp that have not returned.
unsigned int live_lanes();
int lane();

// Publish `bits`, wait for the lanes of `mask`, and return what lane `source` published. If this lane has returned, never
// was or is not in the mask, return `bits`.
uint64_t warp_exchange(unsigned int mask, uint64_t bits, int source);
// The lanes of `mask` whose predicate is not 0.
unsigned int warp_ballot(unsigned int mask, int predicate);

template <typename T>
inline T shuffle(unsigned int mask, T value, int source) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "shuffles move up to 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  bits = warp_exchange(mask, bits, source);
  memcpy(&value, &bits, sizeof(T));
  return value;
}
}  // namespace cuda_host

inline void __syncthreads(int line = __builtin_LINE(), int column = 0) {
  cuda_host::block_barrier(0, {line, column});
}
inline int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
  return cuda_host::block_barrier(predicate != 0, {line});
}
inline int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
  return cuda_host::block_barrier(predicate != 0, {line}) != 0;
}
inline int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
  return cuda_host::block_barrier(predicate == 0, {line}) == 0;
}
inline void __syncwarp(unsigned int mask = 0xffffffffu) { cuda_host::warp_barrier(mask); }
inline unsigned int __activemask() { return cuda_host::live_lanes(); }

inline unsigned int __ballot_sync(unsigned int mask, int predicate) {
  return cuda_host::warp_ballot(mask, predicate);
}
inline int __any_sync(unsigned int mask, int predicate) {
  return cuda_host::warp_ballot(mask, predicate) != 0;
}
inline int __all_sync(unsigned int mask, int predicate) {
  return cuda_host::warp_ballot(mask, !predicate) == 0;
}

// `width` splits the warp into groups of lanes, which exchange values among themselves. If the source is outside of
// the group, a lane keeps its own value.
template <typename T>
inline T __shfl_sync(unsigned int mask, T value, int source, int width = warpSize) {
  const int group = cuda_host::lane() & ~(width - 1);
  return cuda_host::shuffle(mask, value, group + (source & (width - 1)));
}
template <typename T>
inline T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = warpSize) {
  const int lane = cuda_host::lane(), source = lane - static_cast<int>(delta);
  return cuda_host::shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source);
}
template <typename T>
inline T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = warpSize) {
  const int lane = cuda_host::lane(), source = lane + static_cast<int>(delta);
  return cuda_host::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source);
}
template <typename T>
inline T __shfl_xor_sync(unsigned int mask, T value, int lanes, int width = warpSize) {
  const int lane = cuda_host::lane(), source = lane ^ lanes;
  return cuda_host::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source);
}

#include "../caffe_old_warp.h"

inline unsigned int __ballot(int predicate) { return __ballot_sync(0xffffffffu, predicate); }
inline int __any(int predicate) { return __any_sync(0xffffffffu, predicate); }
inline int __all(int predicate) { return __all_sync(0xffffffffu, predicate); }
