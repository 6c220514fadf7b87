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
#include <algorithm>
#include <atomic>
#include <climits>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "host/cuda_runtime.h"
#include "host_barriers.h"
#include "host_block.h"
#include "host_kernel.h"
#include "host_memory.h"
#include "host_races.h"
#include "host_sample.h"
#include "host_signals.h"
#include "host_team.h"
#include "host_waiting.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
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

void trap(const char* name) {
  caffe_leave("a kernel called %s()", name);
  throw std::runtime_error(std::string(name) + "() was called, and not by a kernel");
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
thread_local char refusal[240] = "";

const char* why_refused() { return refusal; }

static const char* axis_of_0(dim3 size) { return !size.x ? "x" : !size.y ? "y" : "z"; }

static void refuse(dim3 grid, dim3 block, uint64_t threads) {
  const auto say = [&](const char* text, auto... values) {
    snprintf(refusal, sizeof refusal, text, values...);
  };
  const char* invalid = "invalid configuration argument: ";
  if (!grid.x || !grid.y || !grid.z)
    say("%sa grid of %u x %u x %u blocks: its %s is 0: give at least 1", invalid, grid.x, grid.y, grid.z,
        axis_of_0(grid));
  else if (!threads)
    say("%sa block of %u x %u x %u threads: its %s is 0: give at least 1", invalid, block.x, block.y, block.z,
        axis_of_0(block));
  else if (threads > kMaxThreadsPerBlock)
    say("%s%llu threads in a block, at most %d", invalid, static_cast<unsigned long long>(threads),
        static_cast<int>(kMaxThreadsPerBlock));
  else if (block.z > 64)
    say("%s%u threads along a block's z, at most 64", invalid, block.z);
  else
    say("%sa grid of %u x %u x %u blocks, at most 2147483647 x 65535 x 65535: its %s is too large: %s",
        invalid, grid.x, grid.y, grid.z,
        grid.x > 0x7fffffffu ? "x"
        : grid.y > 65535     ? "y"
                             : "z",
        grid.x > 0x7fffffffu ? "was a negative number given?" : "the largest axis belongs into x");
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
      Sample::begins(1);
    }
    ~Launched() {
      signals::launching = in_kernel = false;
      Sample::begins(-1);
      race_finder.end_launch();
      race_finder.one_launch(false);
      if (lock) caffe_relock(lock);
    }
  } launched;
  signals::install();
  const int64_t threads = int64_t(block.x) * block.y * block.z;
  race_finder.begin_launch(kernel.name, threads, kernel.body, body_bytes, kernel.launch.caller);
  changes_left = kChanges;
  const int64_t blocks = int64_t(grid.x) * grid.y * grid.z;
  if (idle) return;
  run(grid, blocks, threads);
  race_finder.pause();
  if (!kernel.launch.cooperative) Sample::now().over(kernel.name, blocks);
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
      if (!kernel.launch.cooperative && !Sample::now().has(b, blocks)) return;
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
      for (int64_t b = part * together, end = std::min(blocks, b + together), next; b < end; b = next) {
        next = Sample::now().all(blocks) ? end : b + 1;
        if (Sample::now().has(b, blocks)) runner().run_blocks(kernel, b, next);
      }
    });
  });
}

void run_warps(const char* name, void (*call_blocks)(const void*, int64_t, int64_t), const void* body,
               void (*call)(const void*), const void* threads, size_t threads_bytes) {
  if (const int bytes = allowed; bytes >= 0) {  // both may use this much shared memory
    run_grid(kThreads, name, call, threads, threads_bytes);
    allowed = bytes;
  }
  // The loops count the threads along x in int.
  const bool is_small = uint64_t(next_launch.grid.x) * next_launch.block.x <= INT_MAX;
  if ((next_launch.block.x % 32 == 0 && is_small) || allowed >= 0)
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
void memory_filled(const void* from) { RaceFinder::filled(from); }
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
void bulk_copy(void* to, const void* from, size_t bytes, const void* barrier) {
  runner().bulk_copies().ask(static_cast<char*>(to), static_cast<const char*>(from), bytes, bytes,
                             __builtin_return_address(0), barrier);
}
size_t bulk_done(const void* barrier) { return runner().bulk_copies().wait_of(barrier); }
void bulk_store(void* to, const void* from, size_t bytes) {
  runner().stores().ask(static_cast<char*>(to), static_cast<const char*>(from), bytes, bytes,
                        __builtin_return_address(0));
}
void bulk_commit() { runner().stores().commit(); }
void bulk_wait(int64_t groups_left) { runner().stores().wait(groups_left); }
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
