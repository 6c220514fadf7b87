// What comes before a thread's accesses, by atomic operations of others.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <unordered_map>

#include "race_shadow.h"

namespace cuda_host {

// What comes before a thread: everything until a time, by block and by thread.
struct Clock {
  std::unordered_map<uint32_t, uint32_t> blocks, threads;
  void join(const Clock& other) {
    for (const auto& [block, time] : other.blocks) later(blocks[block], time);
    for (const auto& [thread, time] : other.threads) later(threads[thread], time);
  }
  static void later(uint32_t& mine, uint32_t time) { mine = std::max(mine, time); }
  static bool has(const std::unordered_map<uint32_t, uint32_t>& until, uint32_t who, uint32_t time) {
    if (until.empty()) return false;  // as in most kernels
    const auto found = until.find(who);
    return found != until.end() && time < found->second;
  }
};

// What strong accesses of some memory have published: for all, and for the threads of single blocks.
struct Released {
  Clock all;
  std::unordered_map<uint32_t, Clock> blocks;
  uint32_t count = 0;  // how often
};

}  // namespace cuda_host
