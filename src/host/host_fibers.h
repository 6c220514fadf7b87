// Fibres: the stacks on which a block's threads run, and the change from one to another.
#pragma once

#include <sys/mman.h>

#include <memory>
#include <vector>

#include "host_context.h"
#include "host_copies.h"
#include "host_kernel.h"
#include "host_memory.h"
#include "host_shared.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace cuda_host {
namespace {

// A GPU's thread has up to 512 KiB. Only the pages that a thread touches are memory.
constexpr size_t kStackBytes = 640 * 1024;
// Stacks begin at different places of a page and of 128 KiB, because a cache has few lines for addresses that differ by
// such a number.
constexpr size_t kPage = 4096, kStackShift = 5 * 64;
constexpr size_t kStacksBytes = kMaxThreadsPerBlock * (kStackBytes + kPage);
constexpr uint64_t kCanary = 0x5afe57ac5afe57acu;  // at the end of each stack, to detect overflows

constexpr int kNoLane = -1, kAllLanes = -2;

struct Fiber {
  Context here;  // where it waits
  char* stack = nullptr;
  uint3 thread{};              // the CUDA thread that runs here
  int id = 0;                  // its number in the block
  unsigned int waits_for = 0;  // the lanes of a warp barrier; 0: the block's barrier
  bool orders_memory = false;  // true for a __syncwarp(), false for a shuffle or a vote
  bool from_nobody = false;    // the lane of `source` does not take part
  int source = kNoLane;        // in a shuffle: the lane whose value it wants. In a vote: kAllLanes
  uint64_t value = 0;          // what it gets
  int outcome = 0;             // the result of the barrier
  Place active;                // the __activemask() where it waits; line 0: none
  std::vector<Place> calls;    // by which it came there (cuda_warp.h)
  WarpWork work = nullptr;     // what one of the lanes that meet does for all of them (cuda_warp.h)
  AsyncCopies copies, stores;
  int named = -1;  // the named barrier where it waits
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
#endif

  bool is_too_deep() const { return *reinterpret_cast<const uint64_t*>(stack) != kCanary; }
};

// The fibres of one host thread. The scheduler, on the host thread's own stack, resumes one; it parks when it waits.
class Fibers {
 public:
  explicit Fibers(void (*entry)()) : entry_(entry) {}
  ~Fibers() {
    if (stacks_) munmap(stacks_ - kGuardBytes, kGuardBytes + kStacksBytes);
  }
  void begin(const Kernel& kernel) {
    kernel_ = &kernel;
    stopped = false;
  }
  // One whose thread has not begun: it runs entry(), which never returns.
  Fiber& fresh() {
    if (idle_.empty()) return make();
    Fiber& fiber = *idle_.back();
    idle_.pop_back();
    return fiber;
  }
  void is_idle(Fiber* fiber) { idle_.push_back(fiber); }
  void forget();
  void arrived();
  void resume(Fiber& fiber);
  void resume_ready();
  void park();

  Fiber* current = nullptr;
  std::vector<Fiber*> ready;  // those that a barrier lets go on
  bool stopped = false;       // after an exception none of them goes on

 private:
  Fiber& make();
  Fiber* following(const Fiber& fiber);

  void (*const entry_)();
  uint3& thread_ = threadIdx;
  const Kernel* kernel_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  size_t next_ = 0;  // of ready
  Context scheduler_;
  char* stacks_ = nullptr;
#if defined(__SANITIZE_ADDRESS__)
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
#endif
};

// Drop all. Later fibres reuse their stacks.
inline void Fibers::forget() {
  ready.clear();
  idle_.clear();
  fibers_.clear();
}

// Its first statement: AddressSanitizer must know on which stack it is.
inline void Fibers::arrived() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(current->fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
}

inline Fiber& Fibers::make() {
  if (!stacks_) {
    char* const memory = static_cast<char*>(mmap(nullptr, kGuardBytes + kStacksBytes, PROT_NONE,
                                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (memory == MAP_FAILED || mprotect(memory + kGuardBytes, kStacksBytes, PROT_READ | PROT_WRITE))
      fail(*kernel_, "no address space for the threads' stacks");
    stacks_ = memory + kGuardBytes;
    // A huge page would be memory for several stacks, of which few pages are used.
    madvise(stacks_, kStacksBytes, MADV_NOHUGEPAGE);
    stack_guard = memory;
    race_finder.stacks_are(stacks_, kStacksBytes);
  }
  fibers_.emplace_back(new Fiber);
  Fiber& fiber = *fibers_.back();
  const size_t index = fibers_.size() - 1;
  fiber.stack = stacks_ + index * (kStackBytes + kPage) + index % (kPage / kStackShift) * kStackShift;
  *reinterpret_cast<uint64_t*>(fiber.stack) = kCanary;
  fiber.here.begin_at(fiber.stack, kStackBytes, entry_);
  return fiber;
}

inline void Fibers::resume(Fiber& fiber) {
  current = &fiber;
  thread_ = fiber.thread;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&scheduler_fake_stack_, fiber.stack, kStackBytes);
#endif
  switch_context(scheduler_, fiber.here);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(scheduler_fake_stack_, nullptr, nullptr);
#endif
  if (current->is_too_deep()) fail(*kernel_, "a thread used more than 640 KiB of stack between two barriers");
}

// Resume the fibres of ready_, each when the one before it waits again. A fibre that waits does the next step itself.
inline void Fibers::resume_ready() {
  for (next_ = 0; next_ < ready.size() && !stopped;) resume(*ready[next_++]);
  ready.clear();
}

// The fibre to which this one, which waits, changes itself. Null: the scheduler decides.
inline Fiber* Fibers::following(const Fiber& fiber) {
#if defined(__SANITIZE_ADDRESS__)
  return (void)fiber, nullptr;
#endif
  if (next_ >= ready.size() || stopped || fiber.is_too_deep()) return nullptr;
  return ready[next_++];
}

inline void Fibers::park() {
  Fiber* fiber = current;
  if (Fiber* const next = following(*fiber)) {
    current = next;
    thread_ = next->thread;
    return switch_context(fiber->here, next->here);
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fiber->fake_stack, scheduler_stack_, scheduler_stack_bytes_);
#endif
  switch_context(fiber->here, scheduler_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fiber->fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
}

}  // namespace
}  // namespace cuda_host
