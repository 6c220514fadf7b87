// A block of a kernel on one host thread: its threads run one after the other, each until it waits (host_launch.cpp). The
// barriers at which they wait are in host_barriers.h; waiting for another block is in host_waiting.h.
#pragma once

#include <link.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "host/cuda_runtime.h"
#include "host_copies.h"
#include "host_fibers.h"
#include "host_kernel.h"
#include "host_races.h"
#include "host_shared.h"

namespace cuda_host {
namespace {

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
  AsyncCopies& stores() { return current_->stores; }
  AsyncCopies& bulk_copies() { return bulk_; }
  void named_barrier(uint32_t number, uint32_t threads, bool waits, const void* caller);
  void enter(Place call) {
    if (current_) current_->calls.push_back(call);
  }
  void leave() {
    if (current_ && !current_->calls.empty()) current_->calls.pop_back();
  }
  void spin();
#ifdef CAFFE_HOST_RACES
  void change();
#endif
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
  AsyncCopies bulk_;  // that barriers wait for
  Fibers fibers_{&BlockRunner::entry};
  Fiber*& current_ = fibers_.current;
  std::vector<Fiber*>& ready_ = fibers_.ready;
  std::vector<Fiber*> parked_, spinning_;
  std::vector<Fiber*> waiting_;  // those that a barrier does not let go on
  std::exception_ptr thrown_;
  SharedMemory shared_;
  Variables variables_;
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
  fibers_.begin(kernel);
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
  bulk_.forget();
  for (int w = 0; w * 32 < total_; ++w) {
    const int lanes = total_ - w * 32;
    warps_[w].live = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
    std::fill_n(warps_[w].wait_for, 32, 0);
  }
  try {
    while (!thrown_ && finished_ < total_) {
      if (started_ < total_) {
        fibers_.resume(fibers_.fresh());
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
    fibers_.resume(fibers_.fresh());
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
  for (std::vector<Fiber*>* fibers : {&parked_, &spinning_}) fibers->clear();
  fibers_.forget();
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
    current_->stores.forget();
    current_->work = nullptr;
    current_->named = -1;
    begin_code();
    kernel_->call(kernel_->body);
    current_->stores.wait(-1);  // nobody must wait for their end
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
  Fiber* const fiber = self.current_;
  self.fibers_.arrived();
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
      self.fibers_.stopped = true;
    }
    self.fibers_.is_idle(fiber);
    self.fibers_.park();
  }
}

// Wait until the scheduler resumes this fibre.
void BlockRunner::wait() {
  fibers_.park();
  begin_code();
}

}  // namespace
}  // namespace cuda_host
