// Atomics that CUDA lacks, of THCAtomics.cuh and ATen/cuda/Atomic.cuh.
#pragma once

#include <cuda_runtime.h>

#include "functions.h"

#ifndef __CUDACC__
#define __device__
#endif
inline __device__ int64_t atomicAdd(int64_t* p, int64_t x) {
  return static_cast<int64_t>(
      atomicAdd(reinterpret_cast<unsigned long long*>(p), static_cast<unsigned long long>(x)));
}
// A 2-byte element, by the 4 bytes around it.
template <typename F>
inline __device__ c10::Short<F> atomicAdd(c10::Short<F>* p, c10::Short<F> x) {
  const size_t at = reinterpret_cast<size_t>(p);
  unsigned int* const word = reinterpret_cast<unsigned int*>(at & ~size_t(3));
  const int shift = at & 2 ? 16 : 0;
  unsigned int before = *word, seen;
  c10::Short<F> old;
  do {
    seen = before;
    old.x = static_cast<uint16_t>(seen >> shift);
    const c10::Short<F> sum = old + x;
    before =
        atomicCAS(word, seen, (seen & ~(0xffffu << shift)) | (static_cast<unsigned int>(sum.x) << shift));
  } while (before != seen);
  return old;
}
template <typename T>
inline __device__ T gpuAtomicAdd(T* p, T x) {
  return atomicAdd(p, x);
}
template <typename T>
inline __device__ void gpuAtomicAddNoReturn(T* p, T x) {
  atomicAdd(p, x);
}
namespace at {
namespace native {
template <typename T, typename I>
inline __device__ void fastAtomicAdd(T* p, I i, I, T x, bool) {
  atomicAdd(p + i, x);
}
}  // namespace native
}  // namespace at
