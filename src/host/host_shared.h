// A block's dynamic shared memory, `extern __shared__ T name[]`. It has the bytes that the launch asks for, and ends at
// memory that nobody may touch. So a kernel that uses more gets an error, and never another one's memory.
//
// It begins at a multiple of 16 bytes, as CUDA's vectors need it. Up to 15 bytes are left at its end. After each block
// these are looked at, and 64 bytes before the memory. A build with AddressSanitizer sees each byte outside of it.
#pragma once

#include <string.h>
#include <sys/mman.h>

#include <new>

#include "host/cuda_runtime.h"
#include "host_signals.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace cuda_host {

constexpr int kMaxSharedBytes = 227 * 1024;  // the most of a block on a Hopper GPU

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() {
    if (!memory_) return;
    watch(memory_, kAllBytes, false);
    munmap(memory_, kAllBytes);
    shared_guard = nullptr;
  }

  // Give the next blocks this many bytes.
  void resize(size_t bytes) {
    if (memory_ && bytes == bytes_) return;
    bytes_ = bytes;
    if (memory_ || bytes) place();
  }

  char* begin() {
    if (!memory_) place();
    return begin_;
  }

  bool has(const void* memory) const { return memory_ && memory >= begin_ && memory < begin_ + bytes_; }

  // Has a block written beside its memory?
  bool overflowed() const {
#if !defined(__SANITIZE_ADDRESS__)
    if (!memory_) return false;
    for (const char* at = begin_ - kBefore; at < memory_ + kSpace; ++at) {
      if (at == begin_) at += bytes_;
      if (at < memory_ + kSpace && *at != kUnused) return true;
    }
#endif
    return false;
  }

 private:
  static constexpr size_t kSpace = size_t(256) << 10;  // whole pages, of 64 KiB at most
  static constexpr size_t kAllBytes = kSpace + kSharedGuardBytes;
  static constexpr size_t kBefore = 64;
  static constexpr char kUnused = 0x5a;
  static_assert(kSpace >= size_t(kMaxSharedBytes) + kBefore, "a block's memory has no place");

  void place() {
    if (!memory_) {
      void* const memory = mmap(nullptr, kAllBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      memory_ = static_cast<char*>(memory);
#if !defined(__SANITIZE_ADDRESS__)  // it watches this memory itself, and names the line
      if (mprotect(memory_ + kSpace, kSharedGuardBytes, PROT_NONE)) throw std::bad_alloc();
#endif
    }
    // A kernel may compute with the lower bits of a shared address (swizzles). On a GPU they are those of a multiple of 1,024.
    const size_t unit = bytes_ >= 4096 ? 1024 : 16;
    begin_ = memory_ + kSpace - (bytes_ + unit - 1) / unit * unit;
    watch(memory_, kAllBytes, true);
    watch(begin_, bytes_, false);
#if !defined(__SANITIZE_ADDRESS__)
    memset(begin_ - kBefore, kUnused, kBefore);
    memset(begin_ + bytes_, kUnused, memory_ + kSpace - (begin_ + bytes_));
#endif
    shared_guard = memory_ + kSpace;
    shared_size = bytes_;
  }

  static void watch(char* at, size_t bytes, bool is_forbidden) {
#if defined(__SANITIZE_ADDRESS__)
    if (is_forbidden)
      __asan_poison_memory_region(at, bytes);
    else
      __asan_unpoison_memory_region(at, bytes);
#else
    (void)at, (void)bytes, (void)is_forbidden;
#endif
  }

  char *memory_ = nullptr, *begin_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace cuda_host
