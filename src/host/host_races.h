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
//   another thread, if that thread then called a fence and made a strong access, and this one has since made a strong
//   access of the same memory, and then called a fence. Strong are atomic operations and volatile accesses. The first
//   fence may lie before a barrier of the block or of the warp, and the strong access, of one thread, behind it; the
//   second one behind a barrier, too. Who changes the value by arithmetic, such as atomicAdd(&count, 1), needs no second
//   fence: blocks find out in this way which one is last. __threadfence_block() and atomicX_block() order threads of one
//   block only.
//
// So the result does not depend on the order in which the launcher runs the threads. One thing does: who takes a lock
// last is not seen to be late. A second run, with CAFFE_RACES_BACKWARDS, starts with the last thread.
//
// Blocks that wait for each other have host threads of their own, as elsewhere. They take turns: one runs, until all its
// threads wait. Each host thread has a finder with what it knows of its block; the rest is common.
//
// These are no races: two atomic operations, unless they are for two blocks only; a plain read of what others change by
// atomics, if the thread then changes it by an atomic, too (loops of atomicCAS begin so), or if it is volatile; a write
// of the value that is there; a volatile read that waits for a volatile write: it is in the condition of a loop, or a
// fence follows before its thread writes. All other volatile reads race with volatile writes: code that trusts in the
// lock step of a warp is of these, and code without its barrier. Threads do not share their stacks, and blocks do not
// share shared memory.
//
// More mistakes are told: a shuffle, a vote or a barrier of a warp whose mask does not name the caller, or a value of a lane
// that takes no part; a read of memory of cudaMalloc() or of shared memory that nothing has written; a write to
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
  void begin_launch(const char*, int64_t, const void*, size_t, const void*) {}
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
  void waits(bool) {}
  void read_from_no_lane(int, const void*) {}
  void copy_begins(const void*, const void*, size_t, size_t, const void*) {}
  void copy_ends(const void*, const void*, size_t, size_t, const void*) {}
  void not_in_mask(unsigned int, const void*) {}
  void thread_ended(int) {}
  void barrier_skipped(int, int, const void*) {}
  void fault(const void*, const char*) {}
  void refused(const char*, const char*, const void*) {}
  static void host_waits(const void*) {}
  static void host_copies(const void*, size_t, const void*) {}
  static void asked_for_errors() {}
  void watch_block(int64_t, int64_t) {}
  void take_turn() {}
  void end_turn() {}
};
inline RaceFinder race_finder;  // of empty functions
}  // namespace cuda_host

#else

#include <string.h>
#include <time.h>

#include <atomic>
#include <mutex>

#include "host_sample.h"
#include "race_copies.h"
#include "race_host.h"
#include "race_library.h"
#include "race_log.h"
#include "race_order.h"
#include "race_written.h"

namespace cuda_host {

class RaceFinder : Order {
 public:
  using Order::begin_warp_barrier;
  using Order::block_barrier;
  using Order::block_scope;
  using Order::grid_barrier;
  using Order::warp_barrier;
  static constexpr bool kOn = true;
  using Kind = cuda_host::Kind;

  // Launches of several host threads come one after the other.
  void one_launch(bool begins) { begins ? common().launch.lock() : common().launch.unlock(); }
  // `pc`: where the host launches.
  void begin_launch(const char* kernel, int64_t block_threads, const void* body, size_t body_bytes,
                    const void* pc) {
    kernel_ = kernel;
    block_threads_ = block_threads;
    body_ = {body, body_bytes};
    pointers_.assign(body_bytes / sizeof(uintptr_t), 0);
    memcpy(pointers_.data(), body, pointers_.size() * sizeof(uintptr_t));
    std::sort(pointers_.begin(), pointers_.end());
    shared_is(library_.find());
    if (HostUse::is_on()) host().begin_launch(kernel, offset_of(pc), pointers_, {body, body_bytes});
    RaceLog::now().ran(kernel_);
  }
  void end_launch() {
    pause();
    shadow_.clear();
    Order::end_launch();
  }
  void stacks_are(const void* memory, size_t bytes) { stacks_ = {memory, bytes}; }
  void dynamic_shared_is(const void* memory, size_t bytes) {
    dynamic_shared_ = {{memory, bytes}, {}};
    dynamic_shared_.forget();
  }

  void begin_block(int64_t block) {
    if (!static_shared_.memory) shared_is(library_.find());  // another host thread than the launching one
    Order::begin_block(static_cast<uint32_t>(block));
    copying_.clear();
    static_shared_.forget();
    dynamic_shared_.forget();
  }
  // This thread-local memory is no shared variable.
  void is_written(const void* memory, size_t bytes) { static_shared_.is_written(memory, bytes); }
  void shared_is(const Range& variables) { static_cast<Range&>(static_shared_) = variables; }
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

  void fence(bool block_only = false) {
    if (running_) Order::fence(block_only);
  }
  // A fence that is part of an atomic operation: of its scope.
  void fence_here() { fence(block_only_); }
  // This thread is in the condition of a loop that waits, or no longer.
  void waits(bool is_on) {
    if (running_) threads_[thread_].waits = is_on;
  }
  void thread_ended(int thread) {
    Thread& own = threads_[thread];
    own.ended = true;
    report_all(own.doubtful);
    report_all(own.unfenced_reads);
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
  void refused(const char* kernel, const char* why, const void* pc) {
    library_.find();
    RaceLog::refused(kernel, why, library_.name, offset_of(pc) - 1);
  }
  // The host waits at `pc` for all that it has asked for, or begins an asynchronous copy to its own memory.
  static void host_waits(const void* pc) {
    RaceLog::goes_on(common().library.offset_of(pc) - 1);
    if (HostUse::is_on()) host().waits();
  }
  static void host_copies(const void* to, size_t bytes, const void* pc) {
    if (!HostUse::is_on()) return;
    common().library.find();
    host().copies(to, bytes, common().library.offset_of(pc));
  }
  // Code of the host's, and not the launcher's, uses memory.
  static void host_uses(const void* memory, size_t bytes, const void* pc) {
    HostUse::By by;
    if (!host().is_early(memory, bytes, &by)) return;
    const uint32_t place = common().library.offset_of(pc);
    if (RaceLog::now().is_new("", by.place, place))
      HostUse::tell("early-read", by.is_copy ? "" : by.kernel.c_str(), by.place, place, 0, 1);
  }
  static void asked_for_errors() { RaceLog::unasked().clear(); }
  // Watch this block, or only its atomic operations, by which others wait for it.
  void watch_block(int64_t block, int64_t blocks) {
    static const int64_t most = number_of("CAFFE_RACES_BLOCKS", INT64_MAX);
    watched_ = accesses_ < kFewAccesses || is_chosen(block, blocks, most);
    if (watched_) return;
    has_unwatched_ = true;
    RaceLog::left(kernel_, "blocks", "%lld", static_cast<long long>(blocks - most));
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

  // An asynchronous copy of `given` bytes, and zeros behind them. Its target has no value until its thread waits for it, at
  // which time the copy takes place.
  void copy_begins(const void* to, const void* from, size_t bytes, size_t given, const void* pc) {
    access(from, given, kRead, pc);
    access(to, bytes, kWrite, pc);
    if (!running_ || !watched_) return;
    running_ = false;
    copying_.begin(to, bytes, {own_number(), now_, offset_of(pc)});
    running_ = true;
  }
  void copy_ends(const void* to, const void* from, size_t bytes, size_t given, const void* pc) {
    if (!running_) return;
    running_ = false;
    copying_.end(to, bytes);
    running_ = true;
    access(from, given, kRead, pc);
    access(to, bytes, kWrite, pc);
  }
  // A shuffle, vote or barrier of this thread, called at `pc`, has a mask without the thread.
  void not_in_mask(unsigned int mask, const void* pc) {
    tell("lane", offset_of(pc), "lane %d calls with the mask %#x, which does not name it", thread_ % 32,
         mask);
  }
  // A shuffle of this thread, called at `pc`, reads from a lane that takes no part in it.
  void read_from_no_lane(int lane, const void* pc) {
    pause();
    const uint32_t place = offset_of(pc);
    if (!RaceLog::now().is_new(kernel_, place, place)) return;
    RaceLog::write("lane\t%s\t%s\t%#x\t%u\t%lld\t%d\n", library_.name.c_str(), kernel_, place - 1,
                   own_number(), static_cast<long long>(block_threads_), lane);
  }

  // `of_copy`: of a structure's, for whose write the compiler calls first, then for its read, and which then takes place.
  void access(const void* memory, size_t bytes, Kind kind, const void* pc, bool at_once = false,
              bool of_copy = false) {
    if (!running_ && HostUse::is_on() && host().is_pending && !in_kernel && bytes)
      host_uses(memory, bytes, pc);
    if (!running_ || !bytes || stacks_.has(memory) ||
        (kind == kRead && body_.has(memory)) ||  // each thread copies it, and nobody writes there
        // The guard's first byte, which x86 reads; ARM reads all of it.
        ((bytes == 1 || bytes == 8) && library_.is_guard(static_shared_, memory)))
      return;
    running_ = false;  // the functions of the standard library that are called here may be instrumented
    if (HostUse::is_on() && !is_shared(memory))
      host().access({reinterpret_cast<const void*>(library_.start), library_.bytes}, memory, bytes,
                    is_changing(kind), offset_of(pc), own_number(), block_threads_);
    if (!watched_) {
      if (is_strong(kind)) synchronize(memory, is_shared(memory), kind, at_once);
      running_ = true;
      return;
    }
    ++accesses_;
    if (kind != kRead || !of_copy || !pending_.of_copy) settle();
    place_ = offset_of(pc);
    const bool shared = is_shared(memory);
    Thread& its = threads_[thread_];
    const bool is_late = kind != kAtomic || !at_once || comes_later(memory, bytes, shared);
    if (is_strong(kind)) synchronize(memory, shared, kind, at_once);
    if (!is_strong(kind) || is_changing(kind)) its.is_fresh = false;
    const uint32_t marks = (is_strong(kind) ? kStrong : 0) | (its.waits ? kWaits : 0);
    Access own{memory, bytes, shared, kind, {own_number(), now_, place_ | marks}};
    if (std::exchange(ticks_, false)) ++now_;
    own.is_late = is_late;
    own.is_first = is_first(own);
    if (is_changing(kind)) its.wrote = own.by.time, report_all(its.unfenced_reads);
    if (constants().has(memory) && is_changing(kind))
      tell("constant", place_, "writes a __constant__ variable, which only the host may");
    bool told = false;
    if (const AccessTime* const copy = shared ? copying_.find(memory, bytes) : nullptr) {
      told = true;
      report(kind == kWrite ? kUnderWayWritten : kUnderWayRead, *copy, own);
    }
    for_cells(own, [&](Cell& cell) { told = check(cell, own, told); });
    if (kind == kWrite && !shared) its.unfenced = true;
    if (is_store(kind)) {  // last, because the memory may not be there
      pending_.bytes = std::min(bytes, sizeof pending_.before);
      const volatile unsigned char* from = static_cast<const unsigned char*>(memory);
      for (size_t i = 0; i < pending_.bytes; ++i) pending_.before[i] = from[i];
      pending_.write = own;
      pending_.of_copy = of_copy;
    }
    running_ = true;
  }

  static void made(const void* memory, size_t bytes) { DeviceAllocations::all().made(memory, bytes); }
  static void filled(const void* from) { DeviceAllocations::all().fill(from); }
  static void freed(const void* memory) { DeviceAllocations::all().freed(memory); }
  static void set(const void* memory, size_t bytes, const void* from) {
    DeviceAllocations::all().set(memory, bytes, from);
  }
  static void constant(const void* memory, size_t bytes) { constants().all.push_back({memory, bytes}); }

 private:
  static constexpr int64_t kFewAccesses = 1 << 20;  // about a third of a second

  // A write is a race only if it changes the value, which is known after it, or if only this thread has written there:
  // then it is no flag that all set. `what`: the race that it then is.
  struct Pending {
    Access write{};
    const char* what = nullptr;
    AccessTime first;
    std::vector<AccessTime> readers;  // strong ones, which race with it if no fence follows
    bool again = false, of_copy = false;
    size_t bytes = 0;
    unsigned char before[64];
  };
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
  static constexpr const char* kUnderWayRead =
      "written by an asynchronous copy that nothing has waited for, then read";
  static constexpr const char* kUnderWayWritten =
      "written by an asynchronous copy that nothing has waited for, then written";
  bool is_shared(const void* memory) const {
    return dynamic_shared_.has(memory) || static_shared_.has(memory);
  }
  Warps warps() const { return {block_threads_}; }
  template <typename Visit>
  void for_cells(const Access& own, const Visit& visit) {
    if (!shadow_.for_cells(own, visit)) RaceLog::left(kernel_, "memory", "%zu", Shadow::most_bytes() >> 20);
  }

  // Note the access in a cell. Returns whether it has been told to race; one report is enough for all its cells.
  bool check(Cell& cell, const Access& own, bool told) {
    const bool is_read = own.kind == kRead || own.kind == kVolatileRead;
    const auto tell = [&](const AccessTime& before, const char* what) {
      if (told || ordered(before, own.shared)) return;
      told = true;
      if (is_store(own.kind))
        pending_.what = what, pending_.first = before;
      else
        report(what, before, own);
    };
    if (is_store(own.kind)) {
      check_store(cell, own, tell);
    } else if (is_read) {
      if (!ordered(cell.write, own.shared) && !has_written_the_same(cell)) {
        if (own.kind == kRead || !cell.write.has(kStrong))
          tell(cell.write, kThenRead);
        else if (!own.by.has(kWaits))
          doubt(threads_[thread_].unfenced_reads, {cell.write, own, kThenRead});
      }
      if (own.kind == kRead && cell.rare && !told && !ordered(cell.rare->atomic, own.shared))
        threads_[thread_].doubtful.push_back({cell.rare->atomic, own, "changed atomically, then read"});
      note_reader(cell, own, 0);
    } else {
      if (!cell.write.has(kStrong)) tell(cell.write, "written, then changed atomically");
      if (!own.is_late && !told) report("written, then changed atomically", cell.write, own), told = true;
      if (own.kind != kAtomicRead) change_atomically(cell, own, tell);
    }
    return told;
  }
  static constexpr const char* kThenRead = "written, then read";

  template <typename Tell>
  void check_store(const Cell& cell, const Access& own, const Tell& tell) {
    const bool is_strong = own.kind == kVolatileWrite;
    pending_.again |= cell.write.thread == own.by.thread;
    warps().for_readers(cell, [&](const AccessTime& read, bool wrote) {
      if (!wrote && is_strong && read.has(kStrong)) {
        if (!read.has(kWaits) && !ordered(read, own.shared)) pending_.readers.push_back(read);
      } else {
        tell(read, wrote ? "written twice" : "read, then written");
      }
    });
    if (cell.rare) {
      tell(cell.rare->atomic, "changed atomically, then written");
      if (!is_strong) tell(cell.rare->same, "changed atomically, then written");
    }
    // Who has read the other's value comes later.
    if (!is_strong || !cell.write.has(kStrong) || !has_read(cell)) tell(cell.write, "written twice");
  }
  // Arithmetic does not wait for another's volatile write, as an exchange or a read may. Does this thread know the write,
  // before it learns of more by the operation itself?
  bool comes_later(const void* memory, size_t bytes, bool shared) {
    bool all = true;
    for_cells({memory, bytes, shared, kAtomic, {}}, [&](const Cell& cell) {
      all &= !cell.write.has(kStrong) || ordered(cell.write, shared) || has_read(cell);
    });
    return all;
  }
  bool has_read(const Cell& cell) const {
    bool found = false;
    warps().for_readers(cell, [&](const AccessTime& read, bool) { found |= read.thread == own_number(); });
    return found;
  }
  static void doubt(std::vector<Doubt>& all, const Doubt& one) {
    if (!all.empty() && all.back().second.memory == one.second.memory)
      all.pop_back();  // it asks again and again
    all.push_back(one);
  }
  void report_all(std::vector<Doubt>& all) {
    for (const Doubt& one : all) report(one.what, one.first, one.second);
    all.clear();
  }
  // A strong read, and then this strong write, by another thread. The two race if the reader is known not to wait for
  // it: no fence of the reader follows.
  void read_before(const AccessTime& read, const Access& own) {
    if (read.thread / block_threads_ != block_) return;
    Thread& reader = threads_[read.thread % block_threads_];
    if (reader.block_fence > read.time && reader.wrote <= reader.block_fence) return;
    if (reader.ended || reader.wrote > read.time) return report("read, then written", read, own);
    doubt(reader.unfenced_reads, {read, own, "read, then written"});
  }

  template <typename Tell>
  void change_atomically(Cell& cell, const Access& own, const Tell& tell) {
    auto& doubtful = threads_[thread_].doubtful;
    doubtful.erase(std::remove_if(doubtful.begin(), doubtful.end(),
                                  [&](const auto& one) { return one.second.memory == own.memory; }),
                   doubtful.end());
    Rare& rare = cell.with_rare();
    if (own.kind == kAtomicSame) {
      rare.same = own.by;
      return;
    }
    if (rare.atomic.thread != kNobody && rare.atomic.thread / block_threads_ != block_ &&
        (block_only_ || rare.block_only))
      tell(rare.atomic, "changed atomically for one block only");
    warps().forget_readers(cell, [&](const AccessTime& read) { return read.thread == own.by.thread; });
    // A plain read before: its thread may still use an atomic operation, or has ended.
    warps().for_readers(cell, [&](const AccessTime& read, bool wrote) {
      if (read.has(kStrong) || ordered(read, own.shared)) return;
      if (wrote) return tell(read, "written, then changed atomically");
      Thread* const reader =
          read.thread / block_threads_ == block_ ? &threads_[read.thread % block_threads_] : nullptr;
      if (!reader || reader->ended) return tell(read, "read, then changed atomically");
      Access its = own;
      its.by = read;
      reader->doubtful.push_back({own.by, its, "changed atomically, then read"});
    });
    rare.atomic = own.by;
    rare.block_only = block_only_;
  }

  // All readers that nothing orders before a later reader: of this block all, of other blocks the first two and the last.
  void note_reader(Cell& cell, const Access& own, uint32_t how) {
    const uint32_t in_block = warps().of_block(), lane = 1u << thread_ % 32;
    const Reader mine{block_ * in_block + thread_ / 32, lane, own.by.time, own.by.pc | how};
    const auto same = [&](Reader& one) {
      return one.warp == mine.warp && one.time == mine.time && !((one.pc ^ mine.pc) >> 29);
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
    warps().forget_readers(cell, [&](const AccessTime& read) { return ordered(read, own.shared); });
    if (!cell.reader.lanes) {
      cell.reader = mine;
      return;
    }
    auto& more = cell.with_rare().readers;
    const auto others = std::find_if(more.begin() + (more.empty() ? 0 : 1), more.end(),
                                     [&](const Reader& one) { return one.warp / in_block != block_; });
    if (others != more.end() && more.size() > 2) more.erase(others);
    more.push_back(mine);
  }
  // Has this thread written the value that is there? Then it reads its own value, whoever came first.
  bool has_written_the_same(const Cell& cell) const {
    bool found = false;
    warps().for_readers(
        cell, [&](const AccessTime& by, bool wrote) { found |= wrote && by.thread == own_number(); });
    return found;
  }
  // After a write: note it if it changed the memory. Else it is a read, for those who write another value.
  void settle() {
    const Access own = pending_.write;
    if (!own.memory) return;
    pending_.write.memory = nullptr;
    const bool changed = own.is_first || pending_.again || own.bytes > pending_.bytes ||
                         memcmp(own.memory, pending_.before, pending_.bytes);
    if (changed && pending_.what)
      report(pending_.what, pending_.first, own);
    else if (changed)
      for (const AccessTime& read : pending_.readers) read_before(read, own);
    pending_.readers.clear();
    pending_.what = nullptr;
    pending_.again = false;
    for_cells(own, [&](Cell& cell) {
      if (changed)
        cell = Cell(), cell.write = own.by;
      else
        note_reader(cell, own, kWroteSame);
    });
  }

  // Is this a write of memory that nothing has written since cudaMalloc or, if it is shared, since the block began? A
  // read of it is told.
  bool is_first(const Access& own) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(own.memory);
    if (own.shared) {
      WatchedRange& shared = dynamic_shared_.has(own.memory) ? dynamic_shared_ : static_shared_;
      const size_t from = shared.place(own.memory);
      return from + own.bytes <= shared.written.size() && note_written(own, shared.written, from);
    }
    DeviceAllocations& made = DeviceAllocations::all();
    std::lock_guard<std::mutex> lock(made.mutex);
    auto* const block = made.around(at, own.bytes);
    return block && note_written(own, block->second, at - block->first);
  }
  bool note_written(const Access& own, std::vector<bool>& written, uintptr_t from) {
    const bool writes = is_changing(own.kind);
    const bool unset = is_unset(written, from, own.bytes);
    if (unset && !is_store(own.kind) && own.kind != kAtomicWrite && (own.shared || !has_unwatched_))
      tell("unset", own.by.place(), "reads %s memory that nothing has written",
           own.shared ? "shared" : "global");
    const bool first = writes && unset;
    if (writes) std::fill_n(written.begin() + from, own.bytes, true);
    return first;
  }

  static int64_t number_of(const char* setting, int64_t otherwise) {
    const char* const text = getenv(setting);
    return text && *text ? atoll(text) : otherwise;
  }
  uint32_t offset_of(const void* pc) const { return library_.offset_of(pc); }

  // Another mistake than a race, at one place.
  template <typename... Values>
  void tell(const char* kind, uint32_t place, const char* text, Values... values) {
    if (!RaceLog::now().is_new(kernel_, place, place)) return;
    char said[400];
    snprintf(said, sizeof said, text, values...);
    RaceLog::write("told\t%s\t%s\t%s\t%#x\t%u\t%lld\t%s\n", library_.name.c_str(), kernel_, kind, place - 1,
                   own_number(), static_cast<long long>(block_threads_), said);
  }

  void report(const char* what, const AccessTime& first, const Access& second) {
    // A pair of lines once for threads of one warp, and once for others: since Volta both are races.
    const auto warp_of = [&](uint32_t thread) {
      return std::pair(thread / block_threads_, thread % block_threads_ / 32);
    };
    const bool one_warp = warp_of(first.thread) == warp_of(second.by.thread);
    if (!RaceLog::now().is_new(kernel_, first.place() | (one_warp ? kWroteSame : 0), second.by.place()))
      return;
    const uintptr_t at = reinterpret_cast<uintptr_t>(second.memory);
    const auto above = std::upper_bound(pointers_.begin(), pointers_.end(), at);
    // The kernel's pointer that is the next below, or a variable of this library.
    const bool own = !second.shared && at - library_.start < library_.bytes;
    const uintptr_t base = own ? library_.start : above == pointers_.begin() ? 0 : above[-1];
    const size_t unit = own ? 1 : second.bytes;
    RaceLog::write("race\t%s\t%s\t%s\t%s\t%#x\t%#x\t%u\t%u\t%lld\t%lld\t%zu\n", library_.name.c_str(),
                   kernel_, what,
                   second.shared ? "shared"
                   : own         ? "variable"
                                 : "global",
                   first.place() - 1, second.by.place() - 1, first.thread, second.by.thread,
                   static_cast<long long>(block_threads_),
                   second.shared ? -1LL : static_cast<long long>((at - base) / unit), second.bytes);
  }

  // What the host threads of a launch share, and what the process keeps.
  struct Common {
    std::mutex launch;
    std::atomic<const RaceFinder*> turn{nullptr};
    bool has_unwatched = false;
    const char* kernel = "";
    int64_t accesses = 0;
    Library library;
    Shadow shadow;
    std::vector<uintptr_t> pointers;
    Range body;  // the kernel's arguments
  };
  static HostUse& host() {
    if (HostUse::name().empty()) HostUse::name() = common().library.name;
    return HostUse::all();
  }
  static Common& common() {
    static Common* const all = new Common;  // lives as long as the process
    return *all;
  }
  bool& has_unwatched_ = common().has_unwatched;
  const char*& kernel_ = common().kernel;
  int64_t& accesses_ = common().accesses;
  Library& library_ = common().library;
  Shadow& shadow_ = common().shadow;
  std::vector<uintptr_t>& pointers_ = common().pointers;
  Range& body_ = common().body;

  bool running_ = false, watched_ = true;
  uint32_t place_ = 0;
  Range stacks_;
  WatchedRange dynamic_shared_, static_shared_;
  Copies copying_;
  Pending pending_;
};

thread_local RaceFinder race_finder;

}  // namespace cuda_host

#include "race_hooks.h"

#endif  // CAFFE_HOST_RACES
