// cuRAND on the host: the functions for kernels, and the generators that host code calls. Each generator is Philox4x32-10 here,
// so its numbers have cuRAND's distributions, not cuRAND's sequence: one seed gives one sequence. Quasirandom generators are not
// here: a program that names one does not compile.
#pragma once

#include <math.h>

#include <random>

#include "../curand_kernel.h"

#define CURAND_VER_MAJOR 10
#define CURAND_VERSION 10300
enum curandStatus {
  CURAND_STATUS_SUCCESS = 0,
  CURAND_STATUS_VERSION_MISMATCH = 100,
  CURAND_STATUS_NOT_INITIALIZED = 101,
  CURAND_STATUS_ALLOCATION_FAILED = 102,
  CURAND_STATUS_TYPE_ERROR = 103,
  CURAND_STATUS_OUT_OF_RANGE = 104,
  CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
  CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
  CURAND_STATUS_LAUNCH_FAILURE = 201,
  CURAND_STATUS_PREEXISTING_FAILURE = 202,
  CURAND_STATUS_INITIALIZATION_FAILED = 203,
  CURAND_STATUS_ARCH_MISMATCH = 204,
  CURAND_STATUS_INTERNAL_ERROR = 999,
};
typedef curandStatus curandStatus_t;
enum curandRngType {
  CURAND_RNG_PSEUDO_DEFAULT = 100,
  CURAND_RNG_PSEUDO_XORWOW = 101,
  CURAND_RNG_PSEUDO_MRG32K3A = 121,
  CURAND_RNG_PSEUDO_MTGP32 = 141,
  CURAND_RNG_PSEUDO_MT19937 = 142,
  CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161,
};
typedef curandRngType curandRngType_t;
enum curandOrdering {
  CURAND_ORDERING_PSEUDO_BEST = 100,
  CURAND_ORDERING_PSEUDO_DEFAULT = 101,
  CURAND_ORDERING_PSEUDO_SEEDED = 102,
  CURAND_ORDERING_PSEUDO_LEGACY = 103,
  CURAND_ORDERING_PSEUDO_DYNAMIC = 104,
};
typedef curandOrdering curandOrdering_t;

struct curandGenerator_st {
  curandRngType type;
  unsigned long long seed = 0, next = 0;  // which of its numbers of 32 bits comes next
  unsigned int operator()() {
    const unsigned int low = static_cast<unsigned int>(seed),
                       high = static_cast<unsigned int>(seed >> 32) ^ static_cast<unsigned int>(type);
    const unsigned long long at = next / 4;
    const uint4 four = caffe_curand::philox(
        make_uint4(static_cast<unsigned int>(at), static_cast<unsigned int>(at >> 32), 0, 0),
        make_uint2(low, high));
    const unsigned int each[] = {four.x, four.y, four.z, four.w};
    return each[next++ % 4];
  }
  // For <random>.
  typedef unsigned int result_type;
  static constexpr unsigned int min() { return 0; }
  static constexpr unsigned int max() { return 0xffffffffu; }
};
typedef curandGenerator_st* curandGenerator_t;

inline curandStatus_t curandCreateGenerator(curandGenerator_t* made, curandRngType_t type) {
  if (type == CURAND_RNG_PSEUDO_DEFAULT) type = CURAND_RNG_PSEUDO_XORWOW;
  return *made = new curandGenerator_st{type}, CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandCreateGeneratorHost(curandGenerator_t* made, curandRngType_t type) {
  return curandCreateGenerator(made, type);
}
inline curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  return delete generator, CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandGetVersion(int* version) {
  return *version = CURAND_VERSION, CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t) {
  return generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}
inline curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t) {
  return generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}
inline curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
  return generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}
inline curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator,
                                                         unsigned long long seed) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  generator->seed = seed;
  return generator->next = 0, CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  return generator->next = offset, CURAND_STATUS_SUCCESS;
}

namespace caffe_curand {

// Fill n elements by a function that gives one.
template <typename T, typename Make>
inline curandStatus_t fill(curandGenerator_t generator, T* out, size_t n, const Make& make) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  for (size_t i = 0; i < n; ++i) out[i] = make(*generator);
  cuda_host::memory_set(out, n * sizeof(T));
  return CURAND_STATUS_SUCCESS;
}

// In doubles, also for floats: normal numbers by pairs, of which cuRAND wants an even count.
template <typename T, typename Function>
inline curandStatus_t fill_normal(curandGenerator_t generator, T* out, size_t n, const Function& of_normal) {
  if (generator && n % 2) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  double spare = 0;
  bool has_spare = false;
  return fill(generator, out, n, [&](curandGenerator_st& next) {
    has_spare = !has_spare;
    if (!has_spare) return static_cast<T>(of_normal(spare));
    const unsigned int a = next(), b = next(), c = next();
    const double2 two = normal_double(make_uint4(a, b, c, next()));
    spare = two.y;
    return static_cast<T>(of_normal(two.x));
  });
}

}  // namespace caffe_curand

inline curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int* out, size_t n) {
  return caffe_curand::fill(generator, out, n, [](curandGenerator_st& next) { return next(); });
}
inline curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* out, size_t n) {
  return caffe_curand::fill(generator, out, n,
                            [](curandGenerator_st& next) { return caffe_curand::uniform(next()); });
}
inline curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* out, size_t n) {
  return caffe_curand::fill(generator, out, n, [](curandGenerator_st& next) {
    const unsigned int low = next();
    return caffe_curand::uniform_double(low, next());
  });
}
#define CAFFE_CURAND_NORMAL(Name, T, ...)                                                            \
  inline curandStatus_t curandGenerate##Name(curandGenerator_t generator, T* out, size_t n, T mean,  \
                                             T deviation) {                                          \
    return caffe_curand::fill_normal(generator, out, n, [=](double normal) { return __VA_ARGS__; }); \
  }
CAFFE_CURAND_NORMAL(Normal, float, mean + deviation * normal)
CAFFE_CURAND_NORMAL(NormalDouble, double, mean + deviation * normal)
CAFFE_CURAND_NORMAL(LogNormal, float, exp(mean + deviation * normal))
CAFFE_CURAND_NORMAL(LogNormalDouble, double, exp(mean + deviation * normal))
#undef CAFFE_CURAND_NORMAL
inline curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int* out, size_t n,
                                            double mean) {
  if (generator && !(mean > 0 && mean <= 400000)) return CURAND_STATUS_OUT_OF_RANGE;
  std::poisson_distribution<unsigned int> poisson(mean);
  return caffe_curand::fill(generator, out, n, [&](curandGenerator_st& next) { return poisson(next); });
}
