// What the compiler calls before each access of a kernel's code (-fsanitize=thread). host_races.h includes this.
#pragma once

#define CAFFE_RACES_ACCESS(kind, memory, bytes) \
  ::cuda_host::race_finder.access(memory, bytes, ::cuda_host::kind, __builtin_return_address(0))
#define CAFFE_RACES_COPY(kind, memory, bytes) \
  ::cuda_host::race_finder.access(memory, bytes, ::cuda_host::kind, __builtin_return_address(0), false, true)
// An exchange that takes a lock: 0 became something else.
#define CAFFE_RACES_LOCK(kind, memory, bytes, takes_lock) \
  ::cuda_host::race_finder.access(memory, bytes, ::cuda_host::kind, __builtin_return_address(0), takes_lock)
#define CAFFE_RACES_PLAIN(bytes)                                                                       \
  void __tsan_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kRead, memory, bytes); }                  \
  void __tsan_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }                \
  void __tsan_unaligned_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kRead, memory, bytes); }        \
  void __tsan_unaligned_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }      \
  void __tsan_volatile_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kVolatileRead, memory, bytes); } \
  void __tsan_volatile_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }       \
  void __tsan_unaligned_volatile_read##bytes(void* memory) {                                           \
    CAFFE_RACES_ACCESS(kVolatileRead, memory, bytes);                                                  \
  }                                                                                                    \
  void __tsan_unaligned_volatile_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }
#define CAFFE_RACES_CHANGE(bits, type, name)                                  \
  type __tsan_atomic##bits##_##name(volatile type* memory, type value, int) { \
    CAFFE_RACES_ACCESS(kAtomic, const_cast<type*>(memory), sizeof(type));     \
    return __atomic_##name(memory, value, __ATOMIC_SEQ_CST);                  \
  }
#define CAFFE_RACES_EXCHANGE(bits, type, name)                                                             \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile type* memory, type* compare, type value, int, \
                                                    int) {                                                 \
    CAFFE_RACES_LOCK(kAtomic, const_cast<type*>(memory), sizeof(type),                                     \
                     *memory == 0 && *compare == 0 && value);                                              \
    return __atomic_compare_exchange_n(memory, compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }
#define CAFFE_RACES_ATOMIC(bits, type)                                                                  \
  type __tsan_atomic##bits##_load(const volatile type* memory, int) {                                   \
    CAFFE_RACES_ACCESS(kAtomicRead, const_cast<type*>(memory), sizeof(type));                           \
    return __atomic_load_n(memory, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                     \
  void __tsan_atomic##bits##_store(volatile type* memory, type value, int) {                            \
    CAFFE_RACES_ACCESS(kAtomicWrite, const_cast<type*>(memory), sizeof(type));                          \
    __atomic_store_n(memory, value, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                     \
  type __tsan_atomic##bits##_exchange(volatile type* memory, type value, int) {                         \
    CAFFE_RACES_LOCK(kAtomicWrite, const_cast<type*>(memory), sizeof(type), *memory == 0 && value);     \
    return __atomic_exchange_n(memory, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                                     \
  CAFFE_RACES_CHANGE(bits, type, fetch_add)                                                             \
  CAFFE_RACES_CHANGE(bits, type, fetch_sub)                                                             \
  CAFFE_RACES_CHANGE(bits, type, fetch_and)                                                             \
  CAFFE_RACES_CHANGE(bits, type, fetch_or)                                                              \
  CAFFE_RACES_CHANGE(bits, type, fetch_xor)                                                             \
  CAFFE_RACES_CHANGE(bits, type, fetch_nand)                                                            \
  CAFFE_RACES_EXCHANGE(bits, type, strong)                                                              \
  CAFFE_RACES_EXCHANGE(bits, type, weak)                                                                \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* memory, type compare, type value, int, \
                                                  int) {                                                \
    __tsan_atomic##bits##_compare_exchange_strong(memory, &compare, value, 0, 0);                       \
    return compare;                                                                                     \
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
