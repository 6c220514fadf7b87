// Random numbers from torch's generators, through the host's services.
#pragma once

#include <stdint.h>

#include <type_traits>

#include "caffe/common.hpp"
#include "caffe/host_services.hpp"

namespace caffe {

enum Distribution { kUniform = 0, kGaussian = 1, kBernoulli = 2, kAllBits = 3 };
constexpr int64_t kHostMemory = -1;

template <typename Number>
void fill_random(Distribution distribution, int n, Number* r, int64_t device, double a = 0, double b = 0) {
  CHECK_GE(n, 0) << "a negative number of random numbers";
  if (n == 0) return;
  CHECK(r) << "random numbers have no place to go";
  if (distribution == kUniform) CHECK_LE(a, b) << "uniform random numbers from an empty range";
  if (distribution == kGaussian) CHECK_GE(b, 0) << "a normal distribution's deviation";
  if (distribution == kBernoulli) CHECK(a >= 0 && a <= 1) << "a probability of " << a;
  const int64_t dtype = std::is_same<Number, float>::value ? 0 : std::is_same<Number, double>::value ? 1 : 2;
  CHECK(host_services.random(distribution, r, n, dtype, device, a, b)) << "torch made no random numbers";
}

}  // namespace caffe
