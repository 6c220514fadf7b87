// A program that is out of time, once more, by a sample of its blocks (cuffi/judging). Of a launch with more blocks than
// CAFFE_JUDGE_SAMPLE only so many run: its first, its last, and some between. What later launches read is not all there then,
// so the program ends behind that launch. It also ends after CAFFE_JUDGE_SECONDS, if the host's own code then runs.
#pragma once

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>

namespace cuda_host {

// Is a block one of `most` of a launch?
inline bool is_chosen(int64_t block, int64_t blocks, int64_t most) {
  const int64_t ends = std::max<int64_t>(1, most / 4);
  return blocks <= most || block < ends || block >= blocks - ends ||
         uint32_t(block * 2654435761u) % blocks < static_cast<uint64_t>(most / 2);
}

#if !defined(CAFFE_HOST_RACES) && !defined(__SANITIZE_ADDRESS__)

struct Sample {
  static constexpr Sample now() { return {}; }
  static constexpr bool has(int64_t, int64_t) { return true; }
  static constexpr bool all(int64_t) { return true; }
  static void over(const char*, int64_t) {}
  static void begins(int) {}
};

#else

class Sample {
 public:
  static const Sample& now() {
    static const Sample own;
    return own;
  }
  bool has(int64_t block, int64_t blocks) const { return is_chosen(block, blocks, most_); }
  bool all(int64_t blocks) const { return blocks <= most_; }
  // A launch is over. If not all of its blocks ran, the program ends.
  void over(const char* kernel, int64_t blocks) const {
    if (all(blocks)) return;
    int64_t ran = 0;
    for (int64_t block = 0; block < blocks; ++block) ran += has(block, blocks);
    char what[300];
    snprintf(what, sizeof what, "%lld of %lld blocks of %s", static_cast<long long>(ran),
             static_cast<long long>(blocks), kernel);
    end(what);
  }
  // One launch more runs, or one less.
  static void begins(int more) {
    counts().running = counts().running + more;
    if (more < 0) counts().over = counts().over + 1;
  }

 private:
  struct Counts {
    volatile sig_atomic_t running = 0, over = 0;
  };
  static Counts& counts() {
    static Counts all;
    return all;
  }
  Sample() {
    const char *const most = getenv("CAFFE_JUDGE_SAMPLE"), *const seconds = getenv("CAFFE_JUDGE_SECONDS");
    if (!most || !seconds) return;
    most_ = std::max(4LL, atoll(most));
    signal(SIGALRM, [](int) {
      if (!counts().running && counts().over) end("the host's code until then");
    });
    itimerval timer{};
    timer.it_value.tv_sec = atol(seconds);
    setitimer(ITIMER_REAL, &timer, nullptr);
  }
  [[noreturn]] static void end(const char* what) {
    char text[400];
    const char* const mark = getenv("CAFFE_JUDGE");
    const int size = snprintf(text, sizeof text, "JUDGE %s sampled: %s\n", mark ? mark : "", what);
    (void)!write(STDERR_FILENO, text, std::min<size_t>(size, sizeof text - 1));
    _exit(0);
  }
  int64_t most_ = INT64_MAX;
};
#endif

}  // namespace cuda_host
