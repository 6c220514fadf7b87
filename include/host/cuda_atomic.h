// CUDA's atomics. They must be atomic on the host, too, because blocks run in parallel.
#pragma once

#include <type_traits>

#include "cuda_words.h"

namespace cuda_host {

// CUDA's atomics order nothing. On x86 each is a full barrier, and much code relies on more than CUDA promises (a lock
// without a fence behind it); ARM would show that as a wrong sum now and then.
#if defined(__aarch64__)
constexpr int kAtomicOrder = __ATOMIC_ACQ_REL, kFailedOrder = __ATOMIC_ACQUIRE;
#else
constexpr int kAtomicOrder = __ATOMIC_RELAXED, kFailedOrder = __ATOMIC_RELAXED;
#endif

// Replace *address by change(*address). Returns the old value.
template <typename T, typename Change>
__forceinline__ T atomic_change(T* address, Change change) {
  may_spin();
  T before;
  __atomic_load(address, &before, __ATOMIC_RELAXED);
  T after;
  do {
    after = change(before);
  } while (!__atomic_compare_exchange(address, &before, &after, true, kAtomicOrder, kFailedOrder));
  return before;
}

}  // namespace cuda_host

// Functions for each type, as in CUDA, and no template, so that atomicAdd(&x, 1) converts the 1.
#define CAFFE_HOST_ATOMIC(type, name, expression)                                              \
  __forceinline__ type name(type* address, ::cuda_host::given<type> value) {                   \
    return ::cuda_host::atomic_change(                                                         \
        address, [value = static_cast<type>(value)](type old) -> type { return expression; }); \
  }
#define CAFFE_HOST_ATOMIC_EXCHANGE(type)                                           \
  __forceinline__ type atomicExch(type* address, ::cuda_host::given<type> given) { \
    cuda_host::may_spin();                                                         \
    type value = given, before;                                                    \
    __atomic_exchange(address, &value, &before, cuda_host::kAtomicOrder);          \
    return before;                                                                 \
  }
// One instruction, and a loop only where the value is used.
#define CAFFE_HOST_ATOMIC_AT_ONCE(type, name, fetch)                            \
  __forceinline__ type name(type* address, ::cuda_host::given<type> value) {    \
    ::cuda_host::may_spin();                                                    \
    return fetch(address, static_cast<type>(value), ::cuda_host::kAtomicOrder); \
  }
#define CAFFE_HOST_ATOMIC_INTEGER(type)                                                  \
  CAFFE_HOST_ATOMIC_EXCHANGE(type)                                                       \
  CAFFE_HOST_ATOMIC_AT_ONCE(type, atomicAdd, __atomic_fetch_add)                         \
  CAFFE_HOST_ATOMIC_AT_ONCE(type, atomicSub, __atomic_fetch_sub)                         \
  CAFFE_HOST_ATOMIC_AT_ONCE(type, atomicAnd, __atomic_fetch_and)                         \
  CAFFE_HOST_ATOMIC_AT_ONCE(type, atomicOr, __atomic_fetch_or)                           \
  CAFFE_HOST_ATOMIC_AT_ONCE(type, atomicXor, __atomic_fetch_xor)                         \
  CAFFE_HOST_ATOMIC(type, atomicMax, old > value ? old : value)                          \
  CAFFE_HOST_ATOMIC(type, atomicMin, old < value ? old : value)                          \
  __forceinline__ type atomicCAS(type* address, ::cuda_host::given<type> expected,       \
                                 ::cuda_host::given<type> given) {                       \
    cuda_host::may_spin();                                                               \
    type compare = expected, value = given;                                              \
    __atomic_compare_exchange(address, &compare, &value, false, cuda_host::kAtomicOrder, \
                              cuda_host::kFailedOrder);                                  \
    return compare;                                                                      \
  }
CAFFE_HOST_ATOMIC_EXCHANGE(float)
CAFFE_HOST_ATOMIC_EXCHANGE(double)
CAFFE_HOST_ATOMIC(float, atomicAdd, old + value)
CAFFE_HOST_ATOMIC(double, atomicAdd, old + value)
CAFFE_HOST_ATOMIC_INTEGER(int)
CAFFE_HOST_ATOMIC_INTEGER(unsigned int)
CAFFE_HOST_ATOMIC_INTEGER(unsigned long long)
CAFFE_HOST_ATOMIC(unsigned int, atomicInc, old >= value ? 0u : old + 1u)
CAFFE_HOST_ATOMIC(unsigned int, atomicDec, old == 0u || old > value ? value : old - 1u)
CAFFE_HOST_ATOMIC(long long, atomicMax, old > value ? old : value)
CAFFE_HOST_ATOMIC(long long, atomicMin, old < value ? old : value)
CAFFE_HOST_ATOMIC_AT_ONCE(long long, atomicAnd, __atomic_fetch_and)
CAFFE_HOST_ATOMIC_AT_ONCE(long long, atomicOr, __atomic_fetch_or)
CAFFE_HOST_ATOMIC_AT_ONCE(long long, atomicXor, __atomic_fetch_xor)
__forceinline__ unsigned short atomicCAS(unsigned short* address, ::cuda_host::given<unsigned short> expected,
                                         ::cuda_host::given<unsigned short> given) {
  cuda_host::may_spin();
  unsigned short compare = expected, value = given;
  __atomic_compare_exchange(address, &compare, &value, false, cuda_host::kAtomicOrder,
                            cuda_host::kFailedOrder);
  return compare;
}
// Each element by itself, as on a GPU.
__forceinline__ float2 atomicAdd(float2* address, float2 value) {
  return float2{atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
__forceinline__ float4 atomicAdd(float4* address, float4 value) {
  return float4{atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y),
                atomicAdd(&address->z, value.z), atomicAdd(&address->w, value.w)};
}
#undef CAFFE_HOST_ATOMIC
#undef CAFFE_HOST_ATOMIC_AT_ONCE
#undef CAFFE_HOST_ATOMIC_EXCHANGE
#undef CAFFE_HOST_ATOMIC_INTEGER

__forceinline__ void __threadfence() {
  cuda_host::may_spin();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
__forceinline__ void __threadfence_block() {
  cuda_host::may_spin();
  // The compiler keeps the order, as the processor does for one host thread.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
__forceinline__ void __threadfence_system() { __threadfence(); }

// For a block, and for all processors. Templates of the types, because these are the same atomics.
#define CAFFE_HOST_SCOPED(name)                                              \
  template <typename T>                                                      \
  __forceinline__ T name##_block(T* address, ::cuda_host::given<T> value) {  \
    ::cuda_host::BlockScope scope;                                           \
    return name(address, value);                                             \
  }                                                                          \
  template <typename T>                                                      \
  __forceinline__ T name##_system(T* address, ::cuda_host::given<T> value) { \
    return name(address, value);                                             \
  }
CAFFE_HOST_SCOPED(atomicAdd)
CAFFE_HOST_SCOPED(atomicSub)
CAFFE_HOST_SCOPED(atomicExch)
CAFFE_HOST_SCOPED(atomicMax)
CAFFE_HOST_SCOPED(atomicMin)
CAFFE_HOST_SCOPED(atomicInc)
CAFFE_HOST_SCOPED(atomicDec)
CAFFE_HOST_SCOPED(atomicAnd)
CAFFE_HOST_SCOPED(atomicOr)
CAFFE_HOST_SCOPED(atomicXor)
#undef CAFFE_HOST_SCOPED
template <typename T>
__forceinline__ T atomicCAS_block(T* address, ::cuda_host::given<T> compare, ::cuda_host::given<T> value) {
  ::cuda_host::BlockScope scope;
  return atomicCAS(address, compare, value);
}
template <typename T>
__forceinline__ T atomicCAS_system(T* address, ::cuda_host::given<T> compare, ::cuda_host::given<T> value) {
  return atomicCAS(address, compare, value);
}
