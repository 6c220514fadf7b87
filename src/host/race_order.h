// What comes before what, in one launch: barriers, fences, and atomic operations that publish (host_races.h says the
// rules). Each host thread has the order of its block; time and what was published are common.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "race_clock.h"

namespace cuda_host {

class Order {
 public:
  void begin_block(uint32_t block) {
    block_ = block;
    barrier_ = fenced_ = grid_barrier_ = 0;
    block_acquired_ = {};
    block_pending_ = {};
    block_pending_at_ = 0;
    shared_released_.clear();
    threads_.clear();
    threads_.resize(block_threads_);
    rows_.assign((block_threads_ + 31) / 32 * 32, {});
  }
  void end_launch() {
    released_.clear();
    now_ = 1;
  }
  void block_barrier() {
    barrier_ = ++now_;
    bool all_fenced = true;
    for (Thread& thread : threads_) {
      all_fenced &= !thread.unfenced;
      if (thread.acquired) block_acquired_.join(*thread.acquired);
      if (thread.pending) block_pending_.join(*thread.pending), block_pending_at_ = now_;
      thread.acquired.reset();
      thread.pending.reset();
    }
    if (all_fenced) fenced_ = barrier_;
  }
  // A block has come to the grid's barrier, as the last one; or it goes on, and so have all come.
  void grid_barrier(bool comes_last) {
    if (comes_last) grid_time_ = ++now_;
    grid_barrier_ = grid_time_;
  }
  void begin_warp_barrier() { ++now_; }
  // Everything that the lanes of `mask` did before, or knew, comes before what this thread does next. What they have
  // fenced, this thread may publish.
  void warp_barrier(int thread, unsigned int mask) {
    const int first = thread / 32 * 32;
    WarpClock& own = rows_[thread];
    const auto for_lanes = [&](const auto& visit) {
      for (int lane = 0; lane < 32; ++lane)
        if ((mask >> lane & 1u) && first + lane < block_threads_) visit(lane);
    };
    for_lanes([&](int lane) { learn(threads_[thread], own.until[lane], threads_[first + lane]); });
    for_lanes([&](int lane) {
      own.join(rows_[first + lane]);
      Clock::later(own.fenced[lane], threads_[first + lane].fence);
      Clock::later(own.block_fenced[lane], threads_[first + lane].block_fence);
    });
    for_lanes([&](int lane) { own.until[lane] = now_; });
  }
  // A fence publishes what this thread did, and completes what it acquired: for its block only, or for all.
  void fence(bool block_only) {
    Thread& own = threads_[thread_];
    const uint32_t before = block_only ? own.block_fence : own.fence;
    own.block_fence = ++now_;
    if (!block_only) own.fence = now_, own.unfenced = false;
    own.is_fresh = true;
    own.unfenced_reads.clear();
    const auto complete = [&](const Pending& pending) {
      own.with_acquired(now_).join(pending.of_block);
      if (!block_only) own.acquired->join(pending.of_all);
    };
    if (own.pending) complete(*own.pending);
    if (before < block_pending_at_) complete(block_pending_);
    if (!block_only) own.pending.reset();
  }
  // Atomic operations are from here on for the threads of this block only, or again for all.
  void block_scope(bool is_on) { block_only_ = is_on; }

 protected:
  // What strong reads have found, and the next fence completes.
  struct Pending {
    Clock of_block, of_all;
    void join(const Pending& other) {
      of_block.join(other.of_block);
      of_all.join(other.of_all);
    }
  };
  struct Doubt {
    AccessTime first;
    Access second;
    const char* what;
  };
  struct Thread {
    uint32_t fence = 0, block_fence = 0;
    bool ended = false, unfenced = false;  // has it written since its last fence?
    bool is_fresh = false;                 // has it made nothing but strong reads since its last fence?
    uint32_t learned = 0;                  // when `acquired` or `pending` last changed
    std::unique_ptr<Clock> acquired;
    std::unique_ptr<Pending> pending;
    const void* asked = nullptr;  // the memory that it last read so, and what had been published there
    uint32_t asked_count = 0;
    bool waits = false;                 // it is in the condition of a loop that waits
    uint32_t wrote = 0;                 // when
    std::vector<Doubt> doubtful;        // plain reads that are races if no atomic operation follows
    std::vector<Doubt> unfenced_reads;  // volatile reads that are races if no fence follows, before it writes
    Clock& with_acquired(uint32_t now) {
      learned = now;
      if (!acquired) acquired.reset(new Clock);
      return *acquired;
    }
    Pending& with_pending(uint32_t now) {
      learned = now;
      if (!pending) pending.reset(new Pending);
      return *pending;
    }
  };
  // Of the lanes of a thread's warp: what they did before this time comes before; and what they had fenced.
  struct WarpClock {
    uint32_t until[32] = {}, fenced[32] = {}, block_fenced[32] = {};
    void join(const WarpClock& other) {
      for (int lane = 0; lane < 32; ++lane) {
        Clock::later(until[lane], other.until[lane]);
        Clock::later(fenced[lane], other.fenced[lane]);
        Clock::later(block_fenced[lane], other.block_fenced[lane]);
      }
    }
  };

  uint32_t own_number() const { return static_cast<uint32_t>(block_ * block_threads_ + thread_); }

  bool ordered(const AccessTime& before, bool shared) const {
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

  // Learn what came before by a strong access of this memory, and publish. `at_once`: without a fence.
  void synchronize(const void* memory, bool shared, Kind kind, bool at_once) {
    Thread& own = threads_[thread_];
    auto& all = shared ? shared_released_ : released_;
    const auto found = all.find(memory);
    if (found != all.end() && kind != kVolatileWrite) acquire(own, found->second, memory, at_once);
    if ((!own.block_fence && !fenced_) || !is_changing(kind)) return;
    Released& released = all[memory];
    ++released.count;
    const WarpClock& row = rows_[thread_];
    if ((own.fence || fenced_) && !block_only_) publish(released.all, own.fence, row.fenced);
    publish(released.blocks[block_], own.block_fence, row.block_fenced);
    if (!own.is_fresh) return;
    // Then this access comes before, too.
    if (own.fence == own.block_fence && !block_only_)
      Clock::later(released.all.threads[own_number()], now_ + 1);
    Clock::later(released.blocks[block_].threads[own_number()], now_ + 1);
    ticks_ = true;
  }
  void acquire(Thread& own, const Released& released, const void* memory, bool at_once) {
    if (!at_once && std::exchange(own.asked, memory) == memory && own.asked_count == released.count) return;
    own.asked_count = released.count;
    const auto mine = released.blocks.find(block_);
    if (at_once) {
      Clock& into = own.with_acquired(now_);
      if (!block_only_) into.join(released.all);
      if (mine != released.blocks.end()) into.join(mine->second);
    } else {
      Pending& into = own.with_pending(now_);
      if (!block_only_) into.of_all.join(released.all);
      if (mine != released.blocks.end()) into.of_block.join(mine->second);
    }
  }
  // What another lane knows, if it has learned it since the last barrier with this one.
  void learn(Thread& own, uint32_t last, const Thread& other) const {
    if (&own == &other || !other.learned || other.learned < last) return;
    if (other.acquired) own.with_acquired(now_ - 1).join(*other.acquired);
    if (other.pending) own.with_pending(now_ - 1).join(*other.pending);
  }
  void publish(Clock& clock, uint32_t fence, const uint32_t (&fenced)[32]) {
    const Thread& own = threads_[thread_];
    clock.join(block_acquired_);
    if (own.acquired) clock.join(*own.acquired);
    Clock::later(clock.blocks[block_], std::max(fenced_, std::min(barrier_, fence)));
    Clock::later(clock.threads[own_number()], fence);
    const uint32_t first = own_number() - thread_ % 32;
    for (int lane = 0; lane < 32; ++lane)
      if (const uint32_t until = rows_[thread_].until[lane])
        Clock::later(clock.threads[first + lane], std::min(until, std::max(fenced[lane], fence)));
  }

  // What the host threads of a launch share.
  struct Times {
    int64_t block_threads = 1;
    uint32_t now = 1, grid_time = 0;
    std::unordered_map<const void*, Released> released;
  };
  static Times& times() {
    static Times* const all = new Times;  // lives as long as the process
    return *all;
  }
  int64_t& block_threads_ = times().block_threads;
  uint32_t &now_ = times().now, &grid_time_ = times().grid_time;
  std::unordered_map<const void*, Released>& released_ = times().released;

  bool block_only_ = false, ticks_ = false;
  uint32_t block_ = 0, barrier_ = 0;
  uint32_t fenced_ = 0;  // the last barrier before which each thread had called a fence after what it wrote
  uint32_t grid_barrier_ = 0;  // when the last barrier of the grid opened that this block has passed
  int thread_ = 0;
  std::vector<Thread> threads_;
  std::vector<WarpClock> rows_;
  Clock block_acquired_;
  Pending block_pending_;
  uint32_t block_pending_at_ = 0;
  std::unordered_map<const void*, Released> shared_released_;  // by shared memory of this block
};

}  // namespace cuda_host
