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
  // The kind of the memory around an address; -1 if it was not made so.
  int kind_of(const void* memory) {
    const auto address = reinterpret_cast<uintptr_t>(memory);
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto after = live_.upper_bound(address);
    if (after == live_.begin()) return -1;
    const auto& [start, one] = *std::prev(after);
    return address - start < (one.bytes ? one.bytes : 1) ? one.kind : -1;
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
