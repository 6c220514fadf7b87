// What the compiler calls before each access of a kernel's code (-fsanitize=thread). host_races.h includes this.
#pragma once

#define CAFFE_RACES_ACCESS(kind, memory, bytes) \
  ::cuda_host::race_finder.access(memory, bytes, ::cuda_host::kind, __builtin_return_address(0))
#define CAFFE_RACES_COPY(kind, memory, bytes) \
  ::cuda_host::race_finder.access(memory, bytes, ::cuda_host::kind, __builtin_return_address(0), false, true)
// A strong access. `at_once`: it acquires without a fence behind it.
#define CAFFE_RACES_STRONG(kind, memory, bytes, at_once) \
  ::cuda_host::race_finder.access(memory, bytes, kind, __builtin_return_address(0), at_once)
// Of C++'s orders of memory: has it a fence before or behind?
#define CAFFE_RACES_RELEASES(order) \
  if (order == __ATOMIC_RELEASE || order >= __ATOMIC_ACQ_REL) ::cuda_host::race_finder.fence_here()
#define CAFFE_RACES_ACQUIRES(order) \
  (order == __ATOMIC_CONSUME || order == __ATOMIC_ACQUIRE || order >= __ATOMIC_ACQ_REL)
#define CAFFE_RACES_PLAIN(bytes)                                                                         \
  void __tsan_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kRead, memory, bytes); }                    \
  void __tsan_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }                  \
  void __tsan_unaligned_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kRead, memory, bytes); }          \
  void __tsan_unaligned_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }        \
  void __tsan_volatile_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kVolatileRead, memory, bytes); }   \
  void __tsan_volatile_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kVolatileWrite, memory, bytes); } \
  void __tsan_unaligned_volatile_read##bytes(void* memory) {                                             \
    CAFFE_RACES_ACCESS(kVolatileRead, memory, bytes);                                                    \
  }                                                                                                      \
  void __tsan_unaligned_volatile_write##bytes(void* memory) {                                            \
    CAFFE_RACES_ACCESS(kVolatileWrite, memory, bytes);                                                   \
  }
#define CAFFE_RACES_CHANGE(bits, type, name, after)                                                       \
  type __tsan_atomic##bits##_##name(volatile type* memory, type value, int order) {                       \
    const bool same = type(after) == *memory;                                                             \
    CAFFE_RACES_RELEASES(order);                                                                          \
    CAFFE_RACES_STRONG(same ? ::cuda_host::kAtomicSame : ::cuda_host::kAtomic, const_cast<type*>(memory), \
                       sizeof(type), !same || CAFFE_RACES_ACQUIRES(order));                               \
    return __atomic_##name(memory, value, __ATOMIC_SEQ_CST);                                              \
  }
// `at_once`: if it changes the value. CUDA's arithmetic is weak exchanges (cuda_atomic.h).
#define CAFFE_RACES_EXCHANGE(bits, type, name, at_once)                                                    \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile type* memory, type* compare, type value,      \
                                                    int order, int) {                                      \
    const bool same = *memory != *compare || value == *memory;                                             \
    CAFFE_RACES_RELEASES(order);                                                                           \
    CAFFE_RACES_STRONG(same ? ::cuda_host::kAtomicSame : ::cuda_host::kAtomic, const_cast<type*>(memory),  \
                       sizeof(type), (at_once && !same) || CAFFE_RACES_ACQUIRES(order));                   \
    return __atomic_compare_exchange_n(memory, compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }
#define CAFFE_RACES_ATOMIC(bits, type)                                                             \
  type __tsan_atomic##bits##_load(const volatile type* memory, int order) {                        \
    CAFFE_RACES_STRONG(::cuda_host::kAtomicRead, const_cast<type*>(memory), sizeof(type),          \
                       CAFFE_RACES_ACQUIRES(order));                                               \
    return __atomic_load_n(memory, __ATOMIC_SEQ_CST);                                              \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile type* memory, type value, int order) {                 \
    CAFFE_RACES_RELEASES(order);                                                                   \
    CAFFE_RACES_ACCESS(kAtomicWrite, const_cast<type*>(memory), sizeof(type));                     \
    __atomic_store_n(memory, value, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  type __tsan_atomic##bits##_exchange(volatile type* memory, type value, int order) {              \
    CAFFE_RACES_RELEASES(order);                                                                   \
    CAFFE_RACES_STRONG(::cuda_host::kAtomicWrite, const_cast<type*>(memory), sizeof(type),         \
                       CAFFE_RACES_ACQUIRES(order));                                               \
    return __atomic_exchange_n(memory, value, __ATOMIC_SEQ_CST);                                   \
  }                                                                                                \
  CAFFE_RACES_CHANGE(bits, type, fetch_add, *memory + value)                                       \
  CAFFE_RACES_CHANGE(bits, type, fetch_sub, *memory - value)                                       \
  CAFFE_RACES_CHANGE(bits, type, fetch_and, *memory& value)                                        \
  CAFFE_RACES_CHANGE(bits, type, fetch_or, *memory | value)                                        \
  CAFFE_RACES_CHANGE(bits, type, fetch_xor, *memory ^ value)                                       \
  CAFFE_RACES_CHANGE(bits, type, fetch_nand, ~(*memory & value))                                   \
  CAFFE_RACES_EXCHANGE(bits, type, strong, false)                                                  \
  CAFFE_RACES_EXCHANGE(bits, type, weak, true)                                                     \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* memory, type compare, type value, \
                                                  int order, int) {                                \
    __tsan_atomic##bits##_compare_exchange_strong(memory, &compare, value, order, 0);              \
    return compare;                                                                                \
  }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void** memory) { CAFFE_RACES_ACCESS(kRead, memory, sizeof(void*)); }
void __tsan_vptr_update(void** memory, void*) { CAFFE_RACES_ACCESS(kWrite, memory, sizeof(void*)); }
void __tsan_atomic_thread_fence(int) { ::cuda_host::race_finder.fence(); }
void __tsan_atomic_signal_fence(int) { ::cuda_host::race_finder.fence(true); }
void __tsan_read_range(void* memory, size_t bytes) { CAFFE_RACES_COPY(kRead, memory, bytes); }
void __tsan_write_range(void* memory, size_t bytes) { CAFFE_RACES_COPY(kWrite, memory, bytes); }
CAFFE_RACES_PLAIN(1)
CAFFE_RACES_PLAIN(2)
CAFFE_RACES_PLAIN(4)
CAFFE_RACES_PLAIN(8)
CAFFE_RACES_PLAIN(16)
CAFFE_RACES_ATOMIC(8, uint8_t)
CAFFE_RACES_ATOMIC(16, uint16_t)
CAFFE_RACES_ATOMIC(32, uint32_t)
CAFFE_RACES_ATOMIC(64, uint64_t)
}
