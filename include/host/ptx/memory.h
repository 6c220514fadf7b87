// Memory: loads, stores, atomic operations, addresses.
#pragma once

#include "../cuda_atomic.h"
#include "../cuda_warp.h"
#include "arithmetic.h"

namespace cuda_ptx {

template <int n>
struct Bytes {
  typedef u32 type __attribute__((vector_size(n), may_alias));
};
__forceinline__ char* generic(u64 address) { return reinterpret_cast<char*>(address); }
template <typename A>
__forceinline__ char* in_shared(A address) {
  return ::cuda_host::shared_pointer(static_cast<u32>(address));
}
__forceinline__ void aligned(const char* at, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(at) % bytes) ::cuda_host::ptx_problem("a misaligned address");
}
template <typename T>
__forceinline__ T load(const char* at) {
  typedef T type __attribute__((may_alias));
  aligned(at, sizeof(T));
  return *reinterpret_cast<const type*>(at);
}
template <typename T>
__forceinline__ T load_volatile(const char* at) {
  typedef T type __attribute__((may_alias));
  aligned(at, sizeof(T));
  ::cuda_host::may_spin();
  return *reinterpret_cast<const volatile type*>(at);
}
template <typename T>
__forceinline__ void store(char* at, T value) {
  typedef T type __attribute__((may_alias));
  aligned(at, sizeof(T));
  *reinterpret_cast<type*>(at) = value;
}
template <typename T>
__forceinline__ void store_volatile(char* at, T value) {
  typedef T type __attribute__((may_alias));
  aligned(at, sizeof(T));
  *reinterpret_cast<volatile type*>(at) = value;
}
// ld.acquire, ld.relaxed and the like: an atomic operation, and a fence.
template <typename T>
__forceinline__ T load_atomic(char* at, bool acquires) {
  aligned(at, sizeof(T));
  ::cuda_host::may_spin();
  typedef T type __attribute__((may_alias));
  T value = __atomic_load_n(reinterpret_cast<type*>(at), __ATOMIC_SEQ_CST);
  if (acquires) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return value;
}
template <typename T>
__forceinline__ void store_atomic(char* at, T value, bool releases) {
  aligned(at, sizeof(T));
  typedef T type __attribute__((may_alias));
  if (releases) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  __atomic_store_n(reinterpret_cast<type*>(at), value, __ATOMIC_SEQ_CST);
}
template <typename T, typename Change>
__forceinline__ T change(char* at, bool releases, bool acquires, Change change_it) {
  using Bits = std::conditional_t<sizeof(T) == 2, u16, std::conditional_t<sizeof(T) == 4, u32, u64>>;
  typedef Bits type __attribute__((may_alias));
  aligned(at, sizeof(T));
  if (releases) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  const Bits before = ::cuda_host::atomic_change(
      reinterpret_cast<type*>(at), [&](Bits old) { return bit_cast<Bits>(change_it(bit_cast<T>(old))); });
  if (acquires) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return bit_cast<T>(before);
}
template <typename T>
__forceinline__ T exchange(char* at, bool releases, bool acquires, T value) {
  using Bits = std::conditional_t<sizeof(T) == 2, u16, std::conditional_t<sizeof(T) == 4, u32, u64>>;
  typedef Bits type __attribute__((may_alias));
  aligned(at, sizeof(T));
  if (releases) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  ::cuda_host::may_spin();
  Bits bits = bit_cast<Bits>(value), before;
  __atomic_exchange(reinterpret_cast<type*>(at), &bits, &before, __ATOMIC_RELAXED);
  if (acquires) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return bit_cast<T>(before);
}
template <typename T>
__forceinline__ T compare_exchange(char* at, bool releases, bool acquires, T compare_to, T value) {
  typedef T type __attribute__((may_alias));
  aligned(at, sizeof(T));
  if (releases) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  ::cuda_host::may_spin();
  __atomic_compare_exchange(reinterpret_cast<type*>(at), &compare_to, &value, false, __ATOMIC_RELAXED,
                            __ATOMIC_RELAXED);
  if (acquires) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  return compare_to;
}
// What atom.add stores. In global memory a GPU flushes subnormal floats. A NaN of doubles is kept as it is.
template <typename T>
__forceinline__ T added(const char* at, T old, T more) {
  if constexpr (std::is_same_v<T, float>)
    return add<T>(::cuda_host::is_shared(at) ? 0 : kFtz, old, more);
  else if constexpr (std::is_same_v<T, double>)
    return more != more ? more : old != old ? old : add<T>(0, old, more);
  else
    return add<T>(0, old, more);
}
__forceinline__ void fence(bool block_only) {
  if (block_only)
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
  else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

__forceinline__ u64 shared_address(const void* memory) {
  return static_cast<u32>(reinterpret_cast<uintptr_t>(memory));
}
__forceinline__ u64 globaltimer() { return static_cast<u64>(clock64()); }

}  // namespace cuda_ptx
