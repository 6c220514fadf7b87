// The host threads of a launch: how a grid's blocks, or the parts of a range, are spread over the cores.
#pragma once

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "host_block.h"
#include "host_signals.h"

namespace cuda_host {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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
  runner().end_code();
  runner().abandon();
  throw std::runtime_error(std::string("kernel ") + kernel + ": " + why);
}

// The host threads of a launch, which call work(first) ... work(count - 1). The first exception stops the rest.
class Team {
 public:
  using Work = std::function<void(int64_t)>;

  // Each thread has a stretch of its own, so that two do not touch the same new pages. Then it helps the others.
  Team(const char* kernel, const Work& work, int64_t first, int64_t count, int64_t shares)
      : kernel_(kernel), work_(work), share_(shares), block_dim_(blockDim), grid_dim_(gridDim) {
    for (int64_t s = 0; s < shares; ++s) {
      share_[s].next = first + (count - first) * s / shares;
      share_[s].end = first + (count - first) * (s + 1) / shares;
    }
  }

  // Work on this thread, for so many seconds at most. Returns the seconds.
  double walk(int64_t own, double most = 1e30);
  // Start a host thread. False: the system has no more.
  bool start(int64_t own);
  // A block waits for others: let one more thread run those that nobody has begun. False: there are as many threads as
  // the host can have, and all wait.
  bool help();
  // Wait for the threads, and throw what stopped them.
  void join();

  bool stopped() const { return stopped_; }
  bool helped() const { return !threads_.empty(); }
  int64_t next() const { return share_[0].next; }
  std::atomic<int64_t> at_grid_barrier{0}, grid_barriers{0};
  std::atomic<size_t> waiting{0};  // blocks whose threads all spin

 private:
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  bool all_begun() const {
    return std::all_of(share_.begin(), share_.end(), [](const Share& s) { return s.next >= s.end; });
  }

  const char* kernel_;
  const Work& work_;
  std::vector<Share> share_;
  const uint3 block_dim_, grid_dim_;
  std::atomic<bool> stopped_{false};
  std::exception_ptr thrown_;
  std::mutex mutex_;
  std::condition_variable all_ended_;
  size_t ended_ = 0;
  std::vector<std::thread> threads_;
};
thread_local Team* team = nullptr;

double Team::walk(int64_t own, double most) {
  blockDim = block_dim_;
  gridDim = grid_dim_;
  Team* const outer = team;
  team = this;
  const double start = now();
  double seconds = 0;
  signals::install();
  const int64_t shares = static_cast<int64_t>(share_.size());
  race_finder.take_turn();
  try {
    guarded(kernel_, [&] {
      for (int64_t turn = 0; turn < shares; ++turn) {
        Share& from = share_[(own + turn) % shares];
        for (int64_t i; seconds < most && !stopped_ &&
                        (i = from.next.fetch_add(1, std::memory_order_relaxed)) < from.end;) {
          work_(i);
          if (most < 1e30) seconds = now() - start;
          if (interrupted) caffe_leave("interrupted");
        }
      }
    });
  } catch (...) {
    in_kernel = false;
    if (!stopped_.exchange(true)) thrown_ = std::current_exception();
  }
  race_finder.end_turn();
  team = outer;
  return seconds;
}

bool Team::start(int64_t own) {
  sigset_t interrupt, before;  // Ctrl-C is for the thread that launches
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  bool started = true;
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    threads_.emplace_back([this, own] {
      walk(own);
      std::lock_guard<std::mutex> ended(mutex_);
      ++ended_;
      all_ended_.notify_one();
    });
  } catch (const std::system_error&) {
    started = false;  // fewer do the work
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

bool Team::help() {
  if (all_begun()) return true;
  size_t threads;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    threads = threads_.size();
  }
  if (threads < kMostBlocksAtOnce && start(0)) return true;
  return waiting < threads + 1;  // one of them may end
}

// After Ctrl-C the threads leave their kernel, which may never end.
void Team::join() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!all_ended_.wait_for(lock, std::chrono::milliseconds(50), [&] { return ended_ == threads_.size(); }))
    for (std::thread& thread : threads_)
      if (interrupted) pthread_kill(thread.native_handle(), kNudge);
  lock.unlock();
  for (std::thread& thread : threads_) thread.join();
  if (thrown_) std::rethrow_exception(thrown_);
}

// One call of work(0), whose threads wait for no other call. It needs no team, and no clock.
template <typename Work>
void run_alone(const char* kernel, const Work& work) {
  guarded(kernel, [&] {
    work(0);
    if (interrupted) caffe_leave("interrupted");
  });
}

// Call work(0) ... work(count - 1). The time of the first calls decides whether other host threads help.
void spread(const char* kernel, int64_t count, const Team::Work& work) {
  const int threads = max_threads();
  Team first(kernel, work, 0, count, 1);
  const double seconds = first.walk(0, threads > 1 ? kThreadPaysOff / 4 : 1e30);
  const int64_t done = std::min(first.next(), count);
  if (done == count || first.stopped() || first.helped()) {
    if (!first.stopped()) first.walk(0);
    return first.join();
  }
  const double left = seconds / done * (count - done);
  const int64_t useful =
      std::min<int64_t>({threads, count - done, 1 + static_cast<int64_t>(left / kThreadPaysOff)});
  Team rest(kernel, work, done, count, std::max<int64_t>(1, useful));
  for (int64_t s = 1; s < useful && rest.start(s);) ++s;
  rest.walk(0);
  rest.join();
}

}  // namespace
}  // namespace cuda_host
