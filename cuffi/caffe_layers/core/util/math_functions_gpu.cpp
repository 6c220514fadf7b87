// The GPU functions without kernels of our own: cuBLAS, copies, random numbers.
#include "caffe/host_services.hpp"
#include "caffe/util/cublas.hpp"
#include "caffe/util/math_functions.hpp"
#include "fill_random.hpp"

namespace caffe {

namespace {

// torch's cuBLAS handle, set to scalars and results in host memory, as in Caffe. The destructor restores it.
class HostScalars {
 public:
  HostScalars() : handle_(Caffe::cublas_handle()) {
    CUBLAS_CHECK(cublasGetPointerMode(handle_, &found_));
    CUBLAS_CHECK(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_HOST));
  }
  ~HostScalars() { cublasSetPointerMode(handle_, found_); }
  HostScalars(const HostScalars&) = delete;
  HostScalars& operator=(const HostScalars&) = delete;
  operator cublasHandle_t() const { return handle_; }

 private:
  cublasHandle_t handle_;
  cublasPointerMode_t found_;
};

cublasOperation_t operation(CBLAS_TRANSPOSE trans) {
  return trans == CblasNoTrans ? CUBLAS_OP_N : CUBLAS_OP_T;
}

template <typename Dtype>
void scale_or_clear(int n, Dtype beta, Dtype* y) {
  if (beta == 0) {
    caffe_gpu_set(n, Dtype(0), y);
  } else {
    caffe_gpu_scal(n, beta, y);
  }
}

// A result in host memory means waiting for the stream, which is not allowed while a graph is captured.
void refuse_in_capture(const char* function) {
#ifndef CAFFE_HOST_BACKEND
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CUDA_CHECK(cudaStreamIsCapturing(current_stream(), &status));
  if (status != cudaStreamCaptureStatusNone)
    LOG(FATAL) << function << " brings its result to the host: cannot be captured in a CUDA graph";
#endif
}

}  // namespace

// cuBLAS is column-major: it reads a row-major matrix as its transpose. So compute C' = op(B)' op(A)'.
#define DEFINE_BLAS(S, Dtype)                                                                               \
  template <>                                                                                               \
  void caffe_gpu_gemm(const CBLAS_TRANSPOSE TransA, const CBLAS_TRANSPOSE TransB, const int M, const int N, \
                      const int K, const Dtype alpha, const Dtype* A, const Dtype* B, const Dtype beta,     \
                      Dtype* C) {                                                                           \
    if (M <= 0 || N <= 0) return;                                                                           \
    const int lda = std::max(1, TransA == CblasNoTrans ? K : M);                                            \
    const int ldb = std::max(1, TransB == CblasNoTrans ? N : K);                                            \
    CUBLAS_CHECK(cublas##S##gemm(HostScalars(), operation(TransB), operation(TransA), N, M, K, &alpha, B,   \
                                 ldb, A, lda, &beta, C, N));                                                \
  }                                                                                                         \
  template <>                                                                                               \
  void caffe_gpu_gemv(const CBLAS_TRANSPOSE TransA, const int M, const int N, const Dtype alpha,            \
                      const Dtype* A, const Dtype* x, const Dtype beta, Dtype* y) {                         \
    const bool plain = TransA == CblasNoTrans;                                                              \
    if (M <= 0 || N <= 0) { /* cuBLAS would return without touching y */                                    \
      scale_or_clear(plain ? M : N, beta, y);                                                               \
    } else {                                                                                                \
      CUBLAS_CHECK(cublas##S##gemv(HostScalars(), plain ? CUBLAS_OP_T : CUBLAS_OP_N, N, M, &alpha, A, N, x, \
                                   1, &beta, y, 1));                                                        \
    }                                                                                                       \
  }                                                                                                         \
  template <>                                                                                               \
  void caffe_gpu_dot(const int n, const Dtype* x, const Dtype* y, Dtype* out) {                             \
    refuse_in_capture("caffe_gpu_dot");                                                                     \
    CUBLAS_CHECK(cublas##S##dot(HostScalars(), n, x, 1, y, 1, out));                                        \
  }                                                                                                         \
  template <>                                                                                               \
  void caffe_gpu_asum(const int n, const Dtype* x, Dtype* y) {                                              \
    refuse_in_capture("caffe_gpu_asum");                                                                    \
    CUBLAS_CHECK(cublas##S##asum(HostScalars(), n, x, 1, y));                                               \
  }
DEFINE_BLAS(S, float)
DEFINE_BLAS(D, double)

void caffe_gpu_memcpy(const size_t N, const void* X, void* Y) {
  if (!N || X == Y) return;
#ifdef CAFFE_HOST_BACKEND
  memmove(Y, X, N);
#else
  CUDA_CHECK(caffe_stream_memcpy(Y, X, N, cudaMemcpyDefault));
#endif
}

// ------------------------------------------------------------------------------ random numbers

void caffe_gpu_rng_uniform(const int n, unsigned int* r) { fill_random(kAllBits, n, r, call_context.device); }

template <typename Dtype>
void caffe_gpu_rng_uniform(const int n, const Dtype a, const Dtype b, Dtype* r) {
  fill_random(kUniform, n, r, call_context.device, a, b);
}

template <typename Dtype>
void caffe_gpu_rng_gaussian(const int n, const Dtype mu, const Dtype sigma, Dtype* r) {
  fill_random(kGaussian, n, r, call_context.device, mu, sigma);
}

template <typename Dtype>
void caffe_gpu_rng_bernoulli(const int n, const Dtype p, int* r) {
  fill_random(kBernoulli, n, r, call_context.device, p);
}

template <typename Dtype>
void caffe_gpu_rng_bernoulli(const int n, const Dtype p, unsigned int* r) {
  fill_random(kBernoulli, n, r, call_context.device, p);
}

#define INSTANTIATE(Dtype)                                                           \
  template void caffe_gpu_rng_uniform(const int, const Dtype, const Dtype, Dtype*);  \
  template void caffe_gpu_rng_gaussian(const int, const Dtype, const Dtype, Dtype*); \
  template void caffe_gpu_rng_bernoulli(const int, const Dtype, int*);               \
  template void caffe_gpu_rng_bernoulli(const int, const Dtype, unsigned int*);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace caffe
