// The race finder. Two threads of one launch race if both access an element, one of them writes it, and
// nothing puts the two accesses in order. Built in by SANITIZE=races (`make sanitize`, `make verify`). Else
// all calls below are empty.
//
// The compiler inserts a function call before each memory access of the kernels' code (-fsanitize=thread). These
// functions are at the end of this file. A shadow of the memory remembers for each element which threads last wrote and
// read it, and when. Time counts barriers. An access comes after an earlier one of
//
//   a thread of its block, if a __syncthreads() lies between them;
//   a thread of its warp, also if a __syncwarp() with both lanes in its mask lies between them;
//   another thread, if that thread then called a fence and an atomic operation, and this one has since used an atomic
//   operation on the same memory. (Blocks find out in this way which one is last.) The fence may lie before a barrier of
//   the block, and the atomic operation, of one thread, behind it. __threadfence_block() and
//   atomicX_block() order threads of one block only. Who takes a lock, by atomicCAS or atomicExch, needs a fence then.
//
// So the result does not depend on the order in which the launcher runs the threads. One thing does: who takes a lock
// last is not seen to be late. A second run, with CAFFE_RACES_BACKWARDS, starts with the last thread.
//
// Blocks that wait for each other have host threads of their own, as elsewhere. They take turns: one runs, until all its
// threads wait. Each host thread has a finder with what it knows of its block; the rest is common.
//
// These are no races: two atomic operations, unless they are for two blocks only; a plain read of what others change by
// atomics, if the thread then changes it by an atomic, too (loops of atomicCAS begin so), or if it is volatile; a write
// of the value that is there. Threads do not share their stacks, and blocks do not share shared memory.
//
// Four more mistakes are told: a read of memory of cudaMalloc() or of shared memory that nothing has written; a write to
// a __constant__ variable; a barrier that threads of the block skip because they have ended; a fault.
//
// Settings: CAFFE_RACES names the log, CAFFE_RACES_MEGABYTES is the most memory of the shadow (2048), CAFFE_RACES_BLOCKS
// the most blocks of a launch that are watched after the process's first million accesses: its first, its last, and some
// between. The others run, too.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef CAFFE_HOST_RACES

namespace cuda_host {
struct RaceFinder {
  static constexpr bool kOn = false;
  void one_launch(bool) {}
  void begin_launch(const char*, int64_t, const void*, size_t) {}
  void end_launch() {}
  void stacks_are(const void*, size_t) {}
  void dynamic_shared_is(const void*, size_t) {}
  void is_written(const void*, size_t) {}
  void begin_block(int64_t) {}
  void run_as(int) {}
  void pause() {}
  void block_barrier() {}
  void grid_barrier(bool) {}
  void begin_warp_barrier() {}
  void warp_barrier(int, unsigned int) {}
  void fence() {}
  void read_from_no_lane(int, const void*) {}
  void thread_ended(int) {}
  void barrier_skipped(int, int, const void*) {}
  void fault(const void*, const char*) {}
  void refused(const char*, const char*) {}
  static void asked_for_errors() {}
  void watch_block(int64_t, int64_t) {}
  void take_turn() {}
  void end_turn() {}
};
}  // namespace cuda_host

#else

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace cuda_host {

class RaceFinder {
 public:
  static constexpr bool kOn = true;
  enum Kind { kRead, kWrite, kVolatileRead, kAtomicRead, kAtomic, kAtomicWrite };

  // Launches of several host threads come one after the other.
  void one_launch(bool begins) { begins ? common().launch.lock() : common().launch.unlock(); }
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
    cells_ = 0;
    released_.clear();
    last_page_ = nullptr;
    now_ = 1;
  }
  void stacks_are(const void* memory, size_t bytes) { stacks_ = {memory, bytes}; }
  void dynamic_shared_is(const void* memory, size_t bytes) {
    dynamic_shared_ = {memory, bytes};
    dynamic_written_.assign(bytes, false);
  }

  void begin_block(int64_t block) {
    if (!static_shared_.memory)
      dl_iterate_phdr(&find_static_shared, this);  // another host thread than the launching one
    block_ = static_cast<uint32_t>(block);
    barrier_ = fenced_ = grid_barrier_ = 0;
    block_acquired_ = {};
    threads_.clear();
    threads_.resize(block_threads_);
    rows_.assign((block_threads_ + 31) / 32 * 32, {});
    static_written_.assign(static_shared_.bytes, false);
    dynamic_written_.assign(dynamic_shared_.bytes, false);
  }
  // This thread-local memory is no shared variable.
  void is_written(const void* memory, size_t bytes) {
    if (static_shared_.has(memory))
      std::fill_n(static_written_.begin() +
                      (static_cast<const char*>(memory) - static_cast<const char*>(static_shared_.memory)),
                  bytes, true);
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
    bool all_fenced = true;
    for (Thread& thread : threads_) {
      all_fenced &= !thread.unfenced;
      if (thread.acquired) block_acquired_.join(*thread.acquired);
      thread.acquired.reset();
    }
    if (all_fenced) fenced_ = barrier_;
  }
  // A block has come to the grid's barrier, as the last one; or it goes on, and so have all come.
  void grid_barrier(bool comes_last) {
    if (comes_last) grid_time_ = ++now_;
    grid_barrier_ = grid_time_;
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
  // A fence publishes what this thread did, and completes what it acquired: for its block only, or for all.
  void fence(bool block_only = false) {
    if (!running_) return;
    Thread& own = threads_[thread_];
    own.block_fence = ++now_;
    if (!block_only) own.fence = now_, own.unfenced = false;
    if (!own.waiting || (block_only && own.waiting_from != block_)) return;
    if (!own.acquired) own.acquired.reset(new Clock);
    own.acquired->join(*own.waiting);
    own.waiting.reset();
  }
  // Atomic operations are from here on for the threads of this block only, or again for all.
  void block_scope(bool is_on) { block_only_ = is_on; }
  void thread_ended(int thread) {
    Thread& own = threads_[thread];
    own.ended = true;
    for (const auto& [first, second] : own.doubtful) report(kThenRead, first, second);
    own.doubtful.clear();
  }
  // A barrier of the block is at `pc`, and one of its threads has ended before.
  void barrier_skipped(int waits, int ended, const void* pc) {
    thread_ = waits;
    tell("barrier", offset_of(pc), "thread %d of the block has ended before this barrier", ended);
  }
  // A fault of this thread: of its last access, or at `pc`.
  void fault(const void* pc, const char* why) {
    pause();
    tell("fault", pc ? offset_of(pc) : place_, "%s", why);
  }
  // A launch that CUDA would refuse. If the program asks for no error until it ends, that is its mistake.
  void refused(const char* kernel, const char* why) {
    if (said_refused_.insert(kernel).second) write_line("left\t%s\tlaunch\t%s\n", kernel, why);
    static struct AtEnd {
      ~AtEnd() {
        for (const auto& [its, text] : unasked()) write_line("refused\t%s\t%s\n", its.c_str(), text.c_str());
      }
    } at_end;
    unasked()[kernel] = why;
  }
  static void asked_for_errors() { unasked().clear(); }
  // Watch this block, or only its atomic operations, by which others wait for it.
  void watch_block(int64_t block, int64_t blocks) {
    static const int64_t most = number_of("CAFFE_RACES_BLOCKS", INT64_MAX);
    const int64_t ends = std::max<int64_t>(1, most / 4);
    watched_ = accesses_ < kFewAccesses || blocks <= most || block < ends || block >= blocks - ends ||
               uint32_t(block * 2654435761u) % blocks < static_cast<uint64_t>(most / 2);
    if (watched_) return;
    has_unwatched_ = true;
    if (said_unwatched_.insert(kernel_).second)
      write_line("left\t%s\tblocks\t%lld\n", kernel_, static_cast<long long>(blocks - most));
  }

  // Only the host thread whose turn it is runs threads of a kernel.
  void take_turn() {
    const RaceFinder* nobody = nullptr;
    while (!common().turn.compare_exchange_weak(nobody, this)) {
      nobody = nullptr;
      const timespec a_moment{0, 50000};
      nanosleep(&a_moment, nullptr);
    }
  }
  void end_turn() {
    const RaceFinder* own = this;
    common().turn.compare_exchange_strong(own, nullptr);
  }

  // A shuffle of this thread, called at `pc`, reads from a lane that takes no part in it.
  void read_from_no_lane(int lane, const void* pc) {
    pause();
    const uint32_t place = offset_of(pc);
    if (!is_new(place, place)) return;
    write_line("lane\t%s\t%s\t%#x\t%u\t%lld\t%d\n", library_.c_str(), kernel_, place - 1, own_number(),
               static_cast<long long>(block_threads_), lane);
  }

  // `of_copy`: of a structure's, for whose write the compiler calls first, then for its read, and which then takes place.
  void access(const void* memory, size_t bytes, Kind kind, const void* pc, bool takes_lock = false,
              bool of_copy = false) {
    if (!running_ || !bytes || stacks_.has(memory) || (bytes == 1 && is_guard(memory))) return;
    running_ = false;  // the functions of the standard library that are called here may be instrumented
    if (!watched_) {
      if (kind >= kAtomicRead) synchronize(memory, kind, takes_lock);
      running_ = true;
      return;
    }
    ++accesses_;
    if (kind != kRead || !of_copy || !pending_.of_copy) settle();
    place_ = offset_of(pc);
    if (kind >= kAtomicRead) synchronize(memory, kind, takes_lock);
    const bool shared = dynamic_shared_.has(memory) || static_shared_.has(memory);
    Access own{memory, bytes, shared, kind, {own_number(), now_, place_}};
    own.is_first = is_first(own);
    if (constants().has(memory) && (kind == kWrite || kind >= kAtomic))
      tell("constant", place_, "writes a __constant__ variable, which only the host may");
    bool told = false;
    for_cells(own, [&](Cell& cell) { told = check(cell, own, told); });
    if (kind == kWrite && !shared) threads_[thread_].unfenced = true;
    if (kind == kWrite) {  // last, because the memory may not be there
      pending_.bytes = std::min(bytes, sizeof pending_.before);
      const volatile unsigned char* from = static_cast<const unsigned char*>(memory);
      for (size_t i = 0; i < pending_.bytes; ++i) pending_.before[i] = from[i];
      pending_.write = own;
      pending_.of_copy = of_copy;
    }
    running_ = true;
  }

  // What the host made, wrote and freed, for reads of memory that nothing has written.
  static void made(const void* memory, size_t bytes) {
    Made& own = all_made();
    std::lock_guard<std::mutex> lock(own.mutex);
    own.blocks[reinterpret_cast<uintptr_t>(memory)].assign(bytes, false);
  }
  static void freed(const void* memory) {
    Made& own = all_made();
    std::lock_guard<std::mutex> lock(own.mutex);
    own.blocks.erase(reinterpret_cast<uintptr_t>(memory));
  }
  // `from`: what was copied here, of which some may not be written, either.
  static void set(const void* memory, size_t bytes, const void* from) {
    Made& own = all_made();
    std::lock_guard<std::mutex> lock(own.mutex);
    const uintptr_t at = reinterpret_cast<uintptr_t>(memory), its = reinterpret_cast<uintptr_t>(from);
    auto* const block = own.around(at, bytes);
    if (!block) return;
    const auto to = block->second.begin() + (at - block->first);
    if (auto* source = own.around(its, bytes)) {
      const auto begin = source->second.begin() + (its - source->first);
      const std::vector<bool> written(begin, begin + bytes);  // the two may overlap
      std::copy(written.begin(), written.end(), to);
    } else {
      std::fill_n(to, bytes, true);
    }
  }
  static void constant(const void* memory, size_t bytes) { constants().all.push_back({memory, bytes}); }

 private:
  static constexpr uint32_t kNobody = 0xffffffffu;
  static constexpr size_t kPageBytes = 4096;
  // Per process. A kernel without atomics can race in every pair of threads.
  static constexpr size_t kMostReports = 100;
  static constexpr int64_t kFewAccesses = 1 << 20;  // about a third of a second

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
    bool is_first = false;  // the first write of this memory, which changes it whatever was there
  };
  // Lanes of one warp that read at one time, or wrote the value that was there (kWroteSame in `pc`).
  static constexpr uint32_t kWroteSame = 1u << 31;
  struct Reader {
    uint32_t warp = kNobody, lanes = 0, time = 0, pc = 0;
  };
  // What few elements have: atomic operations, and readers of several warps.
  struct Rare {
    Stamp atomic;
    bool block_only = false;  // the atomic operation was for its block only
    std::vector<Reader> readers;
  };
  struct Cell {
    Stamp write;
    Reader reader;
    std::unique_ptr<Rare> rare;
    Cell() = default;
    Cell(const Cell& other) { *this = other; }
    Cell& operator=(const Cell& other) {
      write = other.write, reader = other.reader;
      rare.reset(other.rare ? new Rare(*other.rare) : nullptr);
      return *this;
    }
    Rare& with_rare() {
      if (!rare) rare.reset(new Rare);
      return *rare;
    }
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
    uint32_t fence = 0, block_fence = 0, waiting_from = 0;
    bool ended = false, unfenced = false;             // has it written since its last fence?
    std::unique_ptr<Clock> acquired, waiting;         // waiting: until a fence
    std::vector<std::pair<Stamp, Access> > doubtful;  // reads that are races if no atomic operation follows
  };
  // What atomic operations on some memory have published: for all, and for the threads of single blocks.
  struct Released {
    Clock all;
    std::unordered_map<uint32_t, Clock> blocks;
    uint32_t from = kNobody;
  };
  struct Row {
    uint32_t until[32] = {};
  };
  // A write is a race only if it changes the value, which is known after it, or if only this thread has written there:
  // then it is no flag that all set. `what`: the race that it then is.
  struct Pending {
    Access write{};
    const char* what = nullptr;
    Stamp first;
    bool again = false, of_copy = false;
    size_t bytes = 0;
    unsigned char before[64];
  };
  // Memory of cudaMalloc: has each byte been written?
  struct Made {
    std::mutex mutex;
    std::map<uintptr_t, std::vector<bool> > blocks;
    std::pair<const uintptr_t, std::vector<bool> >* around(uintptr_t at, size_t bytes) {
      const auto above = blocks.upper_bound(at);
      if (above == blocks.begin()) return nullptr;
      auto& block = *std::prev(above);
      return at - block.first + bytes <= block.second.size() ? &block : nullptr;
    }
  };
  static Made& all_made() {
    static Made* const made = new Made;  // lives as long as the process
    return *made;
  }
  struct Constants {
    std::vector<Range> all;
    bool has(const void* memory) const {
      return std::any_of(all.begin(), all.end(), [&](const Range& one) { return one.has(memory); });
    }
  };
  static Constants& constants() {
    static Constants* const all = new Constants;
    return *all;
  }
  static constexpr const char* kThenRead = "changed atomically, then read";

  uint32_t own_number() const { return static_cast<uint32_t>(block_ * block_threads_ + thread_); }

  bool ordered(const Stamp& before, bool shared) const {
    const uint32_t own = own_number();
    if (before.thread == kNobody || before.thread == own || before.time < grid_barrier_) return true;
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

  template <typename Visit>
  void for_cells(const Access& own, const Visit& visit) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(own.memory), end = begin + own.bytes;
    for (uintptr_t at = begin; at < end;) {
      Page* page = page_of(at);
      if (!page) return;
      while (page->grain > 1 && (at % page->grain || end - at < page->grain)) {
        page->split();
        cells_ += page->cells.size() / 2;
      }
      visit(page->cells[at % kPageBytes / page->grain]);
      at += page->grain;
    }
  }

  // Note the access in a cell. Returns whether it has been told to race; one report is enough for all its cells.
  bool check(Cell& cell, const Access& own, bool told) {
    const bool is_write = own.kind == kWrite, is_read = own.kind == kRead || own.kind == kVolatileRead;
    const auto tell = [&](const Stamp& before, const char* what) {
      if (told || ordered(before, own.shared)) return;
      told = true;
      if (is_write)
        pending_.what = what, pending_.first = before;
      else
        report(what, before, own);
    };
    if (is_write) {
      pending_.again |= cell.write.thread == own.by.thread;
      for_readers(cell, [&](const Stamp& read, bool wrote) {
        tell(read, wrote ? "written twice" : "read, then written");
      });
      if (cell.rare) tell(cell.rare->atomic, "changed atomically, then written");
      tell(cell.write, "written twice");
    } else if (is_read) {
      if (!ordered(cell.write, own.shared) && !has_written_the_same(cell))
        tell(cell.write, "written, then read");
      if (own.kind == kRead && cell.rare && !told && !ordered(cell.rare->atomic, own.shared))
        threads_[thread_].doubtful.push_back({cell.rare->atomic, own});
      note_reader(cell, own, 0);
    } else {
      tell(cell.write, "written, then changed atomically");
      if (own.kind != kAtomicRead) change_atomically(cell, own, tell);
    }
    return told;
  }

  template <typename Tell>
  void change_atomically(Cell& cell, const Access& own, const Tell& tell) {
    auto& doubtful = threads_[thread_].doubtful;
    doubtful.erase(std::remove_if(doubtful.begin(), doubtful.end(),
                                  [&](const auto& one) { return one.second.memory == own.memory; }),
                   doubtful.end());
    Rare& rare = cell.with_rare();
    if (rare.atomic.thread != kNobody && rare.atomic.thread / block_threads_ != block_ &&
        (block_only_ || rare.block_only))
      tell(rare.atomic, "changed atomically for one block only");
    forget_readers(cell, [&](const Stamp& read) { return read.thread == own.by.thread; });
    // A plain read before: its thread may still use an atomic operation, or has ended.
    for_readers(cell, [&](const Stamp& read, bool wrote) {
      if (ordered(read, own.shared)) return;
      if (wrote) return tell(read, "written, then changed atomically");
      Thread* const reader =
          read.thread / block_threads_ == block_ ? &threads_[read.thread % block_threads_] : nullptr;
      if (!reader || reader->ended) return tell(read, "read, then changed atomically");
      Access its = own;
      its.by = read;
      reader->doubtful.push_back({own.by, its});
    });
    rare.atomic = own.by;
    rare.block_only = block_only_;
  }

  // All readers that nothing orders before a later reader: of this block all, of other blocks the first two and the last.
  void note_reader(Cell& cell, const Access& own, uint32_t how) {
    const uint32_t warps = static_cast<uint32_t>((block_threads_ + 31) / 32), lane = 1u << thread_ % 32;
    const Reader mine{block_ * warps + thread_ / 32, lane, own.by.time, own.by.pc | how};
    const auto same = [&](Reader& one) {
      return one.warp == mine.warp && one.time == mine.time && !((one.pc ^ mine.pc) & kWroteSame);
    };
    if (same(cell.reader)) {
      cell.reader.lanes |= lane;
      return;
    }
    if (cell.rare)
      for (Reader& one : cell.rare->readers)
        if (same(one)) {
          one.lanes |= lane;
          return;
        }
    forget_readers(cell, [&](const Stamp& read) { return ordered(read, own.shared); });
    if (!cell.reader.lanes) {
      cell.reader = mine;
      return;
    }
    auto& more = cell.with_rare().readers;
    const auto others = std::find_if(more.begin() + (more.empty() ? 0 : 1), more.end(),
                                     [&](const Reader& one) { return one.warp / warps != block_; });
    if (others != more.end() && more.size() > 2) more.erase(others);
    more.push_back(mine);
  }
  template <typename Visit>
  void for_readers(const Cell& cell, const Visit& visit) const {
    const auto each = [&](const Reader& one) {
      for (uint32_t lanes = one.lanes; lanes; lanes &= lanes - 1)
        visit(Stamp{thread_of(one, __builtin_ctz(lanes)), one.time, one.pc & ~kWroteSame},
              bool(one.pc & kWroteSame));
    };
    each(cell.reader);
    if (cell.rare)
      for (const Reader& one : cell.rare->readers) each(one);
  }
  // Has this thread written the value that is there? Then it reads its own value, whoever came first.
  bool has_written_the_same(const Cell& cell) const {
    bool found = false;
    for_readers(cell, [&](const Stamp& by, bool wrote) { found |= wrote && by.thread == own_number(); });
    return found;
  }
  template <typename Is>
  void forget_readers(Cell& cell, const Is& is) {
    const auto keep = [&](Reader& one) {
      for (uint32_t lanes = one.lanes; lanes; lanes &= lanes - 1)
        if (is(Stamp{thread_of(one, __builtin_ctz(lanes)), one.time, one.pc})) one.lanes &= ~(lanes & -lanes);
      return one.lanes != 0;
    };
    keep(cell.reader);
    if (!cell.rare) return;
    auto& more = cell.rare->readers;
    more.erase(std::remove_if(more.begin(), more.end(), [&](Reader& one) { return !keep(one); }), more.end());
  }
  uint32_t thread_of(const Reader& one, int lane) const {
    const uint32_t warps = static_cast<uint32_t>((block_threads_ + 31) / 32);
    return static_cast<uint32_t>(one.warp / warps * block_threads_ + one.warp % warps * 32 + lane);
  }

  // After a write: note it if it changed the memory. Else it is a read, for those who write another value.
  void settle() {
    const Access own = pending_.write;
    if (!own.memory) return;
    pending_.write.memory = nullptr;
    const bool changed = own.is_first || pending_.again || own.bytes > pending_.bytes ||
                         memcmp(own.memory, pending_.before, pending_.bytes);
    if (changed && pending_.what) report(pending_.what, pending_.first, own);
    pending_.what = nullptr;
    pending_.again = false;
    for_cells(own, [&](Cell& cell) {
      if (changed)
        cell = Cell(), cell.write = own.by;
      else
        note_reader(cell, own, kWroteSame);
    });
  }

  // Publish and learn what came before, by an atomic operation on this memory.
  void synchronize(const void* memory, Kind kind, bool takes_lock) {
    Thread& own = threads_[thread_];
    const auto found = released_.find(memory);
    if (found != released_.end()) {
      std::unique_ptr<Clock>& into = takes_lock ? own.waiting : own.acquired;
      if (!into) into.reset(new Clock);
      if (!block_only_) into->join(found->second.all);
      const auto mine = found->second.blocks.find(block_);
      if (mine != found->second.blocks.end()) into->join(mine->second);
      if (takes_lock) own.waiting_from = found->second.from;
    }
    if ((!own.block_fence && !fenced_) || kind == kAtomicRead) return;
    Released& released = released_[memory];
    if ((own.fence || fenced_) && !block_only_) publish(released.all, own.fence);
    publish(released.blocks[block_], own.block_fence);
    released.from = block_;
  }
  void publish(Clock& clock, uint32_t fence) {
    const Thread& own = threads_[thread_];
    clock.join(block_acquired_);
    if (own.acquired) clock.join(*own.acquired);
    Clock::later(clock.blocks[block_], std::max(fenced_, std::min(barrier_, fence)));
    Clock::later(clock.threads[own_number()], fence);
    const uint32_t first = own_number() - thread_ % 32;
    for (int lane = 0; lane < 32; ++lane)
      if (const uint32_t until = rows_[thread_].until[lane])
        Clock::later(clock.threads[first + lane], std::min(until, fence));
  }

  // Is this a write of memory that nothing has written since cudaMalloc or, if it is shared, since the block began? A
  // read of it is told.
  bool is_first(const Access& own) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(own.memory);
    if (own.shared) {
      const bool dynamic = dynamic_shared_.has(own.memory);
      const uintptr_t from =
          at - reinterpret_cast<uintptr_t>((dynamic ? dynamic_shared_ : static_shared_).memory);
      std::vector<bool>& written = dynamic ? dynamic_written_ : static_written_;
      return from + own.bytes <= written.size() && note_written(own, written, from);
    }
    Made& made = all_made();
    std::lock_guard<std::mutex> lock(made.mutex);
    auto* const block = made.around(at, own.bytes);
    return block && note_written(own, block->second, at - block->first);
  }
  bool note_written(const Access& own, std::vector<bool>& written, uintptr_t from) {
    const auto begin = written.begin() + from, end = begin + own.bytes;
    const bool writes = own.kind == kWrite || own.kind >= kAtomic;
    // Of a structure some bytes may be padding.
    const bool unset = own.bytes <= 16 ? !*begin : std::find(begin, end, true) == end;
    if (unset && own.kind != kWrite && own.kind != kAtomicWrite && (own.shared || !has_unwatched_))
      tell("unset", own.by.pc, "reads %s memory that nothing has written", own.shared ? "shared" : "global");
    const bool first = writes && unset;
    if (writes) std::fill(begin, end, true);
    return first;
  }

  // nullptr: the shadow has no more memory.
  Page* page_of(uintptr_t at) {
    const uintptr_t number = at / kPageBytes;
    if (last_page_ && number == last_number_) return last_page_;
    static const size_t most = number_of("CAFFE_RACES_MEGABYTES", 2048) * (size_t(1) << 20) / sizeof(Cell);
    const auto found = pages_.find(number);
    if (found == pages_.end() && cells_ >= most) {
      if (said_full_.insert(kernel_).second)
        write_line("left\t%s\tmemory\t%zu\n", kernel_, most * sizeof(Cell) >> 20);
      return nullptr;
    }
    last_page_ = found == pages_.end() ? &pages_[number] : &found->second;
    if (found == pages_.end()) cells_ += last_page_->cells.size();
    last_number_ = number;
    return last_page_;
  }
  static int64_t number_of(const char* setting, int64_t otherwise) {
    const char* const text = getenv(setting);
    return text && *text ? atoll(text) : otherwise;
  }
  uint32_t offset_of(const void* pc) const {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pc) - library_start_);
  }

  // The address of this library, and of this thread's copy of its __shared__ variables, which are thread-local.
  void find_library() {
    Dl_info info;
    if (!library_start_ && dladdr(reinterpret_cast<const void*>(&find_static_shared), &info)) {
      library_ = info.dli_fname;
      library_start_ = reinterpret_cast<uintptr_t>(info.dli_fbase);
      find_guards();
    }
    dl_iterate_phdr(&find_static_shared, this);
  }
  // g++ guards shared arrays of classes with constructors, though these do nothing. The guards are none of the code's
  // variables.
  void find_guards() {
    std::vector<char> file;
    if (FILE* const opened = fopen(library_.c_str(), "rb")) {
      fseek(opened, 0, SEEK_END);
      file.resize(ftell(opened));
      rewind(opened);
      if (fread(file.data(), 1, file.size(), opened) != file.size()) file.clear();
      fclose(opened);
    }
    if (file.size() < sizeof(ElfW(Ehdr))) return;
    const auto* const head = reinterpret_cast<const ElfW(Ehdr)*>(file.data());
    const auto* const sections = reinterpret_cast<const ElfW(Shdr)*>(file.data() + head->e_shoff);
    for (int i = 0; i < head->e_shnum; ++i) {
      if (sections[i].sh_type != SHT_SYMTAB) continue;
      const char* const names = file.data() + sections[sections[i].sh_link].sh_offset;
      const auto* symbol = reinterpret_cast<const ElfW(Sym)*>(file.data() + sections[i].sh_offset);
      for (size_t left = sections[i].sh_size / sizeof *symbol; left; --left, ++symbol)
        if (ELF64_ST_TYPE(symbol->st_info) == STT_TLS && !strncmp(names + symbol->st_name, "_ZGV", 4))
          guards_.insert(symbol->st_value);
    }
  }
  bool is_guard(const void* memory) const {
    return !guards_.empty() && static_shared_.has(memory) &&
           guards_.count(reinterpret_cast<uintptr_t>(memory) -
                         reinterpret_cast<uintptr_t>(static_shared_.memory));
  }
  static int find_static_shared(dl_phdr_info* info, size_t, void* finder) {
    RaceFinder& self = *static_cast<RaceFinder*>(finder);
    if (info->dlpi_addr != self.library_start_) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i)
      if (info->dlpi_phdr[i].p_type == PT_LOAD)
        self.library_bytes_ =
            std::max<size_t>(self.library_bytes_, info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
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
  // By kernel, why launches were refused since the program last asked for errors.
  static std::map<std::string, std::string>& unasked() {
    static auto* const all = new std::map<std::string, std::string>;
    return *all;
  }
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
  static void write_line(const char* format, Values... values) {
    const std::string& path = log_of_now().path;
    FILE* file = path.empty() ? nullptr : fopen(path.c_str(), "a");
    fprintf(file ? file : stderr, format, values...);
    if (file) fclose(file);
  }

  // Another mistake than a race, at one place.
  template <typename... Values>
  void tell(const char* kind, uint32_t place, const char* text, Values... values) {
    if (!is_new(place, place)) return;
    char said[400];
    snprintf(said, sizeof said, text, values...);
    write_line("told\t%s\t%s\t%s\t%#x\t%u\t%lld\t%s\n", library_.c_str(), kernel_, kind, place - 1,
               own_number(), static_cast<long long>(block_threads_), said);
  }

  void report(const char* what, const Stamp& first, const Access& second) {
    // A pair of lines once for threads of one warp, and once for others: since Volta both are races.
    const bool one_warp =
        first.thread / block_threads_ == block_ && first.thread % block_threads_ / 32 == thread_ / 32u;
    if (!is_new(first.pc | (one_warp ? kWroteSame : 0), second.by.pc)) return;
    const uintptr_t at = reinterpret_cast<uintptr_t>(second.memory);
    const auto above = std::upper_bound(pointers_.begin(), pointers_.end(), at);
    // The kernel's pointer that is the next below, or a variable of this library.
    const bool own = !second.shared && at - library_start_ < library_bytes_;
    const uintptr_t base = own ? library_start_ : above == pointers_.begin() ? 0 : above[-1];
    const size_t unit = own ? 1 : second.bytes;
    write_line("race\t%s\t%s\t%s\t%s\t%#x\t%#x\t%u\t%u\t%lld\t%lld\t%zu\n", library_.c_str(), kernel_, what,
               second.shared ? "shared"
               : own         ? "variable"
                             : "global",
               first.pc - 1, second.by.pc - 1, first.thread, second.by.thread,
               static_cast<long long>(block_threads_),
               second.shared ? -1LL : static_cast<long long>((at - base) / unit), second.bytes);
  }

  // What the host threads of a launch share, and what the process keeps.
  struct Common {
    std::mutex launch;
    std::atomic<const RaceFinder*> turn{nullptr};
    bool has_unwatched = false;
    const char* kernel = "";
    int64_t block_threads = 1, accesses = 0;
    uint32_t now = 1, grid_time = 0;
    std::string library;
    uintptr_t library_start = 0, last_number = 0;
    size_t library_bytes = 0, cells = 0;
    std::set<uintptr_t> guards;  // by their places in static_shared_
    std::set<std::string> said_unwatched, said_full, said_refused;
    std::vector<uintptr_t> pointers;
    std::unordered_map<const void*, Released> released;
    std::unordered_map<uintptr_t, Page> pages;
    Page* last_page = nullptr;
  };
  static Common& common() {
    static Common* const all = new Common;  // lives as long as the process
    return *all;
  }
  bool& has_unwatched_ = common().has_unwatched;
  const char*& kernel_ = common().kernel;
  int64_t &block_threads_ = common().block_threads, &accesses_ = common().accesses;
  uint32_t &now_ = common().now, &grid_time_ = common().grid_time;
  std::string& library_ = common().library;
  uintptr_t &library_start_ = common().library_start, &last_number_ = common().last_number;
  size_t &library_bytes_ = common().library_bytes, &cells_ = common().cells;
  std::set<uintptr_t>& guards_ = common().guards;
  std::set<std::string>&said_unwatched_ = common().said_unwatched, &said_full_ = common().said_full,
  &said_refused_ = common().said_refused;
  std::vector<uintptr_t>& pointers_ = common().pointers;
  std::unordered_map<const void*, Released>& released_ = common().released;
  std::unordered_map<uintptr_t, Page>& pages_ = common().pages;
  Page*& last_page_ = common().last_page;

  bool running_ = false, block_only_ = false, watched_ = true;
  uint32_t block_ = 0, barrier_ = 0, place_ = 0;
  uint32_t fenced_ = 0;  // the last barrier before which each thread had called a fence after what it wrote
  uint32_t grid_barrier_ = 0;  // when the last barrier of the grid opened that this block has passed
  int thread_ = 0;
  std::vector<bool> static_written_, dynamic_written_;
  Range stacks_, dynamic_shared_, static_shared_;
  std::vector<Thread> threads_;
  std::vector<Row> rows_;
  Clock block_acquired_;
  Pending pending_;
};

thread_local RaceFinder race_finder;

}  // namespace cuda_host

// ------------------------------------------------------------------------- what the compiler calls

#define CAFFE_RACES_ACCESS(kind, memory, bytes) \
  ::cuda_host::race_finder.access(memory, bytes, ::cuda_host::RaceFinder::kind, __builtin_return_address(0))
#define CAFFE_RACES_COPY(kind, memory, bytes)                                                                \
  ::cuda_host::race_finder.access(memory, bytes, ::cuda_host::RaceFinder::kind, __builtin_return_address(0), \
                                  false, true)
// An exchange that takes a lock: 0 became something else.
#define CAFFE_RACES_LOCK(kind, memory, bytes, takes_lock)                                                    \
  ::cuda_host::race_finder.access(memory, bytes, ::cuda_host::RaceFinder::kind, __builtin_return_address(0), \
                                  takes_lock)
#define CAFFE_RACES_PLAIN(bytes)                                                                       \
  void __tsan_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kRead, memory, bytes); }                  \
  void __tsan_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }                \
  void __tsan_unaligned_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kRead, memory, bytes); }        \
  void __tsan_unaligned_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }      \
  void __tsan_volatile_read##bytes(void* memory) { CAFFE_RACES_ACCESS(kVolatileRead, memory, bytes); } \
  void __tsan_volatile_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }       \
  void __tsan_unaligned_volatile_read##bytes(void* memory) {                                           \
    CAFFE_RACES_ACCESS(kVolatileRead, memory, bytes);                                                  \
  }                                                                                                    \
  void __tsan_unaligned_volatile_write##bytes(void* memory) { CAFFE_RACES_ACCESS(kWrite, memory, bytes); }
#define CAFFE_RACES_CHANGE(bits, type, name)                                  \
  type __tsan_atomic##bits##_##name(volatile type* memory, type value, int) { \
    CAFFE_RACES_ACCESS(kAtomic, const_cast<type*>(memory), sizeof(type));     \
    return __atomic_##name(memory, value, __ATOMIC_SEQ_CST);                  \
  }
#define CAFFE_RACES_EXCHANGE(bits, type, name)                                                             \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile type* memory, type* compare, type value, int, \
                                                    int) {                                                 \
    CAFFE_RACES_LOCK(kAtomic, const_cast<type*>(memory), sizeof(type),                                     \
                     *memory == 0 && *compare == 0 && value);                                              \
    return __atomic_compare_exchange_n(memory, compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }
#define CAFFE_RACES_ATOMIC(bits, type)                                                                  \
  type __tsan_atomic##bits##_load(const volatile type* memory, int) {                                   \
    CAFFE_RACES_ACCESS(kAtomicRead, const_cast<type*>(memory), sizeof(type));                           \
    return __atomic_load_n(memory, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                     \
  void __tsan_atomic##bits##_store(volatile type* memory, type value, int) {                            \
    CAFFE_RACES_ACCESS(kAtomicWrite, const_cast<type*>(memory), sizeof(type));                          \
    __atomic_store_n(memory, value, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                     \
  type __tsan_atomic##bits##_exchange(volatile type* memory, type value, int) {                         \
    CAFFE_RACES_LOCK(kAtomicWrite, const_cast<type*>(memory), sizeof(type), *memory == 0 && value);     \
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
void __tsan_vptr_read(void** memory) { CAFFE_RACES_ACCESS(kRead, memory, sizeof(void*)); }
void __tsan_vptr_update(void** memory, void*) { CAFFE_RACES_ACCESS(kWrite, memory, sizeof(void*)); }
void __tsan_atomic_thread_fence(int) { ::cuda_host::race_finder.fence(); }
void __tsan_atomic_signal_fence(int) { ::cuda_host::race_finder.fence(true); }
void __tsan_read_range(void* memory, size_t bytes) { CAFFE_RACES_COPY(kRead, memory, bytes); }
void __tsan_write_range(void* memory, size_t bytes) { CAFFE_RACES_COPY(kWrite, memory, bytes); }
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
