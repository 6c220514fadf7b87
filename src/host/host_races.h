// The race finder. Two threads of one launch race if both access an element, one of them writes it, and
// nothing puts the two accesses in order. Built in by SANITIZE=races (`make sanitize`, `make verify`). Else
// all calls below are empty.
//
// The compiler inserts a function call before each memory access of the kernels' code (-fsanitize=thread). These
// functions are at the end of this file. A shadow of the memory remembers for each element which thread last wrote and
// read it, and when. Time counts barriers. An access comes after an earlier one of
//
//   a thread of its block, if a __syncthreads() lies between them;
//   a thread of its warp, also if a __syncwarp() with both lanes in its mask lies between them;
//   a thread of another block, if that thread then called __threadfence() and an atomic operation, and this one has
//   since used an atomic operation on the same memory. (Blocks find out in this way which one is last.)
//
// So the result does not depend on the order in which the launcher runs the threads. These are no races: two atomic
// operations; a plain read of an element that others change by atomics, because atomicCAS loops begin so; two writes
// of the same value. Threads do not share their stacks, and blocks do not share shared memory.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef CAFFE_HOST_RACES

namespace cuda_host {
struct RaceFinder {
  static constexpr bool kOn = false;
  void begin_launch(const char*, int64_t, const void*, size_t) {}
  void end_launch() {}
  void stacks_are(const void*, size_t) {}
  void dynamic_shared_is(const void*, size_t) {}
  void begin_block(int64_t) {}
  void run_as(int) {}
  void pause() {}
  void block_barrier() {}
  void begin_warp_barrier() {}
  void warp_barrier(int, unsigned int) {}
  void fence() {}
  void read_from_no_lane(int, const void*) {}
};
}  // namespace cuda_host

#else

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace cuda_host {

class RaceFinder {
 public:
  static constexpr bool kOn = true;
  enum Kind { kRead, kWrite, kAtomicRead, kAtomic };

  void begin_launch(const char* kernel, int64_t block_threads, const void* body, size_t body_bytes) {
    kernel_ = kernel;
    block_threads_ = block_threads;
    pointers_.assign(body_bytes / sizeof(uintptr_t), 0);
    memcpy(pointers_.data(), body, pointers_.size() * sizeof(uintptr_t));
    std::sort(pointers_.begin(), pointers_.end());
    find_library();
    Log& log = log_of_now();
    if (!log.path.empty() && log.ran.insert(kernel_).second)
      if (FILE* file = fopen(log.path.c_str(), "a")) {
        fprintf(file, "ran\t%s\n", kernel_);
        fclose(file);
      }
  }
  void end_launch() {
    pause();
    pages_.clear();
    released_.clear();
    last_page_ = nullptr;
    now_ = 1;
  }
  void stacks_are(const void* memory, size_t bytes) { stacks_ = {memory, bytes}; }
  void dynamic_shared_is(const void* memory, size_t bytes) { dynamic_shared_ = {memory, bytes}; }

  void begin_block(int64_t block) {
    block_ = static_cast<uint32_t>(block);
    barrier_ = 0;
    block_acquired_ = {};
    threads_.clear();
    threads_.resize(block_threads_);
    rows_.assign((block_threads_ + 31) / 32 * 32, {});
  }
  // From here on accesses are made by this thread of the block ...
  void run_as(int thread) {
    thread_ = thread;
    running_ = true;
  }
  // ... and from here on by the launcher.
  void pause() {
    // First, because a report uses string functions, of which the linker may have kept an instrumented copy.
    running_ = false;
    settle();
  }

  void block_barrier() {
    barrier_ = ++now_;
    for (Thread& thread : threads_) {
      if (thread.acquired) block_acquired_.join(*thread.acquired);
      thread.acquired.reset();
    }
  }
  void begin_warp_barrier() { ++now_; }
  // Everything that the lanes of `mask` did before comes before what this thread does next.
  void warp_barrier(int thread, unsigned int mask) {
    const int first = thread / 32 * 32;
    Row& own = rows_[thread];
    for (int lane = 0; lane < 32; ++lane) {
      if (!(mask >> lane & 1u) || first + lane >= block_threads_) continue;
      for (int other = 0; other < 32; ++other)
        own.until[other] = std::max(own.until[other], rows_[first + lane].until[other]);
    }
    for (int lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1u) own.until[lane] = now_;
  }
  void fence() {
    if (running_) threads_[thread_].fence = ++now_;
  }

  // A shuffle of this thread, called at `pc`, reads from a lane that takes no part in it.
  void read_from_no_lane(int lane, const void* pc) {
    pause();
    const uint32_t place = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pc) - library_start_);
    if (!is_new(place, place)) return;
    write_line("lane\t%s\t%s\t%#x\t%u\t%lld\t%d\n", library_.c_str(), kernel_, place - 1, own_number(),
               static_cast<long long>(block_threads_), lane);
  }

  void access(const void* memory, size_t bytes, Kind kind, const void* pc) {
    if (!running_ || stacks_.has(memory)) return;
    running_ = false;  // the functions of the standard library that are called here may be instrumented
    settle();
    if (kind >= kAtomicRead) synchronize(memory, kind);
    const uint32_t place = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pc) - library_start_);
    const bool shared = dynamic_shared_.has(memory) || static_shared_.has(memory);
    const Access own{memory, bytes, shared, kind, {own_number(), now_, place}};
    const uintptr_t begin = reinterpret_cast<uintptr_t>(memory), end = begin + bytes;
    bool told = false;
    for (uintptr_t at = begin; at < end;) {
      Page& page = page_of(at);
      while (page.grain > 1 && (at % page.grain || end - at < page.grain)) page.split();
      told = check(page.cells[at % kPageBytes / page.grain], own, told);
      at += page.grain;
    }
    running_ = true;
  }

 private:
  static constexpr uint32_t kNobody = 0xffffffffu;
  static constexpr size_t kPageBytes = 4096;
  // Per process. A kernel without atomics can race in every pair of threads.
  static constexpr size_t kMostReports = 100;

  struct Range {
    const void* memory = nullptr;
    size_t bytes = 0;
    bool has(const void* at) const {
      return reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(memory) < bytes;
    }
  };
  // Who accesses: the thread of the grid, the time, and the place in the code.
  struct Stamp {
    uint32_t thread = kNobody, time = 0, pc = 0;
  };
  struct Access {
    const void* memory;
    size_t bytes;
    bool shared;
    Kind kind;
    Stamp by;
  };
  struct Cell {
    Stamp write, atomic, reads[2];  // by the last two different threads
  };
  // The cells of kPageBytes of memory, one for each `grain` bytes. The grain is as fine as the accesses so far.
  struct Page {
    size_t grain = 8;
    std::vector<Cell> cells = std::vector<Cell>(kPageBytes / 8);
    void split() {
      std::vector<Cell> finer(cells.size() * 2);
      for (size_t i = 0; i < finer.size(); ++i) finer[i] = cells[i / 2];
      cells.swap(finer);
      grain /= 2;
    }
  };
  // What comes before a thread: everything until a time, by block and by thread.
  struct Clock {
    std::unordered_map<uint32_t, uint32_t> blocks, threads;
    void join(const Clock& other) {
      for (const auto& [block, time] : other.blocks) later(blocks[block], time);
      for (const auto& [thread, time] : other.threads) later(threads[thread], time);
    }
    static void later(uint32_t& mine, uint32_t time) { mine = std::max(mine, time); }
    static bool has(const std::unordered_map<uint32_t, uint32_t>& until, uint32_t who, uint32_t time) {
      const auto found = until.find(who);
      return found != until.end() && time < found->second;
    }
  };
  struct Thread {
    uint32_t fence = 0;
    std::unique_ptr<Clock> acquired;
  };
  struct Row {
    uint32_t until[32] = {};
  };
  // A write over another thread's write. It is a race only if it changes the value, which is known after it.
  struct Pending {
    Access write{};
    Stamp first;
    unsigned char before[16];
    size_t bytes() const { return std::min(write.bytes, sizeof before); }
  };

  uint32_t own_number() const { return static_cast<uint32_t>(block_ * block_threads_ + thread_); }

  bool ordered(const Stamp& before, bool shared) const {
    const uint32_t own = own_number();
    if (before.thread == kNobody || before.thread == own) return true;
    const uint32_t block = static_cast<uint32_t>(before.thread / block_threads_);
    if (block != block_) {
      if (shared) return true;  // shared memory of another block
    } else if (before.time < barrier_) {
      return true;
    } else {
      const int thread = static_cast<int>(before.thread % block_threads_);
      if (thread / 32 == thread_ / 32 && before.time < rows_[thread_].until[thread % 32]) return true;
    }
    const Clock* clocks[] = {&block_acquired_, threads_[thread_].acquired.get()};
    for (const Clock* clock : clocks) {
      if (clock && (Clock::has(clock->blocks, block, before.time) ||
                    Clock::has(clock->threads, before.thread, before.time)))
        return true;
    }
    return false;
  }

  // Note the access in a cell. Returns whether it has been told to race; one report is enough for all its cells.
  bool check(Cell& cell, const Access& own, bool told) {
    const auto tell = [&](const Stamp& before, const char* what) {
      if (told || ordered(before, own.shared)) return;
      report(what, before, own);
      told = true;
    };
    if (own.kind == kWrite) {
      for (const Stamp& read : cell.reads) tell(read, "read, then written");
      tell(cell.atomic, "changed atomically, then written");
      if (!told && !ordered(cell.write, own.shared)) {
        pending_.write = own;
        pending_.first = cell.write;
        memcpy(pending_.before, own.memory, pending_.bytes());
        told = true;
      }
      cell = Cell();
      cell.write = own.by;
    } else if (own.kind == kRead) {
      tell(cell.write, "written, then read");
      if (cell.reads[0].thread != own.by.thread) cell.reads[1] = cell.reads[0];
      cell.reads[0] = own.by;
    } else {
      tell(cell.write, "written, then changed atomically");
      if (own.kind == kAtomic) cell.atomic = own.by;
    }
    return told;
  }

  void settle() {
    const Access& own = pending_.write;
    if (!own.memory) return;
    if (memcmp(own.memory, pending_.before, pending_.bytes())) report("written twice", pending_.first, own);
    pending_.write.memory = nullptr;
  }

  // Publish and learn what came before, by an atomic operation on this memory.
  void synchronize(const void* memory, Kind kind) {
    Thread& own = threads_[thread_];
    const auto found = released_.find(memory);
    if (found != released_.end()) {
      if (!own.acquired) own.acquired.reset(new Clock);
      own.acquired->join(found->second);
    }
    if (!own.fence || kind == kAtomicRead) return;
    Clock& clock = released_[memory];
    clock.join(block_acquired_);
    if (own.acquired) clock.join(*own.acquired);
    Clock::later(clock.blocks[block_], std::min(barrier_, own.fence));
    Clock::later(clock.threads[own_number()], own.fence);
    const uint32_t first = own_number() - thread_ % 32;
    for (int lane = 0; lane < 32; ++lane)
      if (const uint32_t until = rows_[thread_].until[lane])
        Clock::later(clock.threads[first + lane], std::min(until, own.fence));
  }

  Page& page_of(uintptr_t at) {
    const uintptr_t number = at / kPageBytes;
    if (!last_page_ || number != last_number_) {
      last_page_ = &pages_[number];
      last_number_ = number;
    }
    return *last_page_;
  }

  // The address of this library, and of this thread's copy of its __shared__ variables, which are thread-local.
  void find_library() {
    Dl_info info;
    if (!library_start_ && dladdr(reinterpret_cast<const void*>(&find_static_shared), &info)) {
      library_ = info.dli_fname;
      library_start_ = reinterpret_cast<uintptr_t>(info.dli_fbase);
    }
    dl_iterate_phdr(&find_static_shared, this);
  }
  static int find_static_shared(dl_phdr_info* info, size_t, void* finder) {
    RaceFinder& self = *static_cast<RaceFinder*>(finder);
    if (info->dlpi_addr != self.library_start_) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data)
        self.static_shared_ = {info->dlpi_tls_data, info->dlpi_phdr[i].p_memsz};
    return 1;
  }

  // The reports so far, so that none is written twice.
  struct Log {
    std::string path;
    std::set<std::string> ran;
    std::set<std::tuple<std::string, uint32_t, uint32_t> > told;
  };
  static Log& log_of_now() {
    static Log log;
    const char* path = getenv("CAFFE_RACES");
    if (log.path != (path ? path : "")) {  // for another run
      log = Log();
      log.path = path ? path : "";
    }
    return log;
  }

  // Was nothing told of these two places in the code?
  bool is_new(uint32_t first, uint32_t second) {
    Log& log = log_of_now();
    return log.told.size() < kMostReports && log.told.emplace(kernel_, first, second).second;
  }

  // A line for tools/cases/races.py, which finds the source lines of places in the code.
  template <typename... Values>
  void write_line(const char* format, Values... values) {
    const std::string& path = log_of_now().path;
    FILE* file = path.empty() ? nullptr : fopen(path.c_str(), "a");
    fprintf(file ? file : stderr, format, values...);
    if (file) fclose(file);
  }

  void report(const char* what, const Stamp& first, const Access& second) {
    if (!is_new(first.pc, second.by.pc)) return;
    const uintptr_t at = reinterpret_cast<uintptr_t>(second.memory);
    const auto above = std::upper_bound(pointers_.begin(), pointers_.end(), at);
    // The kernel's pointer that is the next below.
    const uintptr_t base = above == pointers_.begin() ? 0 : above[-1];
    write_line("race\t%s\t%s\t%s\t%s\t%#x\t%#x\t%u\t%u\t%lld\t%lld\t%zu\n", library_.c_str(), kernel_, what,
               second.shared ? "shared" : "global", first.pc - 1, second.by.pc - 1, first.thread,
               second.by.thread, static_cast<long long>(block_threads_),
               second.shared ? -1LL : static_cast<long long>((at - base) / second.bytes), second.bytes);
  }

  bool running_ = false;
  const char* kernel_ = "";
  int64_t block_threads_ = 1;
  uint32_t block_ = 0, now_ = 1, barrier_ = 0;
  int thread_ = 0;
  std::string library_;
  uintptr_t library_start_ = 0, last_number_ = 0;
  Range stacks_, dynamic_shared_, static_shared_;
  std::vector<uintptr_t> pointers_;
  std::vector<Thread> threads_;
  std::vector<Row> rows_;
  Clock block_acquired_;
  std::unordered_map<const void*, Clock> released_;
  std::unordered_map<uintptr_t, Page> pages_;
  Page* last_page_ = nullptr;
  Pending pending_;
};

thread_local RaceFinder race_finder;

}  // namespace cuda_host

// ------------------------------------------------------------------------- what the compiler calls

#define CAFFE_RACES_ACCESS(kind, memory, bytes) \
  ::cuda_host::race_finder.access(memory, bytes, ::cuda_host::RaceFinder::kind, __builtin_return_address(0))
#define CAFFE_RACES_PLAIN(bytes)                                                                         \
  void __tsan_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kRead, memory, bytes); }                    \
  void __tsan_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }                  \
  void __tsan_unaligned_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kRead, memory, bytes); }          \
  void __tsan_unaligned_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }        \
  void __tsan_volatile_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kRead, memory, bytes); }           \
  void __tsan_volatile_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }         \
  void __tsan_unaligned_volatile_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kRead, memory, bytes); } \
  void __tsan_unaligned_volatile_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }
#define CAFFE_RACES_CHANGE(bits, type, name)                                  \
  type __tsan_atomic##bits##_##name(volatile type* memory, type value, int) { \
    CAFFE_RACES_ACCESS(kAtomic, const_cast<type*>(memory), sizeof(type));     \
    return __atomic_##name(memory, value, __ATOMIC_SEQ_CST);                  \
  }
#define CAFFE_RACES_EXCHANGE(bits, type, name)                                                             \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile type* memory, type* compare, type value, int, \
                                                    int) {                                                 \
    CAFFE_RACES_ACCESS(kAtomic, const_cast<type*>(memory), sizeof(type));                                  \
    return __atomic_compare_exchange_n(memory, compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }
#define CAFFE_RACES_ATOMIC(bits, type)                                                                  \
  type __tsan_atomic##bits##_load(const volatile type* memory, int) {                                   \
    CAFFE_RACES_ACCESS(kAtomicRead, const_cast<type*>(memory), sizeof(type));                           \
    return __atomic_load_n(memory, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                     \
  void __tsan_atomic##bits##_store(volatile type* memory, type value, int) {                            \
    CAFFE_RACES_ACCESS(kAtomic, const_cast<type*>(memory), sizeof(type));                               \
    __atomic_store_n(memory, value, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                     \
  type __tsan_atomic##bits##_exchange(volatile type* memory, type value, int) {                         \
    CAFFE_RACES_ACCESS(kAtomic, const_cast<type*>(memory), sizeof(type));                               \
    return __atomic_exchange_n(memory, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                                     \
  CAFFE_RACES_CHANGE(bits, type, fetch_add)                                                             \
  CAFFE_RACES_CHANGE(bits, type, fetch_sub)                                                             \
  CAFFE_RACES_CHANGE(bits, type, fetch_and)                                                             \
  CAFFE_RACES_CHANGE(bits, type, fetch_or)                                                              \
  CAFFE_RACES_CHANGE(bits, type, fetch_xor)                                                             \
  CAFFE_RACES_CHANGE(bits, type, fetch_nand)                                                            \
  CAFFE_RACES_EXCHANGE(bits, type, strong)                                                              \
  CAFFE_RACES_EXCHANGE(bits, type, weak)                                                                \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* memory, type compare, type value, int, \
                                                  int) {                                                \
    __tsan_atomic##bits##_compare_exchange_strong(memory, &compare, value, 0, 0);                       \
    return compare;                                                                                     \
  }

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_atomic_thread_fence(int) { ::cuda_host::race_finder.fence(); }
void __tsan_atomic_signal_fence(int) {}
void __tsan_read_range(void* memory, size_t bytes) { CAFFE_RACES_ACCESS(kRead, memory, bytes); }
void __tsan_write_range(void* memory, size_t bytes) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }
CAFFE_RACES_PLAIN(1)
CAFFE_RACES_PLAIN(2)
CAFFE_RACES_PLAIN(4)
CAFFE_RACES_PLAIN(8)
CAFFE_RACES_PLAIN(16)
CAFFE_RACES_ATOMIC(8, uint8_t)
CAFFE_RACES_ATOMIC(16, uint16_t)
CAFFE_RACES_ATOMIC(32, uint32_t)
CAFFE_RACES_ATOMIC(64, uint64_t)
}

#endif  // CAFFE_HOST_RACES
