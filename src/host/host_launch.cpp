// The host launcher: runs a kernel's grid on the processor's cores.
//
// Blocks are spread over host threads. One host thread runs the threads of a block one after the other, in a plain
// loop. A thread that reaches a barrier is parked on its stack, and the loop goes on with the next thread on a new
// stack (a fibre). So a thread costs a function call, and a thread that waits also a stack, without knowing
// beforehand whether a kernel has barriers. As on a GPU, a thread that has returned does not count at barriers.
//
// If it is known that no thread waits, the loop is in the kernel's own file (call_blocks, cuda_launch.h), where the
// compiler sees it with the kernel. A fibre calls it, because its stack has the size of a thread's, and a guard. The same
// holds where threads wait only at barriers between which loops can run (call_phases).
//
// A thread that spins, because it waits for another one, gives way, too (cuda_host::may_spin). If all threads of a block
// wait for another block, one more host thread runs blocks that nobody has begun.
//
// Each launch starts its own host threads, if it is long enough for that. No thread pool stays alive, so processes
// that fork, such as a DataLoader's workers, are safe.
//
// An assert, an exit or a signal while a kernel runs ends only the launch, with an error (way_out.h, host_signals.h).
#undef _FORTIFY_SOURCE  // it reports a jump to another stack as an error
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "host/cuda_runtime.h"
#include "host_context.h"
#include "host_copies.h"
#include "host_memory.h"
#include "host_races.h"
#include "host_shared.h"
#include "host_signals.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

extern "C" {
// A library whose functions hold the interpreter's lock sets them: it gives the lock back during a launch, as Python
// goes on while a GPU works. (Not weak functions: in a program, gold gives one that nobody defines an address.)
__attribute__((visibility("hidden"))) void* (*caffe_unlock)() = nullptr;
__attribute__((visibility("hidden"))) void (*caffe_relock)(void* state) = nullptr;
// What was wrong with this thread's last launch, or null; it is forgotten. No kernel took it, because its kernel was not
// rewritten or an exception came first; or CUDA would refuse it, and nobody has asked for the error.
__attribute__((visibility("hidden"))) const char* caffe_take_launch_problem();
// Faults in this library's code are errors of the call (host_signals.h), from now on.
__attribute__((visibility("hidden"))) void caffe_watch_faults();
}

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace cuda_host {

__thread Part part;
__thread unsigned int spins = 0;
__thread volatile bool in_kernel = false, copying = false, interrupted = false;
__thread const char* stack_guard = nullptr;
__thread const char* shared_guard = nullptr;
__thread size_t shared_size = 0;

namespace {

constexpr int64_t kMaxThreadsPerBlock = 1024;
constexpr int64_t kPartElements = 1 << 15;  // kRange: large beside a call, small enough to balance
constexpr int64_t kStridesParts = 16;       // kStrides: of a range whose length only the kernel knows
constexpr int64_t kBlocksThreads = 4096;    // kBlocks: threads of one call, or more of a large grid,
constexpr int64_t kBlocksParts = 64;        // of which each host thread gets so many calls
constexpr double kThreadPaysOff = 100e-6;   // seconds of work for which one more host thread pays
constexpr size_t kMostBlocksAtOnce = 1024;  // that wait for each other
constexpr double kHelpAfter = 1e-3, kFullAfter = 1,
                 kLostAfter = 60;  // seconds in which all threads of a block spin

struct Launch {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool pending = false, refused = false, cooperative = false;
  const void* caller = nullptr;  // where the host launches
};
thread_local Launch next_launch;
thread_local cudaError_t pending_error = cudaSuccess;
// For the race finder: some mistakes show only if the last thread runs first.
const bool backwards = RaceFinder::kOn && getenv("CAFFE_RACES_BACKWARDS");
// Others, only if threads and blocks change at atomic operations: the first ones of each launch.
const bool changing = RaceFinder::kOn && getenv("CAFFE_RACES_CHANGING");
constexpr int kChanges = 2000;
std::atomic<int> changes_left{0};

std::atomic<int> thread_limit{0};             // 0: one per core
std::atomic<size_t> shared_limit{48 * 1024};  // more only after cudaFuncSetAttribute, as on a GPU

struct Kernel {
  const char* name;
  void (*call)(const void*);
  const void* body;
  Launch launch;
  void (*call_blocks)(const void*, int64_t, int64_t) = nullptr;  // kBlocks
};

std::string text_of(Place place) {
  return "line " + std::to_string(place.line) +
         (place.column ? ", column " + std::to_string(place.column) : "");
}

[[noreturn]] void fail(const Kernel& kernel, const std::string& what) {
  throw std::runtime_error(std::string("kernel ") + kernel.name + ": " + what);
}

// ------------------------------------------------------------------------------------- fibres

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
  AsyncCopies copies;
  int named = -1;  // the named barrier where it waits
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
#endif

  bool is_too_deep() const { return *reinterpret_cast<const uint64_t*>(stack) != kCanary; }
};

// The barrier of one warp. It is reset when a block starts.
struct Warp {
  unsigned int live = 0;
  unsigned int wait_for[32] = {};  // by lane: those that it waits for; 0: it does not wait
  uint64_t published[32] = {};
};

// Find this library's thread-local variables, of which a kernel's threadIdx is one.
struct Variables {
  const char* first = nullptr;
  const char* last = nullptr;
  bool has(const void* memory) const { return memory >= first && memory < last; }
};
int find_variables(dl_phdr_info* info, size_t, void* into) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const char* const begin = static_cast<const char*>(info->dlpi_tls_data);
    const Variables found{begin, begin + info->dlpi_phdr[i].p_memsz};
    if (info->dlpi_phdr[i].p_type != PT_TLS || !begin || !found.has(&threadIdx)) continue;
    *static_cast<Variables*>(into) = found;
    return 1;
  }
  return 0;
}

// Runs one block at a time on this host thread.
class BlockRunner {
 public:
  ~BlockRunner() {
    if (stacks_) munmap(stacks_ - kGuardBytes, kGuardBytes + kStacksBytes);
  }

  void run(const Kernel& kernel, uint3 block);
  void run_blocks(const Kernel& kernel, int64_t first, int64_t last);
  void abandon();
  int block_barrier(int predicate, Place place, const void* caller = nullptr);
  void warp_barrier(unsigned int mask, const void* caller, bool orders_memory = false);
  uint64_t warp_exchange(unsigned int mask, uint64_t bits, int source, const void* caller);
  unsigned int warp_ballot(unsigned int mask, int predicate, const void* caller);
  unsigned int active_lanes(Place place);
  void warp_together(unsigned int mask, void* own, WarpWork work, const char* what);
  AsyncCopies& copies() { return current_->copies; }
  void named_barrier(uint32_t number, uint32_t threads, bool waits, const void* caller);
  void enter(Place call) {
    if (current_) current_->calls.push_back(call);
  }
  void leave() {
    if (current_ && !current_->calls.empty()) current_->calls.pop_back();
  }
  void spin();
  void change();
  void grid_barrier(Place place, const void* caller);
  bool is_cooperative() const { return kernel_->launch.cooperative; }
  // Is it the block's memory: dynamic, or this host thread's copy of a variable?
  bool is_shared(const void* memory) {
    if (!variables_.first) dl_iterate_phdr(&find_variables, &variables_);
    return variables_.has(memory) || shared_.has(memory);
  }
  void* shared_bytes() { return shared_.begin(); }
  size_t shared_size() const { return kernel_ ? kernel_->launch.shared_bytes : 0; }
  // "kernel k: thread 3 of block 0", of the thread that runs.
  std::string who() const {
    const int64_t block = (int64_t(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const int thread = (thread_.z * blockDim.y + thread_.y) * blockDim.x + thread_.x;
    return std::string("kernel ") + kernel_->name + ": thread " + std::to_string(thread) + " of block " +
           std::to_string(block);
  }
  void begin_code();
  void end_code();

 private:
  void start(const Kernel& kernel);
  void finish();
  void run_threads();
  uint3 place_of(int id) const;
  void check_waits(const char* what) const;
  void resume(Fiber& fiber);
  void resume_ready();
  Fiber* following(const Fiber& fiber);
  void park();
  void wait();
  void release_block_barrier();
  bool release_warp_barriers();
  bool release_active_masks();
  bool release_named_barriers();
  void meet(unsigned int mask, uint64_t value, int source, const void* caller);
  static void exchange(Fiber& fiber, const Warp& its);
  void work_together(Fiber& first);
  bool resume_spinning();
  void stalled();
  void goes_on();
  Fiber& fresh_fiber();
  Fiber& new_fiber();
  Warp& warp() { return warps_[current_->id / 32]; }
  static void entry();

  // This host thread's variables: to ask for their addresses takes longer than to use them.
  uint3& thread_ = threadIdx;
  volatile bool& in_code_ = in_kernel;
  const Kernel* kernel_ = nullptr;
  int total_ = 0, started_ = 0, finished_ = 0, ended_ = 0;
  int64_t first_block_ = 0, last_block_ = 0;  // kBlocks
  uint3 block_{};                             // its dimensions
  int at_barrier_ = 0, predicate_sum_ = 0;
  int64_t progress_ = 0;  // counts the threads' ends and the block's barriers
  int64_t seen_progress_ = 0;
  bool running_ = false;      // a block, and not a part of a range
  bool waits_ = false;        // counted in team->waiting
  double stalled_since_ = 0;  // in seconds of now(); 0: some thread of the block goes on
  Place barrier_;             // where the first thread at the block's barrier waits
  const void* barrier_caller_ = nullptr;
  Warp warps_[kMaxThreadsPerBlock / 32];
  struct Named {
    uint32_t arrived, expected;
  } named_[16] = {};
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> parked_, idle_, spinning_;
  std::vector<Fiber*> ready_, waiting_;  // those that a barrier lets go on, and those that it does not
  size_t next_ready_ = 0;
  Fiber* current_ = nullptr;
  Context scheduler_;
  char* stacks_ = nullptr;
  std::exception_ptr thrown_;
  SharedMemory shared_;
  Variables variables_;
#if defined(__SANITIZE_ADDRESS__)
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
#endif
};

// A variable of this host thread. Its address is asked for once, and not again at each use.
template <typename T>
T& found(T& variable) {
  T* at = &variable;
  __asm__("" : "+r"(at));
  return *at;
}
BlockRunner& runner() {
  static thread_local BlockRunner own;
  return found(own);
}

void BlockRunner::start(const Kernel& kernel) {
  kernel_ = &kernel;
  started_ = finished_ = at_barrier_ = predicate_sum_ = 0;
  stalled_since_ = 0;
  thrown_ = nullptr;
  shared_.resize(kernel.launch.shared_bytes);
  if (kernel.launch.shared_bytes) race_finder.dynamic_shared_is(shared_.begin(), kernel.launch.shared_bytes);
}

void BlockRunner::finish() {
  running_ = false;
  goes_on();
  if (thrown_) std::rethrow_exception(thrown_);
  if (shared_.overflowed())
    fail(*kernel_, "wrote outside of its dynamic shared memory: the launch asked for " +
                       std::to_string(kernel_->launch.shared_bytes) + " bytes");
}

void BlockRunner::run(const Kernel& kernel, uint3 block) {
  blockIdx = block;
  race_finder.begin_block((int64_t(block.z) * gridDim.y + block.y) * gridDim.x + block.x);
  for (const uint3* launchers : {&threadIdx, &blockIdx, &blockDim, &gridDim})
    race_finder.is_written(launchers, sizeof *launchers);
  start(kernel);
  block_ = blockDim;
  total_ = static_cast<int>(block_.x * block_.y * block_.z);
  running_ = true;
  std::fill_n(named_, 16, Named());
  for (int w = 0; w * 32 < total_; ++w) {
    const int lanes = total_ - w * 32;
    warps_[w].live = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
    std::fill_n(warps_[w].wait_for, 32, 0);
  }
  try {
    while (!thrown_ && finished_ < total_) {
      if (started_ < total_) {
        resume(fresh_fiber());
      } else if (at_barrier_ == total_ - finished_) {
        release_block_barrier();
      } else {
        const bool released = release_warp_barriers() || release_active_masks() || release_named_barriers();
        if (!resume_spinning() && !released)
          fail(kernel, "threads of a block wait for each other at different barriers");
      }
    }
    finish();
  } catch (...) {
    abandon();
    throw;
  }
}

void BlockRunner::run_blocks(const Kernel& kernel, int64_t first, int64_t last) {
  first_block_ = first;
  last_block_ = last;
  try {
    start(kernel);
    resume(fresh_fiber());
    finish();
  } catch (...) {
    abandon();
    throw;
  }
}

// In kBlocks no other thread would come.
void BlockRunner::check_waits(const char* what) const {
  if (kernel_->call_blocks)
    fail(*kernel_, std::string("calls ") + what +
                       " in a way that tools/cuda/alone.py does not see; call a function " +
                       "that has it by its name in the kernel");
}

// Drop the block's threads, wherever they are. Later fibres reuse their stacks.
void BlockRunner::abandon() {
  goes_on();
  running_ = false;
  for (std::vector<Fiber*>* fibers : {&parked_, &spinning_, &idle_, &ready_}) fibers->clear();
  fibers_.clear();
}

// From here on this host thread runs the kernel's own code ...
void BlockRunner::begin_code() {
  race_finder.run_as(current_->id);
  in_code_ = true;
}
// ... and from here on the launcher's.
void BlockRunner::end_code() {
  in_code_ = false;
  race_finder.pause();
}

uint3 BlockRunner::place_of(int id) const {
  const unsigned int t = static_cast<unsigned int>(id), width = block_.x, height = block_.y;
  if (t < width) return {t, 0, 0};
  return {t % width, t / width % height, t / width / height};
}

// The loop over the block's threads. It changes to another fibre when a thread waits.
void BlockRunner::run_threads() {
  while (started_ < total_) {
    const int id = backwards ? total_ - 1 - started_ : started_;
    ++started_;
    current_->thread = thread_ = place_of(id);
    current_->id = id;
    current_->calls.clear();  // an error left them
    current_->copies.forget();
    current_->work = nullptr;
    current_->named = -1;
    begin_code();
    kernel_->call(kernel_->body);
    end_code();
    race_finder.thread_ended(id);
    ended_ = id;
    warps_[id / 32].live &= ~(1u << (id % 32));
    ++finished_;
    ++progress_;
    if (thrown_) return;
  }
}

void BlockRunner::entry() {
  BlockRunner& self = runner();
  Fiber* fiber = self.current_;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fiber->fake_stack, &self.scheduler_stack_, &self.scheduler_stack_bytes_);
#endif
  for (;;) {  // a fibre is used again and again
    try {
      if (self.kernel_->call_blocks) {
        self.in_code_ = true;
        self.kernel_->call_blocks(self.kernel_->body, self.first_block_, self.last_block_);
        self.in_code_ = false;
      } else {
        self.run_threads();
      }
    } catch (...) {
      in_kernel = false;
      self.thrown_ = std::current_exception();
    }
    self.idle_.push_back(fiber);
    self.park();
  }
}

Fiber& BlockRunner::fresh_fiber() {
  if (idle_.empty()) return new_fiber();
  Fiber& fiber = *idle_.back();
  idle_.pop_back();
  return fiber;
}

Fiber& BlockRunner::new_fiber() {
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
  fiber.here.begin_at(fiber.stack, kStackBytes, &BlockRunner::entry);
  return fiber;
}

void BlockRunner::resume(Fiber& fiber) {
  current_ = &fiber;
  thread_ = fiber.thread;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&scheduler_fake_stack_, fiber.stack, kStackBytes);
#endif
  switch_context(scheduler_, fiber.here);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(scheduler_fake_stack_, nullptr, nullptr);
#endif
  if (current_->is_too_deep())
    fail(*kernel_, "a thread used more than 640 KiB of stack between two barriers");
}

// Resume the fibres of ready_, each when the one before it waits again. A fibre that waits does the next step itself.
void BlockRunner::resume_ready() {
  for (next_ready_ = 0; next_ready_ < ready_.size() && !thrown_;) resume(*ready_[next_ready_++]);
  ready_.clear();
}

// The fibre to which this one, which waits, changes itself. Null: the scheduler decides.
Fiber* BlockRunner::following(const Fiber& fiber) {
#if defined(__SANITIZE_ADDRESS__)
  return (void)fiber, nullptr;
#endif
  if (next_ready_ >= ready_.size() || thrown_ || fiber.is_too_deep()) return nullptr;
  return ready_[next_ready_++];
}

void BlockRunner::park() {
  Fiber* fiber = current_;
  if (Fiber* const next = following(*fiber)) {
    current_ = next;
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

// Wait until the scheduler resumes this fibre.
void BlockRunner::wait() {
  park();
  begin_code();
}

int BlockRunner::block_barrier(int predicate, Place place, const void* caller) {
  end_code();
  check_waits("__syncthreads()");
  Fiber* fiber = current_;
  if (at_barrier_++ == 0) barrier_ = place, barrier_caller_ = caller;
  // bar.sync 0 of PTX has no place: warps may come to it at different ones.
  const bool differ = place.line != barrier_.line || place.column != barrier_.column;
  if (differ && place.line && barrier_.line)
    fail(*kernel_, "threads of a block wait at different barriers, at " + text_of(barrier_) + " and at " +
                       text_of(place) + "; all must come to the same __syncthreads()");
  predicate_sum_ += predicate;
  fiber->waits_for = 0;
  parked_.push_back(fiber);
  wait();
  return fiber->outcome;
}

void BlockRunner::release_block_barrier() {
  ready_.swap(parked_);
  if (finished_ && barrier_caller_) race_finder.barrier_skipped(ready_.front()->id, ended_, barrier_caller_);
  for (Fiber* fiber : ready_) fiber->outcome = predicate_sum_;
  at_barrier_ = predicate_sum_ = 0;
  ++progress_;
  race_finder.block_barrier();
  resume_ready();
}

void BlockRunner::warp_barrier(unsigned int mask, const void* caller, bool orders_memory) {
  end_code();
  check_waits("__syncwarp()");
  if (!(mask >> current_->id % 32 & 1u)) race_finder.not_in_mask(mask, caller);
  warp().wait_for[current_->id % 32] = current_->waits_for = mask;
  current_->orders_memory = orders_memory;
  parked_.push_back(current_);
  wait();
}

// Wake the threads of a warp if all lanes that they wait for have returned, or wait for the same lanes. One that waits
// for others, in a shuffle of fewer lanes, has not come yet.
bool BlockRunner::release_warp_barriers() {
  waiting_.clear();
  const Warp* last = nullptr;
  unsigned int mask = 0;
  bool open = false;
  for (Fiber* fiber : parked_) {
    const Warp& its = warps_[fiber->id / 32];
    if (&its != last || fiber->waits_for != mask) {
      last = &its;
      mask = fiber->waits_for;
      open = mask != 0;
      for (unsigned int lanes = mask & its.live; lanes && open; lanes &= lanes - 1)
        open = (its.wait_for[__builtin_ctz(lanes)] & its.live) == (mask & its.live);
    }
    (open ? ready_ : waiting_).push_back(fiber);
  }
  parked_.swap(waiting_);
  race_finder.begin_warp_barrier();
  for (Fiber* fiber : ready_) {
    const int id = fiber->id;
    warps_[id / 32].wait_for[id % 32] = 0;
    if (fiber->source != kNoLane) exchange(*fiber, warps_[id / 32]);
    if (fiber->work) work_together(*fiber);
    if (fiber->orders_memory) race_finder.warp_barrier(id, fiber->waits_for);
  }
  const bool any = !ready_.empty();
  resume_ready();
  return any;
}

// A barrier of some warps (PTX: bar.sync number, threads).
void BlockRunner::named_barrier(uint32_t number, uint32_t threads, bool waits, const void* caller) {
  const uint32_t all = static_cast<uint32_t>((total_ + 31) / 32 * 32);
  if (!threads) threads = all;
  if (number == 0 && threads >= all && waits) {
    block_barrier(0, {}, caller);
    return;
  }
  if (number >= 16 || threads % 32)
    fail(*kernel_, "a named barrier with a number above 15, or not for whole warps");
  Named& own = named_[number];
  if (own.arrived && own.expected != threads)
    fail(*kernel_, "threads expect different numbers of threads at a named barrier");
  own.expected = threads;
  ++own.arrived;
  if (!waits) return;
  end_code();
  check_waits("a named barrier");
  current_->waits_for = 0;
  current_->named = static_cast<int>(number);
  parked_.push_back(current_);
  wait();
}

bool BlockRunner::release_named_barriers() {
  bool any = false;
  for (int number = 0; number < 16; ++number) {
    Named& own = named_[number];
    if (!own.arrived || own.arrived < own.expected) continue;
    own.arrived -= own.expected;
    waiting_.clear();
    for (Fiber* fiber : parked_) {
      const bool goes = fiber->named == number;
      if (goes) fiber->named = -1;
      (goes ? ready_ : waiting_).push_back(fiber);
    }
    parked_.swap(waiting_);
    race_finder.block_barrier();  // more than it orders: a race with a warp that is not there is missed
    ++progress_;
    any = true;
    resume_ready();
  }
  return any;
}

// The first of the lanes that have met does the work of all.
void BlockRunner::work_together(Fiber& first) {
  const Warp& its = warps_[first.id / 32];
  const unsigned int there = first.waits_for & its.live;
  const WarpWork work = first.work;
  for (Fiber* other : ready_) {
    if (other->id / 32 != first.id / 32 || !(there >> (other->id % 32) & 1u)) continue;
    if (other->work != work)
      fail(*kernel_, "lanes of a warp meet at different instructions for the whole warp");
    other->work = nullptr;
  }
  work(reinterpret_cast<void* const*>(its.published), there);
}

void BlockRunner::warp_together(unsigned int mask, void* own, WarpWork work, const char* what) {
  check_waits(what);
  if (mask == 0xffffffffu && warp().live != mask)
    fail(*kernel_, std::string(what) + " needs all 32 lanes, and some have returned or are not there");
  warp().published[current_->id % 32] = reinterpret_cast<uintptr_t>(own);
  current_->work = work;
  warp_barrier(mask, nullptr);
}

// Give a value to the other lanes, and wait for theirs.
void BlockRunner::meet(unsigned int mask, uint64_t value, int source, const void* caller) {
  check_waits("a shuffle or a vote");
  Fiber* const fiber = current_;
  warp().published[fiber->id % 32] = fiber->value = value;
  fiber->source = source;
  warp_barrier(mask, caller);
  fiber->source = kNoLane;
}

// All have come, and nobody goes on yet: what this lane gets.
void BlockRunner::exchange(Fiber& fiber, const Warp& its) {
  const unsigned int there = fiber.waits_for & its.live;
  if (fiber.source == kAllLanes) {
    fiber.value = 0;
    for (int lane = 0; lane < 32; ++lane)
      if (there >> lane & 1u) fiber.value |= its.published[lane] << lane;
    return;
  }
  // In CUDA the value of a lane that does not take part is undefined. Here it is the thread's own.
  fiber.from_nobody = !(there >> fiber.source & 1u);
  if (!fiber.from_nobody) fiber.value = its.published[fiber.source];
}

uint64_t BlockRunner::warp_exchange(unsigned int mask, uint64_t bits, int source, const void* caller) {
  meet(mask, bits, source & 31, caller);
  if (current_->from_nobody) race_finder.read_from_no_lane(source & 31, caller);
  return current_->value;
}

unsigned int BlockRunner::warp_ballot(unsigned int mask, int predicate, const void* caller) {
  meet(mask, predicate != 0, kAllLanes, caller);
  return static_cast<unsigned int>(current_->value);
}

// The lanes of this warp that come to this place. The others end, or wait elsewhere.
unsigned int BlockRunner::active_lanes(Place place) {
  end_code();
  check_waits("__activemask()");
  current_->waits_for = 0;
  current_->active = place;
  parked_.push_back(current_);
  wait();
  return static_cast<unsigned int>(current_->outcome);
}

// Wake the lanes that wait at the first place of their warp. Lanes at a later place wait on: as on a GPU, all meet again
// after an `if`.
bool BlockRunner::release_active_masks() {
  const auto place_before = [](Place a, Place b) {
    return a.line < b.line || (a.line == b.line && a.column < b.column);
  };
  const auto way = [](const Fiber& fiber) {
    std::vector<Place> all = fiber.calls;
    all.push_back(fiber.active);
    return all;
  };
  const auto before = [&](const Fiber& a, const Fiber& b) {
    const std::vector<Place> one = way(a), other = way(b);
    return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end(), place_before);
  };
  const Fiber* first[kMaxThreadsPerBlock / 32] = {};
  unsigned int mask[kMaxThreadsPerBlock / 32] = {};
  for (Fiber* fiber : parked_) {
    const int id = fiber->id, w = id / 32;
    if (!fiber->active.line) continue;
    if (!mask[w] || before(*fiber, *first[w])) first[w] = fiber, mask[w] = 0;
    if (!before(*first[w], *fiber)) mask[w] |= 1u << id % 32;
  }
  waiting_.clear();
  for (Fiber* fiber : parked_) {
    const int id = fiber->id;
    const bool open = fiber->active.line && mask[id / 32] >> id % 32 & 1u;
    if (open) fiber->outcome = static_cast<int>(mask[id / 32]), fiber->active = {};
    (open ? ready_ : waiting_).push_back(fiber);
  }
  parked_.swap(waiting_);
  const bool any = !ready_.empty();
  resume_ready();
  return any;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ----------------------------------------------------------------------------- spreading the work

int max_threads() {
  if (RaceFinder::kOn) return 1;
  const int limit = thread_limit.load(std::memory_order_relaxed);
  return limit > 0 ? limit : multiprocessor_count();
}

// Call work(). An end of the process becomes an exception that names the kernel.
template <typename Work>
void guarded(const char* kernel, const Work& work) {
  std::string why;
  const bool left =
      caffe_with_way_out([&] { return work(), false; }, [&](const char* text) { return why = text, true; });
  if (!left) return;
  runner().end_code();
  runner().abandon();
  throw std::runtime_error(std::string("kernel ") + kernel + ": " + why);
}

// The host threads of a launch, which call work(first) ... work(count - 1). The first exception stops the rest.
class Team {
 public:
  using Work = std::function<void(int64_t)>;

  // Each thread has a stretch of its own, so that two do not touch the same new pages. Then it helps the others.
  Team(const char* kernel, const Work& work, int64_t first, int64_t count, int64_t shares)
      : kernel_(kernel), work_(work), share_(shares), block_dim_(blockDim), grid_dim_(gridDim) {
    for (int64_t s = 0; s < shares; ++s) {
      share_[s].next = first + (count - first) * s / shares;
      share_[s].end = first + (count - first) * (s + 1) / shares;
    }
  }

  // Work on this thread, for so many seconds at most. Returns the seconds.
  double walk(int64_t own, double most = 1e30);
  // Start a host thread. False: the system has no more.
  bool start(int64_t own);
  // A block waits for others: let one more thread run those that nobody has begun. False: there are as many threads as
  // the host can have, and all wait.
  bool help();
  // Wait for the threads, and throw what stopped them.
  void join();

  bool stopped() const { return stopped_; }
  bool helped() const { return !threads_.empty(); }
  int64_t next() const { return share_[0].next; }
  std::atomic<int64_t> at_grid_barrier{0}, grid_barriers{0};
  std::atomic<size_t> waiting{0};  // blocks whose threads all spin

 private:
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  bool all_begun() const {
    return std::all_of(share_.begin(), share_.end(), [](const Share& s) { return s.next >= s.end; });
  }

  const char* kernel_;
  const Work& work_;
  std::vector<Share> share_;
  const uint3 block_dim_, grid_dim_;
  std::atomic<bool> stopped_{false};
  std::exception_ptr thrown_;
  std::mutex mutex_;
  std::condition_variable all_ended_;
  size_t ended_ = 0;
  std::vector<std::thread> threads_;
};
thread_local Team* team = nullptr;

double Team::walk(int64_t own, double most) {
  blockDim = block_dim_;
  gridDim = grid_dim_;
  Team* const outer = team;
  team = this;
  const double start = now();
  double seconds = 0;
  signals::install();
  const int64_t shares = static_cast<int64_t>(share_.size());
  race_finder.take_turn();
  try {
    guarded(kernel_, [&] {
      for (int64_t turn = 0; turn < shares; ++turn) {
        Share& from = share_[(own + turn) % shares];
        for (int64_t i; seconds < most && !stopped_ &&
                        (i = from.next.fetch_add(1, std::memory_order_relaxed)) < from.end;) {
          work_(i);
          if (most < 1e30) seconds = now() - start;
          if (interrupted) caffe_leave("interrupted");
        }
      }
    });
  } catch (...) {
    in_kernel = false;
    if (!stopped_.exchange(true)) thrown_ = std::current_exception();
  }
  race_finder.end_turn();
  team = outer;
  return seconds;
}

bool Team::start(int64_t own) {
  sigset_t interrupt, before;  // Ctrl-C is for the thread that launches
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  bool started = true;
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    threads_.emplace_back([this, own] {
      walk(own);
      std::lock_guard<std::mutex> ended(mutex_);
      ++ended_;
      all_ended_.notify_one();
    });
  } catch (const std::system_error&) {
    started = false;  // fewer do the work
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

bool Team::help() {
  if (all_begun()) return true;
  size_t threads;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    threads = threads_.size();
  }
  if (threads < kMostBlocksAtOnce && start(0)) return true;
  return waiting < threads + 1;  // one of them may end
}

// After Ctrl-C the threads leave their kernel, which may never end.
void Team::join() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!all_ended_.wait_for(lock, std::chrono::milliseconds(50), [&] { return ended_ == threads_.size(); }))
    for (std::thread& thread : threads_)
      if (interrupted) pthread_kill(thread.native_handle(), kNudge);
  lock.unlock();
  for (std::thread& thread : threads_) thread.join();
  if (thrown_) std::rethrow_exception(thrown_);
}

// One call of work(0), whose threads wait for no other call. It needs no team, and no clock.
template <typename Work>
void run_alone(const char* kernel, const Work& work) {
  guarded(kernel, [&] {
    work(0);
    if (interrupted) caffe_leave("interrupted");
  });
}

// Call work(0) ... work(count - 1). The time of the first calls decides whether other host threads help.
void spread(const char* kernel, int64_t count, const Team::Work& work) {
  const int threads = max_threads();
  Team first(kernel, work, 0, count, 1);
  const double seconds = first.walk(0, threads > 1 ? kThreadPaysOff / 4 : 1e30);
  const int64_t done = std::min(first.next(), count);
  if (done == count || first.stopped() || first.helped()) {
    if (!first.stopped()) first.walk(0);
    return first.join();
  }
  const double left = seconds / done * (count - done);
  const int64_t useful =
      std::min<int64_t>({threads, count - done, 1 + static_cast<int64_t>(left / kThreadPaysOff)});
  Team rest(kernel, work, done, count, std::max<int64_t>(1, useful));
  for (int64_t s = 1; s < useful && rest.start(s);) ++s;
  rest.walk(0);
  rest.join();
}

// This thread of the kernel waits for another one, so the others run.
void BlockRunner::spin() {
  if (!running_ || !in_kernel) return;
  end_code();
  spinning_.push_back(current_);
  park();
  begin_code();
}

// Let another block run, and the other threads of this one.
void BlockRunner::change() {
  if (!running_ || !in_kernel || changes_left <= 0) return;
  --changes_left;
  end_code();
  if (team) team->help();
  race_finder.end_turn();
  std::this_thread::sleep_for(std::chrono::microseconds(100));  // a host thread asks for its turn each 50
  race_finder.take_turn();
  begin_code();
  spin();
}

bool BlockRunner::resume_spinning() {
  if (spinning_.empty()) return false;
  std::vector<Fiber*> turn;
  turn.swap(spinning_);
  for (Fiber* fiber : turn) {
    if (thrown_) break;
    resume(*fiber);
  }
  // Since the last call, not only during this one: a barrier opens between two calls.
  if (progress_ != seen_progress_)
    goes_on();
  else
    stalled();
  seen_progress_ = progress_;
  return true;
}

// All threads of the block spin, or wait for those that do.
void BlockRunner::stalled() {
  if (interrupted) caffe_leave("interrupted");
  if (team && team->stopped()) throw std::runtime_error("stopped");  // another block has failed
  const double time = now();
  if (!stalled_since_) stalled_since_ = time;
  const double seconds = time - stalled_since_;
  if (seconds < kHelpAfter) return std::this_thread::yield();
  if (team && !waits_) waits_ = true, ++team->waiting;
  if (team && !team->help() && seconds > kFullAfter)
    fail(*kernel_, "its blocks wait for each other, and the host runs no more than " +
                       std::to_string(kMostBlocksAtOnce) + " at once");
  if (seconds > kLostAfter)
    fail(*kernel_, "all threads of a block have waited in loops for " +
                       std::to_string(static_cast<int>(kLostAfter)) + " s, and nobody ends their waiting");
  race_finder.end_turn();
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  race_finder.take_turn();
}

void BlockRunner::goes_on() {
  stalled_since_ = 0;
  if (waits_ && team) --team->waiting;
  waits_ = false;
}

// Wait for all blocks of the grid. Thread 0 waits for its block.
void BlockRunner::grid_barrier(Place place, const void* caller) {
  if (!kernel_->launch.cooperative || !team)
    fail(*kernel_, "this_grid().sync() at " + text_of(place) +
                       " needs a cooperative launch (cudaLaunchCooperativeKernel)");
  block_barrier(0, place, caller);
  if (current_->id == 0) {
    const int64_t blocks = int64_t(gridDim.x) * gridDim.y * gridDim.z, barrier = team->grid_barriers;
    const bool comes_last = ++team->at_grid_barrier == blocks;
    if (comes_last) {
      race_finder.grid_barrier(true);
      team->at_grid_barrier = 0;
      ++team->grid_barriers;
    } else {
      end_code();
      team->help();
      begin_code();
      while (team->grid_barriers == barrier) spin();
    }
    if (!comes_last) race_finder.grid_barrier(false);
  }
  block_barrier(0, place, caller);
}

}  // namespace

// --------------------------------------------------------------------------------- what kernels call

int multiprocessor_count() {
  static const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return cores;
}

cudaError_t last_error(bool clear) {
  RaceFinder::asked_for_errors();
  const cudaError_t error = pending_error;
  if (clear) pending_error = cudaSuccess;
  return error;
}

void* make_memory(size_t bytes, MemoryKind kind) { return Allocations::all().make(bytes, kind); }
void memory_known(const void* memory, size_t bytes, bool is_known) {
  Allocations::all().known(memory, bytes, is_known);
}
int memory_kind(const void* memory) { return Allocations::all().kind_of(memory); }
cudaError_t refused(cudaError_t error) { return pending_error = error; }
cudaError_t free_memory(void* memory, bool of_host) {
  if (!memory) return cudaSuccess;
  if (!Allocations::all().free(memory, of_host)) return pending_error = cudaErrorInvalidValue;
  memory_freed(memory);
  return cudaSuccess;
}

void trap() {
  caffe_leave("a kernel called __trap()");
  throw std::runtime_error("__trap() was called, and not by a kernel");
}

void refuse(const char* why) {
  caffe_leave("%s", why);
  throw std::runtime_error(why);
}

bool is_too_much_shared(int bytes) {
  const bool wrong = bytes < 0 || bytes > kMaxSharedBytes;
  if (wrong) pending_error = cudaErrorInvalidValue;
  return wrong;
}

cudaError_t allow_shared_bytes(int bytes) {
  if (is_too_much_shared(bytes)) return cudaErrorInvalidValue;
  size_t limit = shared_limit;
  while (limit < static_cast<size_t>(bytes) && !shared_limit.compare_exchange_weak(limit, bytes)) continue;
  return cudaSuccess;
}

static const char* const kLostLaunch =
    "a kernel was launched that is not rewritten for the host: include its header by a path relative to the "
    "source, or to a folder of include_dirs";

const char* lost_launch() { return next_launch.pending ? kLostLaunch : nullptr; }

// "2048 threads in a block, at most 1024": what the last refused launch asked for.
thread_local char refusal[160] = "";

const char* why_refused() { return refusal; }

static void refuse(dim3 grid, dim3 block, uint64_t threads) {
  const auto say = [&](const char* text, auto... values) {
    snprintf(refusal, sizeof refusal, text, values...);
  };
  const char* invalid = "invalid configuration argument: ";
  if (!grid.x || !grid.y || !grid.z)
    say("%sa grid of %u x %u x %u blocks", invalid, grid.x, grid.y, grid.z);
  else if (!threads)
    say("%sa block of %u x %u x %u threads", invalid, block.x, block.y, block.z);
  else if (threads > kMaxThreadsPerBlock)
    say("%s%llu threads in a block, at most %d", invalid, static_cast<unsigned long long>(threads),
        static_cast<int>(kMaxThreadsPerBlock));
  else if (block.z > 64)
    say("%s%u threads along a block's z, at most 64", invalid, block.z);
  else
    say("%sa grid of %u x %u x %u blocks, at most 2147483647 x 65535 x 65535", invalid, grid.x, grid.y,
        grid.z);
}

Configured configure(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t, bool cooperative) {
  if (std::exchange(next_launch.pending, false)) throw std::runtime_error(kLostLaunch);
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  next_launch.grid = grid;
  next_launch.block = block;
  next_launch.shared_bytes = shared_bytes;
  next_launch.pending = true;
  next_launch.cooperative = cooperative;
  next_launch.caller = __builtin_return_address(0);
  next_launch.refused = !grid.x || !grid.y || !grid.z || !threads || threads > kMaxThreadsPerBlock ||
                        block.z > 64 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535;
  if (next_launch.refused) refuse(grid, block, threads);
  return {std::uncaught_exceptions()};
}

Configured::~Configured() {
  if (std::uncaught_exceptions() > exceptions) next_launch.pending = false;
}

namespace {

// The kernels' own limits, by the functions that run them.
std::mutex limits_lock;
std::map<const void*, size_t> limits;
thread_local int allowed = -1;  // by the Allowing that lives

bool is_allowed(const void* kernel, size_t bytes) {
  if (bytes <= shared_limit) return true;
  const std::lock_guard<std::mutex> lock(limits_lock);
  const auto own = limits.find(kernel);
  const size_t limit = std::max(shared_limit.load(), own == limits.end() ? 0 : own->second);
  if (bytes <= limit) return true;
  snprintf(refusal, sizeof refusal,
           "invalid configuration argument: %zu bytes of shared memory, at most %zu (%d after "
           "cudaFuncSetAttribute)",
           bytes, limit, kMaxSharedBytes);
  return false;
}

// Takes the configured launch. `run(grid, blocks, threads of a block)` runs it.
template <typename Run>
void launch(Kernel& kernel, size_t body_bytes, const Run& run) {
  const void* const itself = kernel.call ? reinterpret_cast<const void*>(kernel.call)
                                         : reinterpret_cast<const void*>(kernel.call_blocks);
  if (allowed >= 0) {
    const std::lock_guard<std::mutex> lock(limits_lock);
    limits[itself] = std::exchange(allowed, -1);
    return;
  }
  next_launch.pending = false;
  if (!kernel.launch.pending) fail(kernel, "called without a launch (<<<grid, block>>>)");
  if (kernel.launch.refused || !is_allowed(itself, kernel.launch.shared_bytes)) {
    race_finder.refused(kernel.name, why_refused(), kernel.launch.caller);
    pending_error = cudaErrorInvalidConfiguration;
    return;
  }
  const dim3 grid = kernel.launch.grid, block = kernel.launch.block;
  gridDim = grid;
  blockDim = block;
  struct Launched {
    void* const lock = caffe_unlock ? caffe_unlock() : nullptr;
    Launched() {
      race_finder.one_launch(true);
      interrupted = false, signals::launching = true;
    }
    ~Launched() {
      signals::launching = in_kernel = false;
      race_finder.end_launch();
      race_finder.one_launch(false);
      if (lock) caffe_relock(lock);
    }
  } launched;
  signals::install();
  const int64_t threads = int64_t(block.x) * block.y * block.z;
  race_finder.begin_launch(kernel.name, threads, kernel.body, body_bytes, kernel.launch.caller);
  changes_left = kChanges;
  run(grid, int64_t(grid.x) * grid.y * grid.z, threads);
}

}  // namespace

Allowing::Allowing(int bytes) { allowed = bytes; }
Allowing::~Allowing() { allowed = -1; }

void run_grid(Mode mode, const char* name, void (*call)(const void*), const void* body, size_t body_bytes) {
  Kernel kernel{name, call, body, next_launch};
  launch(kernel, body_bytes, [&](dim3 grid, int64_t blocks, int64_t threads) {
    if ((mode == kRange || mode == kStrides) && !RaceFinder::kOn) {
      // A grid that strides has any size.
      const int64_t least = mode == kStrides ? kStridesParts : 1;
      const int64_t count = std::max<int64_t>(least, blocks * threads / kPartElements);
      const auto run_part = [&](int64_t index) {
        part = Part{index, count};
        in_kernel = true;
        call(body);
        in_kernel = false;
      };
      return count == 1 ? run_alone(name, run_part) : spread(name, count, run_part);
    }
    spread(name, blocks, [&](int64_t number) {
      const int64_t b = backwards ? blocks - 1 - number : number;
      race_finder.watch_block(b, blocks);
      runner().run(
          kernel, uint3{static_cast<unsigned int>(b % grid.x), static_cast<unsigned int>(b / grid.x % grid.y),
                        static_cast<unsigned int>(b / grid.x / grid.y)});
    });
  });
}

void run_blocks(const char* name, void (*call)(const void*, int64_t, int64_t), const void* body) {
  Kernel kernel{name, nullptr, body, next_launch, call};
  launch(kernel, 0, [&](dim3, int64_t blocks, int64_t threads) {
    if (blocks == 1 || blocks * threads <= kBlocksThreads)
      return run_alone(name, [&](int64_t) { runner().run_blocks(kernel, 0, blocks); });
    const int64_t most = std::max(kBlocksThreads, blocks * threads / (kBlocksParts * max_threads()));
    const int64_t together = std::max<int64_t>(1, most / threads);
    spread(name, (blocks + together - 1) / together, [&](int64_t part) {
      runner().run_blocks(kernel, part * together, std::min(blocks, (part + 1) * together));
    });
  });
}

void run_warps(const char* name, void (*call_blocks)(const void*, int64_t, int64_t), const void* body,
               void (*call)(const void*), const void* threads, size_t threads_bytes) {
  if (const int bytes = allowed; bytes >= 0) {  // both may use this much shared memory
    run_grid(kThreads, name, call, threads, threads_bytes);
    allowed = bytes;
  }
  if (next_launch.block.x % 32 == 0 || allowed >= 0)
    run_blocks(name, call_blocks, body);
  else
    run_grid(kThreads, name, call, threads, threads_bytes);
}

void run_either(const char* name, int axes, void (*call)(const void*), const void* body,
                void (*call_blocks)(const void*, int64_t, int64_t), const void* blocks_body) {
  const dim3 grid = next_launch.grid, block = next_launch.block;
  const bool deep = grid.z * block.z != 1, high = grid.y * block.y != 1;
  if (deep || (high && axes < 2))
    run_blocks(name, call_blocks, blocks_body);
  else
    run_grid(kStrides, name, call, body, 0);
}

void* dynamic_shared_bytes() { return runner().shared_bytes(); }

void note_fault(int number, uintptr_t code, const void* memory) {
  if (!RaceFinder::kOn) return;
  char why[80] = "divides an integer by zero, or the quotient does not fit";
  const bool undefined = number == SIGILL || number == SIGTRAP;
  if (undefined)
    snprintf(why, sizeof why, "does what C++ does not define, such as a division by a constant zero");
  else if (number != SIGFPE)
    snprintf(why, sizeof why, "uses memory that is not there, at address %p", memory);
  race_finder.fault(number == SIGFPE ? reinterpret_cast<const void*>(code + 1) : nullptr, why);
}

int lane() {
  return static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) % 32;
}
int block_barrier(int predicate, Place place) {
  return runner().block_barrier(predicate, place, __builtin_return_address(0));
}
void warp_barrier(unsigned int mask) { runner().warp_barrier(mask, __builtin_return_address(0), true); }
unsigned int active_lanes(Place place) { return runner().active_lanes(place); }
void meet_lanes(const volatile void* memory, int line, int column) {
  if (runner().is_shared(const_cast<const void*>(memory))) runner().active_lanes({line, column});
}
void enter(Place call) { runner().enter(call); }
void leave() { runner().leave(); }
void grid_barrier(Place place) { runner().grid_barrier(place, __builtin_return_address(0)); }
bool is_cooperative() { return runner().is_cooperative(); }
void spin() { runner().spin(); }
#ifdef CAFFE_HOST_RACES
bool may_spin() {
  if (changing) runner().change();
  if (++spins % 1024 == 0) spin();
  return true;
}
bool may_wait() {
  may_spin();
  race_finder.waits(true);
  return true;
}
bool waited(bool is) {
  race_finder.waits(false);
  return is;
}
void memory_made(const void* memory, size_t bytes) { RaceFinder::made(memory, bytes); }
void memory_set(const void* memory, size_t bytes, const void* from) { RaceFinder::set(memory, bytes, from); }
void memory_freed(const void* memory) { RaceFinder::freed(memory); }
void host_waits() { RaceFinder::host_waits(__builtin_return_address(0)); }
void host_copies(const void* to, size_t bytes) {
  RaceFinder::host_copies(to, bytes, __builtin_return_address(0));
}
void* memcpy_watched(void* to, const void* from, size_t bytes) {
  race_finder.access(from, bytes, kRead, __builtin_return_address(0));
  race_finder.access(to, bytes, kWrite, __builtin_return_address(0));
  return memmove(to, from, bytes);
}
void* memset_watched(void* to, int byte, size_t bytes) {
  race_finder.access(to, bytes, kWrite, __builtin_return_address(0));
  return memset(to, byte, bytes);
}
BlockScope::BlockScope() { race_finder.block_scope(true); }
BlockScope::~BlockScope() { race_finder.block_scope(false); }
Constant::Constant(const void* memory, size_t bytes) { RaceFinder::constant(memory, bytes); }
#endif
void warp_together(unsigned int mask, void* own, WarpWork work, const char* what) {
  runner().warp_together(mask, own, work, what);
}
void async_copy(void* to, const void* from, size_t bytes, size_t given) {
  runner().copies().ask(static_cast<char*>(to), static_cast<const char*>(from), bytes, given,
                        __builtin_return_address(0));
}
void named_barrier(uint32_t number, uint32_t threads, bool waits) {
  runner().named_barrier(number, threads, waits, __builtin_return_address(0));
}
void async_commit() { runner().copies().commit(); }
void async_wait(int64_t groups_left) { runner().copies().wait(groups_left); }
[[noreturn]] void ptx_problem(const char* what) {
  throw std::runtime_error(std::string("inline PTX: ") + what);
}

// A shared address of 32 bits is the lower half of the pointer. Its upper half is that of the block's dynamic shared memory,
// or of this library's thread-local variables.
char* shared_pointer(uint32_t address) {
  BlockRunner& own = runner();
  char* const dynamic = static_cast<char*>(own.shared_bytes());
  const uint32_t offset = address - static_cast<uint32_t>(reinterpret_cast<uintptr_t>(dynamic));
  if (offset < own.shared_size()) return dynamic + offset;
  char* const own_variable = reinterpret_cast<char*>(&threadIdx);
  const int32_t distance =
      static_cast<int32_t>(address - static_cast<uint32_t>(reinterpret_cast<uintptr_t>(own_variable)));
  if (distance > -(1 << 20) && distance < 1 << 20) return own_variable + distance;
  return dynamic + static_cast<int32_t>(offset);  // outside, where the guard is
}
bool is_shared(const void* memory) { return runner().is_shared(memory); }
uint64_t warp_exchange(unsigned int mask, uint64_t bits, int source) {
  return runner().warp_exchange(mask, bits, source, __builtin_return_address(0));
}
unsigned int warp_ballot(unsigned int mask, int predicate) {
  return runner().warp_ballot(mask, predicate, __builtin_return_address(0));
}

}  // namespace cuda_host

#include "host_matrix.h"

// The functions by which kernels copy and set memory (COPIES in tools/make/link.py): host_signals.h knows that it is in one.
// The real ones are weak, because not each program that has this file is linked so.
#define CAFFE_COPIES(name, type)                                                                \
  extern "C" {                                                                                  \
  __attribute__((weak)) void* __real_##name(void* to, type what, size_t bytes);                 \
  __attribute__((visibility("hidden"))) void* __wrap_##name(void* to, type what, size_t bytes); \
  }                                                                                             \
  void* __wrap_##name(void* to, type what, size_t bytes) {                                      \
    if (!cuda_host::in_kernel) return __real_##name(to, what, bytes);                           \
    cuda_host::copying = true;                                                                  \
    __real_##name(to, what, bytes);                                                             \
    cuda_host::copying = false;                                                                 \
    return to;                                                                                  \
  }
CAFFE_COPIES(memcpy, const void*)
CAFFE_COPIES(memmove, const void*)
CAFFE_COPIES(memset, int)
#undef CAFFE_COPIES

#if defined(__SANITIZE_ADDRESS__)
// AddressSanitizer calls this before it reports: by whom, and where, for the judge (cuffi/judging/findings.py).
extern "C" void __asan_on_error() {
  if (!cuda_host::in_kernel) return;
  const uintptr_t at = reinterpret_cast<uintptr_t>(__asan_get_report_address());
  const size_t bytes = __asan_get_report_access_size();
  const char* const what = __asan_get_report_access_type() ? "writes" : "reads";
  const auto [begin, size] = cuda_host::Allocations::all().nearest(at);
  const bool is_near = begin && at + (1 << 20) > begin && at < begin + size + (1 << 20);
  fprintf(stderr, "JUDGE %s access: %s\t%s\t%zu\t%lld\t%zu\n",
          getenv("CAFFE_JUDGE") ? getenv("CAFFE_JUDGE") : "", cuda_host::runner().who().c_str(), what, bytes,
          is_near ? static_cast<long long>(at) - static_cast<long long>(begin) : 0LL,
          is_near ? size : size_t(0));
}
#endif

extern "C" void caffe_set_num_threads(int count) { cuda_host::thread_limit = count; }

const char* caffe_take_launch_problem() {
  cuda_host::RaceFinder::asked_for_errors();
  const cudaError_t error = std::exchange(cuda_host::pending_error, cudaSuccess);
  if (std::exchange(cuda_host::next_launch.pending, false)) return cuda_host::kLostLaunch;
  return error == cudaErrorInvalidConfiguration ? cuda_host::why_refused() : nullptr;
}

void caffe_watch_faults() { cuda_host::signals::install(); }
