// The barriers of a block, of a warp and of some warps: who waits, who goes on, and what a lane gets from the others.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "host_block.h"

namespace cuda_host {
namespace {

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
  fibers_.resume_ready();
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
  fibers_.resume_ready();
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
    fibers_.resume_ready();
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
  fibers_.resume_ready();
  return any;
}

}  // namespace
}  // namespace cuda_host
