// The host launcher: runs a kernel's grid on the processor's cores.
//
// Blocks are spread over host threads. One host thread runs the threads of a block one after the other, in a plain
// loop. A thread that reaches a barrier is parked on its stack, and the loop goes on with the next thread on a new
// stack (a fibre). So a thread costs a function call, and a thread that waits also a stack, without knowing
// beforehand whether a kernel has barriers. As on a GPU, a thread that has returned does not count at barriers.
//
// Each launch starts its own host threads, if it is long enough for that. No thread pool stays alive, so processes
// that fork, such as a DataLoader's workers, are safe.
//
// An assert, an exit or a signal while a kernel runs ends only the launch, with an error (way_out.h, host_signals.h).
#undef _FORTIFY_SOURCE  // it reports a jump to another stack as an error
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "host/cuda_runtime.h"
#include "host_races.h"
#include "host_signals.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

// A library whose functions hold the interpreter's lock defines them: it gives the lock back during a launch, as Python
// goes on while a GPU works.
extern "C" {
__attribute__((weak, visibility("hidden"))) void* caffe_unlock();
__attribute__((weak, visibility("hidden"))) void caffe_relock(void* state);
}

__thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace cuda_host {

__thread Part part;
__thread volatile bool in_kernel = false, interrupted = false;
__thread const char* stack_guard = nullptr;

namespace {

constexpr int64_t kMaxThreadsPerBlock = 1024;
constexpr int kMaxSharedBytes = 227 * 1024;  // the most of a block on a Hopper GPU
constexpr int64_t kPartElements = 1 << 15;   // kRange: large beside a call, small enough to balance
constexpr double kThreadPaysOff = 100e-6;    // seconds of work for which one more host thread pays

struct Launch {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool pending = false, refused = false;
};
thread_local Launch next_launch;
thread_local cudaError_t pending_error = cudaSuccess;
#ifndef CAFFE_HOST_RACES
RaceFinder race_finder;  // of empty functions
#endif

std::atomic<int> thread_limit{0};             // 0: one per core
std::atomic<size_t> shared_limit{48 * 1024};  // more only after cudaFuncSetAttribute, as on a GPU

struct Kernel {
  const char* name;
  void (*call)(const void*);
  const void* body;
  Launch launch;
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
constexpr size_t kStacksBytes = kMaxThreadsPerBlock * kStackBytes;
constexpr uint64_t kCanary = 0x5afe57ac5afe57acu;  // at the end of each stack, to detect overflows

struct Fiber {
  ucontext_t start;
  bool started = false;
  jmp_buf here;  // where it waits
  char* stack = nullptr;
  uint3 thread{};              // the CUDA thread that runs here
  unsigned int waits_for = 0;  // the lanes of a warp barrier; 0: the block's barrier
  bool orders_memory = false;  // true for a __syncwarp(), false for a shuffle or a vote
  int outcome = 0;             // the result of the barrier
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
#endif
};

// The barrier of one warp. It is reset when a block starts.
struct Warp {
  unsigned int live = 0, arrived = 0;
  uint64_t published[32] = {};
};

// Runs one block at a time on this host thread.
class BlockRunner {
 public:
  ~BlockRunner() {
    if (stacks_) munmap(stacks_ - kGuardBytes, kGuardBytes + kStacksBytes);
  }

  void run(const Kernel& kernel, uint3 block);
  void abandon();
  int block_barrier(int predicate, Place place);
  void warp_barrier(unsigned int mask, bool orders_memory = false);
  uint64_t warp_exchange(unsigned int mask, uint64_t bits, int source, const void* caller);
  unsigned int warp_ballot(unsigned int mask, int predicate);
  unsigned int live_lanes() { return warp().live; }
  void* shared_bytes() { return shared_.get(); }

  // The number of a thread in its block: of this one, or of another.
  static int flat(uint3 thread = threadIdx) {
    return static_cast<int>((thread.z * blockDim.y + thread.y) * blockDim.x + thread.x);
  }

 private:
  void run_threads();
  void resume(Fiber& fiber);
  void park();
  void wait();
  void release_block_barrier();
  bool release_warp_barriers();
  Fiber& fresh_fiber();
  Fiber& new_fiber();
  Warp& warp() { return warps_[flat() / 32]; }
  static void entry();

  const Kernel* kernel_ = nullptr;
  int total_ = 0, started_ = 0, finished_ = 0;
  int at_barrier_ = 0, predicate_sum_ = 0;
  Place barrier_;  // where the first thread at the block's barrier waits
  Warp warps_[kMaxThreadsPerBlock / 32];
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> parked_, idle_;
  Fiber* current_ = nullptr;
  jmp_buf scheduler_;
  char* stacks_ = nullptr;
  std::exception_ptr thrown_;
  std::unique_ptr<char[]> shared_;
  size_t shared_capacity_ = 0;
#if defined(__SANITIZE_ADDRESS__)
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_stack_ = nullptr;
  size_t scheduler_stack_bytes_ = 0;
#endif
};

thread_local BlockRunner runner;

void BlockRunner::run(const Kernel& kernel, uint3 block) {
  kernel_ = &kernel;
  blockIdx = block;
  race_finder.begin_block((int64_t(block.z) * gridDim.y + block.y) * gridDim.x + block.x);
  total_ = static_cast<int>(blockDim.x * blockDim.y * blockDim.z);
  started_ = finished_ = at_barrier_ = predicate_sum_ = 0;
  thrown_ = nullptr;
  for (int w = 0; w * 32 < total_; ++w) {
    const int lanes = total_ - w * 32;
    warps_[w].live = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
    warps_[w].arrived = 0;
  }
  if (kernel.launch.shared_bytes > shared_capacity_) {
    shared_capacity_ = kernel.launch.shared_bytes;
    shared_.reset(new char[shared_capacity_ + 64]);
    race_finder.dynamic_shared_is(shared_.get(), shared_capacity_ + 64);
  }
  try {
    while (!thrown_ && finished_ < total_) {
      if (started_ < total_) {
        resume(fresh_fiber());
      } else if (at_barrier_ == total_ - finished_) {
        release_block_barrier();
      } else if (!release_warp_barriers()) {
        fail(kernel, "threads of a block wait for each other at different barriers");
      }
    }
    if (thrown_) std::rethrow_exception(thrown_);
  } catch (...) {
    abandon();
    throw;
  }
}

// Drop the block's threads, wherever they are. Later fibres reuse their stacks.
void BlockRunner::abandon() {
  parked_.clear();
  idle_.clear();
  fibers_.clear();
}

// From here on this host thread runs the kernel's own code ...
void begin_code() {
  race_finder.run_as(BlockRunner::flat());
  in_kernel = true;
}
// ... and from here on the launcher's.
void end_code() {
  in_kernel = false;
  race_finder.pause();
}

// The loop over the block's threads. It changes to another fibre when a thread waits.
void BlockRunner::run_threads() {
  while (started_ < total_) {
    const unsigned int t = static_cast<unsigned int>(started_++);
    threadIdx = uint3{t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    current_->thread = threadIdx;
    begin_code();
    kernel_->call(kernel_->body);
    end_code();
    threadIdx = current_->thread;
    const int id = flat();
    warps_[id / 32].live &= ~(1u << (id % 32));
    ++finished_;
    if (thrown_) return;
  }
}

void BlockRunner::entry() {
  BlockRunner& self = runner;
  Fiber* fiber = self.current_;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fiber->fake_stack, &self.scheduler_stack_, &self.scheduler_stack_bytes_);
#endif
  for (;;) {  // a fibre is used again and again
    try {
      self.run_threads();
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
  fiber.stack = stacks_ + (fibers_.size() - 1) * kStackBytes;
  *reinterpret_cast<uint64_t*>(fiber.stack) = kCanary;
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = fiber.stack;
  fiber.start.uc_stack.ss_size = kStackBytes;
  fiber.start.uc_link = nullptr;
  makecontext(&fiber.start, &BlockRunner::entry, 0);
  return fiber;
}

void BlockRunner::resume(Fiber& fiber) {
  current_ = &fiber;
  threadIdx = fiber.thread;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&scheduler_fake_stack_, fiber.stack, kStackBytes);
#endif
  // swapcontext would make a system call for the signal mask at each barrier of each thread.
  if (!_setjmp(scheduler_)) {
    if (fiber.started) _longjmp(fiber.here, 1);
    fiber.started = true;
    setcontext(&fiber.start);
  }
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(scheduler_fake_stack_, nullptr, nullptr);
#endif
  if (*reinterpret_cast<uint64_t*>(fiber.stack) != kCanary)
    fail(*kernel_, "a thread used more than 640 KiB of stack between two barriers");
}

void BlockRunner::park() {
  Fiber* fiber = current_;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fiber->fake_stack, scheduler_stack_, scheduler_stack_bytes_);
#endif
  if (!_setjmp(fiber->here)) _longjmp(scheduler_, 1);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fiber->fake_stack, &scheduler_stack_, &scheduler_stack_bytes_);
#endif
}

// Wait until the scheduler resumes this fibre.
void BlockRunner::wait() {
  park();
  begin_code();
}

int BlockRunner::block_barrier(int predicate, Place place) {
  end_code();
  Fiber* fiber = current_;
  if (at_barrier_++ == 0) barrier_ = place;
  if (place.line != barrier_.line || place.column != barrier_.column)
    fail(*kernel_, "threads of a block wait at different barriers, at " + text_of(barrier_) + " and at " +
                       text_of(place) + "; all must come to the same __syncthreads()");
  predicate_sum_ += predicate;
  fiber->waits_for = 0;
  parked_.push_back(fiber);
  wait();
  return fiber->outcome;
}

void BlockRunner::release_block_barrier() {
  std::vector<Fiber*> waiting;
  waiting.swap(parked_);
  for (Fiber* fiber : waiting) fiber->outcome = predicate_sum_;
  at_barrier_ = predicate_sum_ = 0;
  race_finder.block_barrier();
  for (Fiber* fiber : waiting) {
    if (thrown_) return;
    resume(*fiber);
  }
}

void BlockRunner::warp_barrier(unsigned int mask, bool orders_memory) {
  end_code();
  Warp& own = warp();
  own.arrived |= 1u << (flat() % 32);
  current_->waits_for = mask;
  current_->orders_memory = orders_memory;
  parked_.push_back(current_);
  wait();
}

// Wake the threads of a warp if all lanes that they wait for have arrived or returned.
bool BlockRunner::release_warp_barriers() {
  std::vector<Fiber*> ready, waiting;
  for (Fiber* fiber : parked_) {
    const int id = flat(fiber->thread);
    const Warp& its = warps_[id / 32];
    const bool open =
        fiber->waits_for && (its.arrived & its.live & fiber->waits_for) == (its.live & fiber->waits_for);
    (open ? ready : waiting).push_back(fiber);
  }
  parked_.swap(waiting);
  race_finder.begin_warp_barrier();
  for (Fiber* fiber : ready) {
    const int id = flat(fiber->thread);
    warps_[id / 32].arrived &= ~(1u << (id % 32));
    if (fiber->orders_memory) race_finder.warp_barrier(id, fiber->waits_for);
  }
  for (Fiber* fiber : ready) {
    if (thrown_) break;
    resume(*fiber);
  }
  return !ready.empty();
}

uint64_t BlockRunner::warp_exchange(unsigned int mask, uint64_t bits, int source, const void* caller) {
  Warp& own = warp();
  own.published[flat() % 32] = bits;
  warp_barrier(mask);
  // In CUDA the value of a lane that does not take part is undefined. Here it is the thread's own.
  const bool there = (mask & own.live) >> (source & 31) & 1u;
  const uint64_t result = there ? own.published[source & 31] : bits;
  if (!there) race_finder.read_from_no_lane(source & 31, caller);
  warp_barrier(mask);  // nobody may publish again before all have read
  return result;
}

unsigned int BlockRunner::warp_ballot(unsigned int mask, int predicate) {
  Warp& own = warp();
  own.published[flat() % 32] = predicate != 0;
  warp_barrier(mask);
  unsigned int votes = 0;
  for (int lane = 0; lane < 32; ++lane)
    if ((mask & own.live) >> lane & 1u) votes |= static_cast<unsigned int>(own.published[lane]) << lane;
  warp_barrier(mask);
  return votes;
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
  end_code();
  runner.abandon();
  throw std::runtime_error(std::string("kernel ") + kernel + ": " + why);
}

// The helpers of a launch: host threads that call walk(1), walk(2), ...
class Helpers {
 public:
  template <typename Walk>
  Helpers(int64_t shares, const Walk& walk) {
    sigset_t interrupt, before;  // Ctrl-C is for the thread that launches
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    for (int64_t s = 1; s < shares; ++s) {
      try {
        threads_.emplace_back([this, &walk, s] {
          walk(s);
          std::lock_guard<std::mutex> lock(mutex_);
          if (++ended_ == threads_.size()) all_ended_.notify_one();
        });
      } catch (const std::system_error&) {
        break;  // the system has no more threads, so fewer do the work
      }
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  // Waits for them. After Ctrl-C they leave their kernel, which may never end.
  ~Helpers() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (
        !all_ended_.wait_for(lock, std::chrono::milliseconds(50), [&] { return ended_ == threads_.size(); }))
      for (std::thread& thread : threads_)
        if (interrupted) pthread_kill(thread.native_handle(), kNudge);
    lock.unlock();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_ended_;
  size_t ended_ = 0;
  std::vector<std::thread> threads_;
};

// Call work(first) ... work(count - 1) on so many host threads. The first exception stops the rest, and is thrown here.
template <typename Work>
void share_out(const char* kernel, int64_t first, int64_t count, int64_t shares, const Work& work) {
  // Each thread has a stretch of its own, so that two do not touch the same new pages. Then it helps the others.
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  std::vector<Share> share(shares);
  for (int64_t s = 0; s < shares; ++s) {
    share[s].next = first + (count - first) * s / shares;
    share[s].end = first + (count - first) * (s + 1) / shares;
  }
  std::exception_ptr thrown;
  std::atomic<bool> threw{false};
  const uint3 block_dim = blockDim, grid_dim = gridDim;
  const auto walk = [&](int64_t own) {
    blockDim = block_dim;
    gridDim = grid_dim;
    signals::install();
    try {
      guarded(kernel, [&] {
        for (int64_t turn = 0; turn < shares; ++turn) {
          Share& from = share[(own + turn) % shares];
          for (int64_t i; !threw && (i = from.next.fetch_add(1, std::memory_order_relaxed)) < from.end;) {
            work(i);
            if (interrupted) caffe_leave("interrupted");
          }
        }
      });
    } catch (...) {
      in_kernel = false;
      if (!threw.exchange(true)) thrown = std::current_exception();
    }
  };
  if (shares > 1) {
    const Helpers helpers(shares, walk);
    walk(0);
  } else {
    walk(0);
  }
  if (thrown) std::rethrow_exception(thrown);
}

// Call work(0) ... work(count - 1). The time of the first calls decides whether other host threads help.
template <typename Work>
void spread(const char* kernel, int64_t count, const Work& work) {
  using Clock = std::chrono::steady_clock;
  const int threads = max_threads();
  int64_t first = 0;
  double seconds = 0;
  if (threads > 1) {  // measure a few calls, because the first one may be slow for other reasons
    const auto start = Clock::now();
    guarded(kernel, [&] {
      for (; first < count && seconds < kThreadPaysOff / 4; ++first) {
        work(first);
        seconds = std::chrono::duration<double>(Clock::now() - start).count();
      }
    });
  }
  const double left = first ? seconds / first * (count - first) : 0;
  const int64_t useful =
      std::min<int64_t>({threads, count - first, 1 + static_cast<int64_t>(left / kThreadPaysOff)});
  share_out(kernel, first, count, std::max<int64_t>(1, useful), work);
}

}  // namespace

// --------------------------------------------------------------------------------- what kernels call

int multiprocessor_count() {
  static const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return cores;
}

cudaError_t last_error(bool clear) {
  const cudaError_t error = pending_error;
  if (clear) pending_error = cudaSuccess;
  return error;
}

void trap() {
  caffe_leave("a kernel called __trap()");
  throw std::runtime_error("__trap() was called, and not by a kernel");
}

cudaError_t allow_shared_bytes(int bytes) {
  if (bytes < 0 || bytes > kMaxSharedBytes) return pending_error = cudaErrorInvalidValue;
  size_t limit = shared_limit;
  while (limit < static_cast<size_t>(bytes) && !shared_limit.compare_exchange_weak(limit, bytes)) continue;
  return cudaSuccess;
}

void configure(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t) {
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  next_launch.grid = grid;
  next_launch.block = block;
  next_launch.shared_bytes = shared_bytes;
  next_launch.pending = true;
  next_launch.refused = !grid.x || !grid.y || !grid.z || !threads || threads > kMaxThreadsPerBlock ||
                        block.z > 64 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 ||
                        shared_bytes > shared_limit;
}

void run_grid(Mode mode, const char* name, void (*call)(const void*), const void* body, size_t body_bytes) {
  Kernel kernel{name, call, body, next_launch};
  next_launch.pending = false;
  if (!kernel.launch.pending) fail(kernel, "called without a launch (<<<grid, block>>>)");
  if (kernel.launch.refused) {
    pending_error = cudaErrorInvalidConfiguration;
    return;
  }
  const dim3 grid = kernel.launch.grid, block = kernel.launch.block;
  gridDim = grid;
  blockDim = block;
  const int64_t blocks = int64_t(grid.x) * grid.y * grid.z;
  struct Launched {
    void* const lock = caffe_unlock ? caffe_unlock() : nullptr;
    Launched() { interrupted = false, signals::launching = true; }
    ~Launched() {
      signals::launching = in_kernel = false;
      race_finder.end_launch();
      if (lock) caffe_relock(lock);
    }
  } launched;
  signals::install();
  race_finder.begin_launch(name, int64_t(block.x) * block.y * block.z, body, body_bytes);
  if (mode == kRange && !RaceFinder::kOn) {
    const int64_t threads = blocks * block.x * block.y * block.z;
    const int64_t count = std::max<int64_t>(1, threads / kPartElements);
    spread(name, count, [&](int64_t index) {
      part = Part{index, count};
      in_kernel = true;
      call(body);
      in_kernel = false;
    });
  } else {
    spread(name, blocks, [&](int64_t b) {
      runner.run(kernel,
                 uint3{static_cast<unsigned int>(b % grid.x), static_cast<unsigned int>(b / grid.x % grid.y),
                       static_cast<unsigned int>(b / grid.x / grid.y)});
    });
  }
}

void* dynamic_shared_bytes() {
  // Aligned to 64 bytes.
  return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(runner.shared_bytes()) + 63) & ~uintptr_t(63));
}

int lane() { return BlockRunner::flat() % 32; }
int block_barrier(int predicate, Place place) { return runner.block_barrier(predicate, place); }
void warp_barrier(unsigned int mask) { runner.warp_barrier(mask, true); }
unsigned int live_lanes() { return runner.live_lanes(); }
uint64_t warp_exchange(unsigned int mask, uint64_t bits, int source) {
  return runner.warp_exchange(mask, bits, source, __builtin_return_address(0));
}
unsigned int warp_ballot(unsigned int mask, int predicate) { return runner.warp_ballot(mask, predicate); }

}  // namespace cuda_host

extern "C" void caffe_set_num_threads(int count) { cuda_host::thread_limit = count; }
