// The words of shared memory that asynchronous copies are writing: from their start until their thread has waited.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <unordered_map>

#include "race_shadow.h"

namespace cuda_host {

class Copies {
 public:
  void begin(const void* to, size_t bytes, const AccessTime& by) {
    each(to, bytes, [&](uintptr_t word) { return words_[word] = by, false; });
  }
  void end(const void* to, size_t bytes) {
    each(to, bytes, [&](uintptr_t word) { return words_.erase(word), false; });
  }
  void clear() { words_.clear(); }
  // Who copies to this memory now, or null.
  const AccessTime* find(const void* memory, size_t bytes) const {
    const AccessTime* found = nullptr;
    if (words_.empty()) return found;
    each(memory, bytes, [&](uintptr_t word) {
      const auto at = words_.find(word);
      if (at != words_.end()) found = &at->second;
      return found != nullptr;
    });
    return found;
  }

 private:
  template <typename Visit>
  static void each(const void* memory, size_t bytes, const Visit& visit) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
    for (uintptr_t word = begin / 4; word * 4 < begin + bytes; ++word)
      if (visit(word)) return;
  }

  std::unordered_map<uintptr_t, AccessTime> words_;
};

}  // namespace cuda_host
