// The asynchronous copies that a thread has asked for (cp.async, __pipeline_memcpy_async), or that a barrier of the block waits
// for (cp.async.bulk). A copy takes place when it is waited for, as late as CUDA allows. Until then its target holds kCopying, so
// a missing wait shows in the numbers.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <vector>

#include "host_races.h"

namespace cuda_host {

// Bytes one by one: a fault is then at an instruction of this library, whose faults are errors of the call.
__attribute__((optimize("no-tree-loop-distribute-patterns"))) inline void copy_bytes(char* to,
                                                                                     const char* from,
                                                                                     size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to[i] = from ? from[i] : 0;
}

class AsyncCopies {
 public:
  static constexpr char kCopying = static_cast<char>(0xfb);  // the bytes that a copy has not written yet

  // `given` bytes, and zeros behind them. `barrier`: what waits for it, if it is no group.
  void ask(char* to, const char* from, size_t bytes, size_t given, const void* caller,
           const void* barrier = nullptr) {
    race_finder.copy_begins(to, from, bytes, given, caller);
    for (size_t i = 0; i < bytes; ++i) to[i] = kCopying;
    asked_.push_back({to, from, bytes, given, groups_, caller, barrier});
  }
  void commit() { ++groups_; }
  // -1: for all, also those of no group. Else so many groups may be under way.
  void wait(int64_t groups_left) {
    const int64_t before = groups_left < 0 ? INT64_MAX : groups_ - groups_left;
    size_t done = 0;
    while (done < asked_.size() && asked_[done].group < before) make(asked_[done++]);
    asked_.erase(asked_.begin(), asked_.begin() + static_cast<ptrdiff_t>(done));
  }
  // Those that this barrier waits for. Returns their bytes.
  size_t wait_of(const void* barrier) {
    size_t bytes = 0;
    const auto is_done = [&](const Copy& copy) {
      if (copy.barrier != barrier) return false;
      make(copy);
      return bytes += copy.bytes, true;
    };
    asked_.erase(std::remove_if(asked_.begin(), asked_.end(), is_done), asked_.end());
    return bytes;
  }
  void forget() {
    asked_.clear();
    groups_ = 0;
  }

 private:
  struct Copy {
    char* to;
    const char* from;
    size_t bytes, given;
    int64_t group;
    const void *caller, *barrier;
  };
  static void make(const Copy& copy) {
    race_finder.copy_ends(copy.to, copy.from, copy.bytes, copy.given, copy.caller);
    copy_bytes(copy.to, copy.from, copy.given);
    copy_bytes(copy.to + copy.given, nullptr, copy.bytes - copy.given);
  }
  std::vector<Copy> asked_;  // oldest first
  int64_t groups_ = 0;       // that were committed
};

}  // namespace cuda_host
