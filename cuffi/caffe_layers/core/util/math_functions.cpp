// Caffe's matrix functions and random numbers on the host.
#include "caffe/util/math_functions.hpp"

#include <limits>

#include "caffe/host_services.hpp"
#include "caffe/util/rng.hpp"
#include "fill_random.hpp"

namespace caffe {

#define DEFINE_BLAS(s, Dtype)                                                                                \
  template <>                                                                                                \
  void caffe_cpu_gemm(const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB, const int M, const int N,  \
                      const int K, const Dtype alpha, const Dtype* A, const Dtype* B, const Dtype beta,      \
                      Dtype* C) {                                                                            \
    cblas_##s##gemm(CblasRowMajor, TransA, TransB, M, N, K, alpha, A, TransA == CblasNoTrans ? K : M, B,     \
                    TransB == CblasNoTrans ? N : K, beta, C, N);                                             \
  }                                                                                                          \
  template <>                                                                                                \
  void caffe_cpu_gemv(const CBLAS_TRANSPOSE TransA, const int M, const int N, const Dtype alpha,             \
                      const Dtype* A, const Dtype* x, const Dtype beta, Dtype* y) {                          \
    cblas_##s##gemv(CblasRowMajor, TransA, M, N, alpha, A, N, x, 1, beta, y, 1);                             \
  }                                                                                                          \
  template <>                                                                                                \
  Dtype caffe_cpu_strided_dot(const int n, const Dtype* x, const int incx, const Dtype* y, const int incy) { \
    return cblas_##s##dot(n, x, incx, y, incy);                                                              \
  }                                                                                                          \
  template <>                                                                                                \
  Dtype caffe_cpu_dot(const int n, const Dtype* x, const Dtype* y) {                                         \
    return cblas_##s##dot(n, x, 1, y, 1);                                                                    \
  }                                                                                                          \
  template <>                                                                                                \
  Dtype caffe_cpu_asum(const int n, const Dtype* x) {                                                        \
    return cblas_##s##asum(n, x, 1);                                                                         \
  }
DEFINE_BLAS(s, float)
DEFINE_BLAS(d, double)

template <>
int caffe_cpu_hamming_distance(const int n, const float* x, const float* y) {
  int distance = 0;
  for (int i = 0; i < n; ++i)
    distance += __builtin_popcount(static_cast<uint32_t>(x[i]) ^ static_cast<uint32_t>(y[i]));
  return distance;
}

template <>
int caffe_cpu_hamming_distance(const int n, const double* x, const double* y) {
  int distance = 0;
  for (int i = 0; i < n; ++i)
    distance += __builtin_popcountll(static_cast<uint64_t>(x[i]) ^ static_cast<uint64_t>(y[i]));
  return distance;
}

// ------------------------------------------------------------------------------ random numbers

unsigned int caffe_rng_rand() { return (*caffe_rng())(); }

template <typename Dtype>
Dtype caffe_nextafter(const Dtype b) {
  return std::nextafter(b, std::numeric_limits<Dtype>::max());
}

template <typename Dtype>
void caffe_rng_uniform(const int n, const Dtype a, const Dtype b, Dtype* r) {
  fill_random(kUniform, n, r, kHostMemory, a, b);
}

template <typename Dtype>
void caffe_rng_gaussian(const int n, const Dtype mu, const Dtype sigma, Dtype* r) {
  fill_random(kGaussian, n, r, kHostMemory, mu, sigma);
}

template <typename Dtype>
void caffe_rng_bernoulli(const int n, const Dtype p, int* r) {
  fill_random(kBernoulli, n, r, kHostMemory, p);
}

template <typename Dtype>
void caffe_rng_bernoulli(const int n, const Dtype p, unsigned int* r) {
  fill_random(kBernoulli, n, r, kHostMemory, p);
}

#define INSTANTIATE(Dtype)                                                       \
  template Dtype caffe_nextafter(const Dtype);                                   \
  template void caffe_rng_uniform(const int, const Dtype, const Dtype, Dtype*);  \
  template void caffe_rng_gaussian(const int, const Dtype, const Dtype, Dtype*); \
  template void caffe_rng_bernoulli(const int, const Dtype, int*);               \
  template void caffe_rng_bernoulli(const int, const Dtype, unsigned int*);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace caffe
