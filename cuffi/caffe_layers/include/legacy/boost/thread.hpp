#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "boost/shared_ptr.hpp"
#include "boost/thread/mutex.hpp"

namespace boost {

using std::thread;

struct thread_interrupted {};

// One value per thread. Each thread makes its own.
template <typename T>
class thread_specific_ptr {
 public:
  T* get() const { return slot().get(); }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }
  void reset(T* value = nullptr) { slot().reset(value); }

 private:
  static std::unique_ptr<T>& slot() {
    static thread_local std::unique_ptr<T> value;
    return value;
  }
};

}  // namespace boost
