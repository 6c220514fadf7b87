// Timers. Several layers include this; few start one.
#ifndef CAFFE_UTIL_BENCHMARK_H_
#define CAFFE_UTIL_BENCHMARK_H_

#include <chrono>

#include "caffe/common.hpp"

namespace caffe {

// Measures wall time. In GPU mode both ends wait for the stream.
class Timer {
 public:
  Timer() {}
  virtual ~Timer() {}
  virtual void Start() {
    if (running_) return;
    Await();
    begin_ = Clock::now();
    running_ = has_run_at_least_once_ = true;
  }
  virtual void Stop() {
    if (!running_) return;
    Await();
    end_ = Clock::now();
    running_ = false;
  }
  virtual float MicroSeconds() {
    if (!has_run_at_least_once_) {
      LOG(WARNING) << "Timer has never been run before reading time.";
      return 0;
    }
    Stop();
    return std::chrono::duration<float, std::micro>(end_ - begin_).count();
  }
  virtual float MilliSeconds() { return MicroSeconds() / 1000; }
  virtual float Seconds() { return MicroSeconds() / 1e6f; }

  bool initted() { return true; }
  bool running() { return running_; }
  bool has_run_at_least_once() { return has_run_at_least_once_; }

 protected:
  virtual void Await() {
    if (Caffe::mode() == Caffe::GPU) CUDA_CHECK(cudaStreamSynchronize(current_stream()));
  }

  typedef std::chrono::steady_clock Clock;
  Clock::time_point begin_, end_;
  bool running_ = false;
  bool has_run_at_least_once_ = false;
};

class CPUTimer : public Timer {
 protected:
  virtual void Await() {}
};

}  // namespace caffe

#endif  // CAFFE_UTIL_BENCHMARK_H_
