// The asynchronous copies to shared memory that a thread has asked for (cp.async, __pipeline_memcpy_async). A copy takes place
// when it is waited for, as late as CUDA allows. Until then its target holds kCopying, so a missing wait shows in the numbers.
#pragma once

#include <stddef.h>
#include <stdint.h>

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

  // `given` bytes, and zeros behind them.
  void ask(char* to, const char* from, size_t bytes, size_t given, const void* caller) {
    race_finder.copy_begins(to, from, bytes, given, caller);
    for (size_t i = 0; i < bytes; ++i) to[i] = kCopying;
    asked_.push_back({to, from, bytes, given, groups_, caller});
  }
  void commit() { ++groups_; }
  // -1: for all, also those of no group. Else so many groups may be under way.
  void wait(int64_t groups_left) {
    const int64_t before = groups_left < 0 ? INT64_MAX : groups_ - groups_left;
    size_t done = 0;
    for (; done < asked_.size() && asked_[done].group < before; ++done) {
      const Copy& copy = asked_[done];
      race_finder.copy_ends(copy.to, copy.from, copy.bytes, copy.given, copy.caller);
      copy_bytes(copy.to, copy.from, copy.given);
      copy_bytes(copy.to + copy.given, nullptr, copy.bytes - copy.given);
    }
    asked_.erase(asked_.begin(), asked_.begin() + static_cast<ptrdiff_t>(done));
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
    const void* caller;
  };
  std::vector<Copy> asked_;  // oldest first
  int64_t groups_ = 0;       // that were committed
};

}  // namespace cuda_host
