// Memory that the host made by cudaMalloc and the like, until it is freed.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "host/cuda_runtime.h"

namespace cuda_host {

class Allocations {
 public:
  struct One {
    size_t bytes;
    MemoryKind kind;
  };
  static Allocations& all() {
    static Allocations* const made = new Allocations;  // lives as long as the process
    return *made;
  }
  void* make(size_t bytes, MemoryKind kind) {
    void* const memory = malloc(bytes ? bytes : 1);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (memory) live_[reinterpret_cast<uintptr_t>(memory)] = {bytes, kind};
    return memory;
  }
  // False: nothing that begins here was made so, or it is freed already, or it is of the other kind.
  bool free(void* memory, bool of_host) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = live_.find(reinterpret_cast<uintptr_t>(memory));
      if (found == live_.end() || (found->second.kind == kHostMemory) != of_host) return false;
      live_.erase(found);
    }
    ::free(memory);
    return true;
  }
  // The memory around an address: kind -1 if none was made so.
  struct Around {
    uintptr_t begin = 0;
    size_t bytes = 0;
    int kind = -1;
    bool has(uintptr_t at) const { return at - begin < bytes; }
  };
  Around around(uintptr_t address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto after = live_.upper_bound(address);
    if (after == live_.begin()) return {};
    const auto& [start, one] = *std::prev(after);
    const Around found{start, one.bytes ? one.bytes : 1, one.kind};
    return found.has(address) ? found : Around();
  }
  int kind_of(const void* memory) { return around(reinterpret_cast<uintptr_t>(memory)).kind; }
  // Memory of the host's that kernels may use, too (cudaHostRegister), and no longer.
  void known(const void* memory, size_t bytes, bool is_known) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_known)
      live_.insert({reinterpret_cast<uintptr_t>(memory), {bytes, kHostMemory}});
    else
      live_.erase(reinterpret_cast<uintptr_t>(memory));
  }

  // The memory around this address, or the nearest before or behind it: where it begins, and its bytes; 0 if there is none.
  std::pair<uintptr_t, size_t> nearest(uintptr_t at) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto above = live_.upper_bound(at);
    const auto below = above == live_.begin() ? live_.end() : std::prev(above);
    const size_t behind = below == live_.end() ? SIZE_MAX : at - below->first;
    const size_t before = above == live_.end() ? SIZE_MAX : above->first - at;
    if (behind == SIZE_MAX && before == SIZE_MAX) return {0, 0};
    const bool is_behind =
        behind != SIZE_MAX && (behind <= below->second.bytes || behind - below->second.bytes < before);
    const auto found = is_behind ? below : above == live_.end() ? below : above;
    return {found->first, found->second.bytes};
  }

 private:
  std::mutex mutex_;
  std::map<uintptr_t, One> live_;
};

}  // namespace cuda_host
