// Caffe's vector and matrix functions. Matrices are row-major. Any count may be 0. With beta == 0 the output
// is not read. caffe_gpu_* work on the current stream; on the host backend they work on host memory.
#pragma once

#include <stdint.h>
#include <string.h>

#include "caffe/common.hpp"
#include "caffe/util/device_alternate.hpp"
#include "caffe/util/mkl_alternate.hpp"
#include "glog/logging.h"

namespace caffe {

// ------------------------------------------------------------------------------------ matrices

// C = alpha op(A) op(B) + beta C; op(A) is M x K, op(B) is K x N.
template <typename Dtype>
void caffe_cpu_gemm(const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB, const int M, const int N,
                    const int K, const Dtype alpha, const Dtype* A, const Dtype* B, const Dtype beta,
                    Dtype* C);
template <typename Dtype>
void caffe_gpu_gemm(const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB, const int M, const int N,
                    const int K, const Dtype alpha, const Dtype* A, const Dtype* B, const Dtype beta,
                    Dtype* C);

// y = alpha op(A) x + beta y; A itself is M x N.
template <typename Dtype>
void caffe_cpu_gemv(const CBLAS_TRANSPOSE TransA, const int M, const int N, const Dtype alpha, const Dtype* A,
                    const Dtype* x, const Dtype beta, Dtype* y);
template <typename Dtype>
void caffe_gpu_gemv(const CBLAS_TRANSPOSE TransA, const int M, const int N, const Dtype alpha, const Dtype* A,
                    const Dtype* x, const Dtype beta, Dtype* y);

// -------------------------------------------------------------------------------- memory

// Copies between any of host and device. When it returns, the caller may use the host memory again.
void caffe_gpu_memcpy(const size_t N, const void* X, void* Y);

// Copies in any direction in GPU mode, between host addresses in CPU mode.
template <typename Dtype>
void caffe_copy(const int N, const Dtype* X, Dtype* Y) {
  if (X == Y || N <= 0) return;
  if (Caffe::mode() == Caffe::GPU) {
    caffe_gpu_memcpy(sizeof(Dtype) * N, X, Y);
  } else {
    memmove(static_cast<void*>(Y), X, sizeof(Dtype) * N);
  }
}

template <typename Dtype>
void caffe_set(const int N, const Dtype alpha, Dtype* X) {
  std::fill_n(X, std::max(N, 0), alpha);
}

template <typename Dtype>
void caffe_gpu_set(const int N, const Dtype alpha, Dtype* X);

inline void caffe_memset(const size_t N, const int alpha, void* X) { memset(X, alpha, N); }

inline void caffe_gpu_memset(const size_t N, const int alpha, void* X) {
  if (N) CUDA_CHECK(cudaMemsetAsync(X, alpha, N, current_stream()));
}

// ------------------------------------------------------------------------------------ vectors

// y = alpha x + y, and y = alpha x + beta y
template <typename Dtype>
void caffe_axpy(const int N, const Dtype alpha, const Dtype* X, Dtype* Y);
template <typename Dtype>
void caffe_gpu_axpy(const int N, const Dtype alpha, const Dtype* X, Dtype* Y);
template <typename Dtype>
void caffe_cpu_axpby(const int N, const Dtype alpha, const Dtype* X, const Dtype beta, Dtype* Y);
template <typename Dtype>
void caffe_gpu_axpby(const int N, const Dtype alpha, const Dtype* X, const Dtype beta, Dtype* Y);

// x = alpha x; y = alpha x; x = x + alpha
template <typename Dtype>
void caffe_scal(const int N, const Dtype alpha, Dtype* X);
template <typename Dtype>
void caffe_gpu_scal(const int N, const Dtype alpha, Dtype* X);
template <typename Dtype>
void caffe_gpu_scal(const int N, const Dtype alpha, Dtype* X, cudaStream_t stream);
template <typename Dtype>
void caffe_cpu_scale(const int n, const Dtype alpha, const Dtype* x, Dtype* y);
template <typename Dtype>
void caffe_gpu_scale(const int n, const Dtype alpha, const Dtype* x, Dtype* y);
template <typename Dtype>
void caffe_add_scalar(const int N, const Dtype alpha, Dtype* X);
template <typename Dtype>
void caffe_gpu_add_scalar(const int N, const Dtype alpha, Dtype* X);

// Element by element; y may be a or b.
template <typename Dtype>
void caffe_add(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_sub(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_mul(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_div(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_sqr(const int N, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_sqrt(const int N, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_exp(const int n, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_log(const int n, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_abs(const int n, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_powx(const int n, const Dtype* a, const Dtype b, Dtype* y);

template <typename Dtype>
void caffe_gpu_add(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_gpu_sub(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_gpu_mul(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_gpu_div(const int N, const Dtype* a, const Dtype* b, Dtype* y);
template <typename Dtype>
void caffe_gpu_sqrt(const int n, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_gpu_exp(const int n, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_gpu_log(const int n, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_gpu_abs(const int n, const Dtype* a, Dtype* y);
template <typename Dtype>
void caffe_gpu_powx(const int n, const Dtype* a, const Dtype b, Dtype* y);
template <typename Dtype>
void caffe_gpu_sign(const int n, const Dtype* x, Dtype* y);
template <typename Dtype>
void caffe_gpu_sgnbit(const int n, const Dtype* x, Dtype* y);
template <typename Dtype>
void caffe_gpu_fabs(const int n, const Dtype* x, Dtype* y);

// -1, 0 or 1; NaN gives 0.
template <typename Dtype>
inline int8_t caffe_sign(Dtype val) {
  return (Dtype(0) < val) - (val < Dtype(0));
}

// Defines caffe_cpu_<name>(n, x, y); `operation` is a statement that sets y[i] from x[i].
#define DEFINE_CAFFE_CPU_UNARY_FUNC(name, operation)             \
  template <typename Dtype>                                      \
  void caffe_cpu_##name(const int n, const Dtype* x, Dtype* y) { \
    for (int i = 0; i < n; ++i) {                                \
      operation;                                                 \
    }                                                            \
  }

DEFINE_CAFFE_CPU_UNARY_FUNC(sign, y[i] = caffe_sign<Dtype>(x[i]))
DEFINE_CAFFE_CPU_UNARY_FUNC(sgnbit, y[i] = static_cast<Dtype>((std::signbit)(x[i])))
DEFINE_CAFFE_CPU_UNARY_FUNC(fabs, y[i] = std::fabs(x[i]))

// Defines a kernel <name>_kernel and caffe_gpu_<name>(n, x, y), declared elsewhere, for float and double.
// `operation` sets y[index] from x[index]. The launch is written for each compiler, because our tools, which
// rewrite launches elsewhere, do not expand macros.
#ifdef __CUDACC__
#define CAFFE_GPU_UNARY_KERNEL_(name, operation)                         \
  template <typename Dtype>                                              \
  __global__ void name##_kernel(const int n, const Dtype* x, Dtype* y) { \
    CUDA_KERNEL_LOOP(index, n) {                                         \
      operation;                                                         \
    }                                                                    \
  }
#define CAFFE_GPU_UNARY_LAUNCH_(name, Dtype) \
  name##_kernel<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS, 0, ::caffe::current_stream()>>>(n, x, y)
#else
#define CAFFE_GPU_UNARY_KERNEL_(name, operation)              \
  template <typename Dtype>                                   \
  void name##_kernel(const int n, const Dtype* x, Dtype* y) { \
    for (int index = 0; index < n; ++index) {                 \
      operation;                                              \
    }                                                         \
  }
#define CAFFE_GPU_UNARY_LAUNCH_(name, Dtype) name##_kernel<Dtype>(n, x, y)
#endif

#define DEFINE_AND_INSTANTIATE_GPU_UNARY_FUNC(name, operation)             \
  CAFFE_GPU_UNARY_KERNEL_(name, operation)                                 \
  template <>                                                              \
  void caffe_gpu_##name<float>(const int n, const float* x, float* y) {    \
    CAFFE_GPU_UNARY_LAUNCH_(name, float);                                  \
    CUDA_POST_KERNEL_CHECK;                                                \
  }                                                                        \
  template <>                                                              \
  void caffe_gpu_##name<double>(const int n, const double* x, double* y) { \
    CAFFE_GPU_UNARY_LAUNCH_(name, double);                                 \
    CUDA_POST_KERNEL_CHECK;                                                \
  }

// ---------------------------------------------------------------------------------- reductions

template <typename Dtype>
Dtype caffe_cpu_dot(const int n, const Dtype* x, const Dtype* y);
template <typename Dtype>
Dtype caffe_cpu_strided_dot(const int n, const Dtype* x, const int incx, const Dtype* y, const int incy);
template <typename Dtype>
Dtype caffe_cpu_asum(const int n, const Dtype* x);
// The number of bits that differ. Each value is converted to an unsigned integer of its size. From Caffe
// before 2015.
template <typename Dtype>
int caffe_cpu_hamming_distance(const int n, const Dtype* x, const Dtype* y);

// The result goes to host memory, so these wait for the stream and cannot be part of a CUDA graph.
template <typename Dtype>
void caffe_gpu_dot(const int n, const Dtype* x, const Dtype* y, Dtype* out);
template <typename Dtype>
void caffe_gpu_asum(const int n, const Dtype* x, Dtype* y);

// ------------------------------------------------------------------------------ random numbers

unsigned int caffe_rng_rand();

// The next representable value towards the largest one.
template <typename Dtype>
Dtype caffe_nextafter(const Dtype b);

template <typename Dtype>
void caffe_rng_uniform(const int n, const Dtype a, const Dtype b, Dtype* r);
template <typename Dtype>
void caffe_rng_gaussian(const int n, const Dtype mu, const Dtype sigma, Dtype* r);
template <typename Dtype>
void caffe_rng_bernoulli(const int n, const Dtype p, int* r);
template <typename Dtype>
void caffe_rng_bernoulli(const int n, const Dtype p, unsigned int* r);

void caffe_gpu_rng_uniform(const int n, unsigned int* r);  // all 32 bits
template <typename Dtype>
void caffe_gpu_rng_uniform(const int n, const Dtype a, const Dtype b, Dtype* r);
template <typename Dtype>
void caffe_gpu_rng_gaussian(const int n, const Dtype mu, const Dtype sigma, Dtype* r);
template <typename Dtype>
void caffe_gpu_rng_bernoulli(const int n, const Dtype p, int* r);
template <typename Dtype>
void caffe_gpu_rng_bernoulli(const int n, const Dtype p, unsigned int* r);

}  // namespace caffe
