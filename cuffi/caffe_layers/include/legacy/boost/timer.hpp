#pragma once

#include <ctime>

namespace boost {

// Seconds of processor time since it was made or restarted.
class timer {
 public:
  timer() { restart(); }
  void restart() { start_ = std::clock(); }
  double elapsed() const { return static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t start_;
};

}  // namespace boost
