// What the host does wrong around launches, told to the race finder's log: memory of the host's own that a kernel uses, and
// what a kernel or an asynchronous copy has written, and the host reads or writes before it waits. Only programs whose
// kernels get no memory that others made are watched so: CAFFE_JUDGE_HOST says that this is one (cuffi/judging).
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "host_memory.h"
#include "race_log.h"
#include "race_written.h"

namespace cuda_host {

extern __thread volatile bool in_kernel;  // does this thread run a kernel's own code?

class HostUse {
 public:
  static HostUse& all() {
    static HostUse* const made = new HostUse;  // lives as long as the process
    return *made;
  }
  static bool is_on() {
    static const bool on = getenv("CAFFE_JUDGE_HOST");
    return on;
  }

  // A launch at `place` begins. `words`: what its arguments have, in order; `body`: where they lie.
  void begin_launch(const char* kernel, uint32_t place, const std::vector<uintptr_t>& words,
                    const Range& body) {
    kernel_ = kernel, launch_ = place, body_ = body, words_ = &words;
    forget();
  }
  // Memory may be another one's from here on.
  void forget() { last_ = {}; }

  // A kernel's access of what is neither shared memory, nor a fibre's stack, nor a variable of `library`.
  void access(const Range& library, const void* memory, size_t bytes, bool writes, uint32_t place,
              uint32_t thread, int64_t block_threads) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(memory);
    if (!last_.has(at)) last_ = Allocations::all().around(at);
    if (last_.kind == kDeviceMemory || library.has(memory) || body_.has(memory)) return;
    if (last_.kind < 0) return not_the_devices(library, at, place, thread, block_threads);
    if (writes) is_written(at, bytes, {kernel_, launch_, false});
  }
  // An asynchronous copy to the host's memory begins at `place`.
  void copies(const void* to, size_t bytes, uint32_t place) {
    is_written(reinterpret_cast<uintptr_t>(to), bytes, {"", place, true});
  }
  // The host waits for all that was asked for.
  void waits() {
    if (!is_pending) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_.clear();
    is_pending = false;
  }
  // The host's access. Who writes the memory, if that is not over: false if nobody does.
  struct By {
    std::string kernel;
    uint32_t place = 0;
    bool is_copy = false;
  };
  bool is_early(const void* memory, size_t bytes, By* by) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(memory);
    const std::lock_guard<std::mutex> lock(mutex_);
    auto after = pending_.upper_bound(at + bytes - 1);
    if (after == pending_.begin()) return false;
    const auto& [begin, part] = *std::prev(after);
    if (at >= begin + part.bytes) return false;
    return *by = part.by, true;
  }
  std::atomic<bool> is_pending{false};

 private:
  struct Part {
    size_t bytes;
    By by;
  };

  // Parts that lie side by side, of one launch, become one.
  void is_written(uintptr_t at, size_t bytes, const By& by) {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_pending = true;
    auto after = pending_.upper_bound(at);
    if (after != pending_.begin()) {
      auto& [begin, part] = *std::prev(after);
      if (at <= begin + part.bytes && part.by.place == by.place) {
        part.bytes = std::max(part.bytes, at - begin + bytes);
        return;
      }
    }
    if (pending_.size() < kMostParts) pending_[at] = {bytes, by};
  }

  // The kernel's pointer that is the next below is no memory that it may use, either.
  void not_the_devices(const Range& library, uintptr_t at, uint32_t place, uint32_t thread,
                       int64_t block_threads) {
    const auto above = std::upper_bound(words_->begin(), words_->end(), at);
    if (above == words_->begin()) return;
    const uintptr_t base = above[-1];
    if (at - base >= kFar || base < kLeast || library.has(reinterpret_cast<const void*>(base)) ||
        Allocations::all().around(base).kind >= 0 || !RaceLog::now().is_new(kernel_, launch_, place))
      return;
    tell("host-pointer", kernel_, launch_, place, thread, block_threads);
  }

 public:
  static void tell(const char* kind, const char* kernel, uint32_t launch, uint32_t place, uint32_t thread,
                   int64_t block_threads) {
    RaceLog::write("outside\t%s\t%s\t%s\t%#x\t%#x\t%u\t%lld\n", name().c_str(), kernel, kind, launch - 1,
                   place - 1, thread, static_cast<long long>(block_threads));
  }
  // The library's, for the log.
  static std::string& name() {
    static auto* const made = new std::string;
    return *made;
  }

 private:
  static constexpr size_t kMostParts = 1 << 20, kFar = size_t(1) << 31, kLeast = 1 << 16;
  const char* kernel_ = "";
  uint32_t launch_ = 0;
  Range body_;
  const std::vector<uintptr_t>* words_ = nullptr;
  Allocations::Around last_;
  std::mutex mutex_;
  std::map<uintptr_t, Part> pending_;
};

}  // namespace cuda_host
