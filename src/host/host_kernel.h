// The launch of a kernel: what was asked for, and the limits of all launches.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include <atomic>
#include <stdexcept>
#include <string>

#include "host/cuda_runtime.h"
#include "host_races.h"

namespace cuda_host {
namespace {

constexpr int64_t kMaxThreadsPerBlock = 1024;
constexpr int64_t kPartElements = 1 << 15;  // kRange: large beside a call, small enough to balance
constexpr int64_t kStridesParts = 16;       // kStrides: of a range whose length only the kernel knows
constexpr int64_t kBlocksThreads = 4096;    // kBlocks: threads of one call, or more of a large grid,
constexpr int64_t kBlocksParts = 64;        // of which each host thread gets so many calls
constexpr double kThreadPaysOff = 100e-6;   // seconds of work for which one more host thread pays
constexpr size_t kMostBlocksAtOnce = 1024;  // that wait for each other
constexpr double kHelpAfter = 1e-3, kFullAfter = 1,
                 kLostAfter = 60;  // seconds in which all threads of a block spin

struct Launch {
  dim3 grid, block;
  size_t shared_bytes = 0;
  bool pending = false, refused = false, cooperative = false;
  const void* caller = nullptr;  // where the host launches
};
thread_local Launch next_launch;
thread_local cudaError_t pending_error = cudaSuccess;
// For the race finder: some mistakes show only if the last thread runs first.
const bool backwards = RaceFinder::kOn && getenv("CAFFE_RACES_BACKWARDS");
// Others, only if threads and blocks change at atomic operations: the first ones of each launch.
const bool changing = RaceFinder::kOn && getenv("CAFFE_RACES_CHANGING");
// For the judge: what does a program give if no kernel runs?
const bool idle = RaceFinder::kOn && getenv("CAFFE_JUDGE_IDLE");
constexpr int kChanges = 2000;
std::atomic<int> changes_left{0};

std::atomic<int> thread_limit{0};             // 0: one per core
std::atomic<size_t> shared_limit{48 * 1024};  // more only after cudaFuncSetAttribute, as on a GPU

struct Kernel {
  const char* name;
  void (*call)(const void*);
  const void* body;
  Launch launch;
  void (*call_blocks)(const void*, int64_t, int64_t) = nullptr;  // kBlocks
};

std::string text_of(Place place) {
  return "line " + std::to_string(place.line) +
         (place.column ? ", column " + std::to_string(place.column) : "");
}

[[noreturn]] void fail(const Kernel& kernel, const std::string& what) {
  throw std::runtime_error(std::string("kernel ") + kernel.name + ": " + what);
}

}  // namespace
}  // namespace cuda_host
