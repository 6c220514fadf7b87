// CUDA's atomics. They must be atomic on the host, too, because blocks run in parallel.
#pragma once

#include "cuda_words.h"

namespace cuda_host {

// Replace *address by change(*address). Returns the old value.
template <typename T, typename Change>
inline T atomic_change(T* address, Change change) {
  may_spin();
  T before;
  __atomic_load(address, &before, __ATOMIC_RELAXED);
  T after;
  do {
    after = change(before);
  } while (!__atomic_compare_exchange(address, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return before;
}

}  // namespace cuda_host

// Functions for each type, as in CUDA, and no template, so that atomicAdd(&x, 1) converts the 1.
#define CAFFE_HOST_ATOMIC(type, name, expression)                                                 \
  inline type name(type* address, type value) {                                                   \
    return ::cuda_host::atomic_change(address, [value](type old) -> type { return expression; }); \
  }
#define CAFFE_HOST_ATOMIC_ARITHMETIC(type)        \
  CAFFE_HOST_ATOMIC(type, atomicAdd, old + value) \
  CAFFE_HOST_ATOMIC(type, atomicExch, ((void)old, value))
#define CAFFE_HOST_ATOMIC_INTEGER(type)                                                              \
  CAFFE_HOST_ATOMIC_ARITHMETIC(type)                                                                 \
  CAFFE_HOST_ATOMIC(type, atomicSub, old - value)                                                    \
  CAFFE_HOST_ATOMIC(type, atomicMax, old > value ? old : value)                                      \
  CAFFE_HOST_ATOMIC(type, atomicMin, old < value ? old : value)                                      \
  CAFFE_HOST_ATOMIC(type, atomicAnd, old& value)                                                     \
  CAFFE_HOST_ATOMIC(type, atomicOr, old | value)                                                     \
  CAFFE_HOST_ATOMIC(type, atomicXor, old ^ value)                                                    \
  inline type atomicCAS(type* address, type compare, type value) {                                   \
    cuda_host::may_spin();                                                                           \
    __atomic_compare_exchange(address, &compare, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    return compare;                                                                                  \
  }
CAFFE_HOST_ATOMIC_ARITHMETIC(float)
CAFFE_HOST_ATOMIC_ARITHMETIC(double)
CAFFE_HOST_ATOMIC_INTEGER(int)
CAFFE_HOST_ATOMIC_INTEGER(unsigned int)
CAFFE_HOST_ATOMIC_INTEGER(unsigned long long)
CAFFE_HOST_ATOMIC(unsigned int, atomicInc, old >= value ? 0u : old + 1u)
CAFFE_HOST_ATOMIC(unsigned int, atomicDec, old == 0u || old > value ? value : old - 1u)
#undef CAFFE_HOST_ATOMIC
#undef CAFFE_HOST_ATOMIC_ARITHMETIC
#undef CAFFE_HOST_ATOMIC_INTEGER

inline void __threadfence() {
  cuda_host::may_spin();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() {
  cuda_host::may_spin();
  __asm__ volatile(
      "" ::
          : "memory");  // the compiler keeps the order, as the processor does for one host thread
}
inline void __threadfence_system() { __threadfence(); }
