// Memory that nothing has written yet: of cudaMalloc, and shared memory since its block began.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace cuda_host {

struct Range {
  const void* memory = nullptr;
  size_t bytes = 0;
  bool has(const void* at) const {
    return reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(memory) < bytes;
  }
};
// A part of memory, and which of its bytes have been written.
struct WatchedRange : Range {
  std::vector<bool> written;
  void forget() { written.assign(bytes, false); }
  size_t place(const void* at) const {
    return static_cast<const char*>(at) - static_cast<const char*>(memory);
  }
  void is_written(const void* at, size_t count) {
    if (has(at)) std::fill_n(written.begin() + place(at), count, true);
  }
};

// The bytes of an access. `whole`: has none of them been written? Of a structure some may be padding.
inline bool is_unset(std::vector<bool>& written, size_t from, size_t bytes) {
  const auto begin = written.begin() + from, end = begin + bytes;
  return bytes <= 16 ? !*begin : std::find(begin, end, true) == end;
}

// Memory of cudaMalloc: has each byte been written?
class DeviceAllocations {
 public:
  static DeviceAllocations& all() {
    static DeviceAllocations* const made = new DeviceAllocations;  // lives as long as the process
    return *made;
  }
  // What the host made, wrote and freed, for reads of memory that nothing has written.
  void made(const void* memory, size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    blocks[reinterpret_cast<uintptr_t>(memory)].assign(bytes, false);
  }
  void freed(const void* memory) {
    std::lock_guard<std::mutex> lock(mutex);
    blocks.erase(reinterpret_cast<uintptr_t>(memory));
  }
  // `from`: what was copied here, of which some may not be written, either.
  void set(const void* memory, size_t bytes, const void* from) {
    std::lock_guard<std::mutex> lock(mutex);
    const uintptr_t at = reinterpret_cast<uintptr_t>(memory), its = reinterpret_cast<uintptr_t>(from);
    auto* const block = around(at, bytes);
    if (!block) return;
    const auto to = block->second.begin() + (at - block->first);
    if (auto* source = around(its, bytes)) {
      const auto begin = source->second.begin() + (its - source->first);
      const std::vector<bool> written(begin, begin + bytes);  // the two may overlap
      std::copy(written.begin(), written.end(), to);
    } else {
      std::fill_n(to, bytes, true);
    }
  }
  // All from here to the end of the memory.
  void fill(const void* from) {
    std::lock_guard<std::mutex> lock(mutex);
    const uintptr_t at = reinterpret_cast<uintptr_t>(from);
    if (auto* const block = around(at, 0))
      std::fill(block->second.begin() + (at - block->first), block->second.end(), true);
  }
  std::mutex mutex;
  std::map<uintptr_t, std::vector<bool> > blocks;
  std::pair<const uintptr_t, std::vector<bool> >* around(uintptr_t at, size_t bytes) {
    const auto above = blocks.upper_bound(at);
    if (above == blocks.begin()) return nullptr;
    auto& block = *std::prev(above);
    return at - block.first + bytes <= block.second.size() ? &block : nullptr;
  }
};

}  // namespace cuda_host
