// Threads that wait for another block: they spin, change at atomic operations, or come to a barrier of the whole grid.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "host_block.h"
#include "host_team.h"

namespace cuda_host {
namespace {

// This thread of the kernel waits for another one, so the others run.
void BlockRunner::spin() {
  if (!running_ || !in_kernel) return;
  end_code();
  spinning_.push_back(current_);
  fibers_.park();
  begin_code();
}

#ifdef CAFFE_HOST_RACES
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
#endif

bool BlockRunner::resume_spinning() {
  if (spinning_.empty()) return false;
  std::vector<Fiber*> turn;
  turn.swap(spinning_);
  for (Fiber* fiber : turn) {
    if (thrown_) break;
    fibers_.resume(*fiber);
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
}  // namespace cuda_host
