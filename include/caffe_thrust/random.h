// thrust's engines and distributions, with thrust's numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "caffe_thrust/memory.h"

namespace thrust {
namespace random {

// x = (a x + c) mod m; m = 0 is 2^32.
template <typename UInt, UInt A, UInt C, UInt M>
class linear_congruential_engine {
 public:
  typedef UInt result_type;
  static constexpr result_type multiplier = A, increment = C, modulus = M, default_seed = 1;
  static constexpr result_type min = C == 0, max = M - 1;

  __host__ __device__ explicit linear_congruential_engine(result_type seed_value = default_seed) {
    seed(seed_value);
  }
  __host__ __device__ void seed(result_type value = default_seed) {
    at_ = C % modulo() == 0 && value % modulo() == 0 ? 1 : static_cast<UInt>(value % modulo());
  }
  __host__ __device__ result_type operator()() {
    return at_ = static_cast<UInt>((std::uint64_t{A} * at_ + C) % modulo());
  }
  // As after `count` calls: the step's power by squares.
  __host__ __device__ void discard(unsigned long long count) {
    std::uint64_t a = A, c = C, power = 1, sum = 0;
    for (; count; count >>= 1) {
      if (count & 1) power = power * a % modulo(), sum = (sum * a + c) % modulo();
      c = (a + 1) * c % modulo();
      a = a * a % modulo();
    }
    at_ = static_cast<UInt>((power * at_ + sum) % modulo());
  }
  friend bool operator==(const linear_congruential_engine& a, const linear_congruential_engine& b) {
    return a.at_ == b.at_;
  }
  friend bool operator!=(const linear_congruential_engine& a, const linear_congruential_engine& b) {
    return !(a == b);
  }

 private:
  static constexpr std::uint64_t modulo() { return M ? std::uint64_t{M} : std::uint64_t{1} << 32; }
  UInt at_;
};
typedef linear_congruential_engine<std::uint32_t, 16807, 0, 2147483647> minstd_rand0;
typedef linear_congruential_engine<std::uint32_t, 48271, 0, 2147483647> minstd_rand;
typedef minstd_rand default_random_engine;

// Uniform in [a, b).
template <typename T = double>
class uniform_real_distribution {
 public:
  typedef T result_type;
  __host__ __device__ explicit uniform_real_distribution(T a = 0, T b = 1) : a_(a), b_(b) {}
  template <typename Engine>
  __host__ __device__ T operator()(Engine& engine) const {
    T value = static_cast<T>(engine() - Engine::min);
    value /= T(1) + static_cast<T>(Engine::max - Engine::min);
    return value * (b_ - a_) + a_;
  }
  __host__ __device__ T a() const { return a_; }
  __host__ __device__ T b() const { return b_; }
  void reset() {}

 private:
  T a_, b_;
};

// Uniform in [a, b].
template <typename T = int>
class uniform_int_distribution {
 public:
  typedef T result_type;
  __host__ __device__ explicit uniform_int_distribution(T a = 0, T b = std::numeric_limits<T>::max())
      : a_(a), b_(b) {}
  template <typename Engine>
  __host__ __device__ T operator()(Engine& engine) const {
    return static_cast<T>(uniform_real_distribution<double>(a_, static_cast<double>(b_) + 1)(engine));
  }
  __host__ __device__ T a() const { return a_; }
  __host__ __device__ T b() const { return b_; }
  void reset() {}

 private:
  T a_, b_;
};

// By the inverse of erfc, as a GPU computes it.
template <typename T = double>
class normal_distribution {
 public:
  typedef T result_type;
  __host__ __device__ explicit normal_distribution(T mean = 0, T deviation = 1)
      : mean_(mean), deviation_(deviation) {}
  template <typename Engine>
  __host__ __device__ T operator()(Engine& engine) const {
    constexpr auto range = Engine::max - Engine::min;
    constexpr T scale = static_cast<T>(1. / range);
    T root = static_cast<T>(-1.4142135623730950488016887242097);
    auto value = engine() - Engine::min;
    if (value > range / 2) value = range - value, root = -root;
    const T p = value * scale + scale / 2;
    return mean_ + deviation_ * root * erfcinv(2 * p);
  }
  __host__ __device__ T mean() const { return mean_; }
  __host__ __device__ T stddev() const { return deviation_; }
  void reset() {}

 private:
  T mean_, deviation_;
};

}  // namespace random
using namespace random;
}  // namespace thrust
