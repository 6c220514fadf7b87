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
  void fence(bool block_only) {
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

 protected:
  struct Thread {
    uint32_t fence = 0, block_fence = 0, waiting_from = 0;
    bool ended = false, unfenced = false;             // has it written since its last fence?
    std::unique_ptr<Clock> acquired, waiting;         // waiting: until a fence
    std::vector<std::pair<Stamp, Access> > doubtful;  // reads that are races if no atomic operation follows
  };
  struct Row {
    uint32_t until[32] = {};
  };

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

  bool block_only_ = false;
  uint32_t block_ = 0, barrier_ = 0;
  uint32_t fenced_ = 0;  // the last barrier before which each thread had called a fence after what it wrote
  uint32_t grid_barrier_ = 0;  // when the last barrier of the grid opened that this block has passed
  int thread_ = 0;
  std::vector<Thread> threads_;
  std::vector<Row> rows_;
  Clock block_acquired_;
};

}  // namespace cuda_host
