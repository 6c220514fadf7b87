// Implements caffe/util/cublas.hpp by torch's cuBLAS, which is looked up at the first use, or by BLAS
// on the host.
#include "caffe/util/cublas.hpp"

#ifdef CAFFE_HOST_BACKEND

#include <stdint.h>

#include <cmath>
#include <functional>

#include "caffe/util/mkl_alternate.hpp"

namespace {
CBLAS_TRANSPOSE transpose(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N ? CblasNoTrans : CblasTrans;
}

// c = alpha op(a) + beta op(b), which BLAS lacks. A matrix with the factor 0 is not read.
template <typename Dtype>
cublasStatus_t add_matrices(cublasOperation_t trans_a, cublasOperation_t trans_b, int m, int n, Dtype alpha,
                            const Dtype* a, int lda, Dtype beta, const Dtype* b, int ldb, Dtype* c, int ldc) {
  const auto at = [](cublasOperation_t trans, int64_t ld, int64_t i, int64_t j) {
    return trans == CUBLAS_OP_N ? j * ld + i : i * ld + j;
  };
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      const Dtype first = alpha == 0 ? 0 : alpha * a[at(trans_a, lda, i, j)];
      c[at(CUBLAS_OP_N, ldc, i, j)] = beta == 0 ? first : first + beta * b[at(trans_b, ldb, i, j)];
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

// The index, from 1, of the first element whose absolute value is before() all others.
template <typename Dtype, typename Before>
int first_of(int n, const Dtype* x, int incx, Before before) {
  int best = 0;
  for (int i = 1; i < n; ++i) {
    if (before(std::abs(x[int64_t(i) * incx]), std::abs(x[int64_t(best) * incx]))) best = i;
  }
  return n > 0 ? best + 1 : 0;
}
}  // namespace

cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetStream(cublasHandle_t, cudaStream_t* stream) {
  return *stream = nullptr, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetPointerMode(cublasHandle_t, cublasPointerMode_t* mode) {
  return *mode = CUBLAS_POINTER_MODE_HOST, CUBLAS_STATUS_SUCCESS;
}

#define CAFFE_DEFINE_CUBLAS(S, s, Dtype)                                                                    \
  cublasStatus_t cublas##S##gemm(cublasHandle_t, cublasOperation_t trans_a, cublasOperation_t trans_b,      \
                                 int m, int n, int k, const Dtype* alpha, const Dtype* a, int lda,          \
                                 const Dtype* b, int ldb, const Dtype* beta, Dtype* c, int ldc) {           \
    cblas_##s##gemm(CblasColMajor, transpose(trans_a), transpose(trans_b), m, n, k, *alpha, a, lda, b, ldb, \
                    *beta, c, ldc);                                                                         \
    return CUBLAS_STATUS_SUCCESS;                                                                           \
  }                                                                                                         \
  cublasStatus_t cublas##S##gemmBatched(cublasHandle_t handle, cublasOperation_t trans_a,                   \
                                        cublasOperation_t trans_b, int m, int n, int k, const Dtype* alpha, \
                                        const Dtype* const* a, int lda, const Dtype* const* b, int ldb,     \
                                        const Dtype* beta, Dtype* const* c, int ldc, int count) {           \
    for (int i = 0; i < count; ++i)                                                                         \
      cublas##S##gemm(handle, trans_a, trans_b, m, n, k, alpha, a[i], lda, b[i], ldb, beta, c[i], ldc);     \
    return CUBLAS_STATUS_SUCCESS;                                                                           \
  }                                                                                                         \
  cublasStatus_t cublas##S##gemmStridedBatched(                                                             \
      cublasHandle_t handle, cublasOperation_t trans_a, cublasOperation_t trans_b, int m, int n, int k,     \
      const Dtype* alpha, const Dtype* a, int lda, long long step_a, const Dtype* b, int ldb,               \
      long long step_b, const Dtype* beta, Dtype* c, int ldc, long long step_c, int count) {                \
    for (int i = 0; i < count; ++i)                                                                         \
      cublas##S##gemm(handle, trans_a, trans_b, m, n, k, alpha, a + i * step_a, lda, b + i * step_b, ldb,   \
                      beta, c + i * step_c, ldc);                                                           \
    return CUBLAS_STATUS_SUCCESS;                                                                           \
  }                                                                                                         \
  cublasStatus_t cublas##S##gemv(cublasHandle_t, cublasOperation_t trans, int m, int n, const Dtype* alpha, \
                                 const Dtype* a, int lda, const Dtype* x, int incx, const Dtype* beta,      \
                                 Dtype* y, int incy) {                                                      \
    cblas_##s##gemv(CblasColMajor, transpose(trans), m, n, *alpha, a, lda, x, incx, *beta, y, incy);        \
    return CUBLAS_STATUS_SUCCESS;                                                                           \
  }                                                                                                         \
  cublasStatus_t cublas##S##axpy(cublasHandle_t, int n, const Dtype* alpha, const Dtype* x, int incx,       \
                                 Dtype* y, int incy) {                                                      \
    return cblas_##s##axpy(n, *alpha, x, incx, y, incy), CUBLAS_STATUS_SUCCESS;                             \
  }                                                                                                         \
  cublasStatus_t cublas##S##scal(cublasHandle_t, int n, const Dtype* alpha, Dtype* x, int incx) {           \
    return cblas_##s##scal(n, *alpha, x, incx), CUBLAS_STATUS_SUCCESS;                                      \
  }                                                                                                         \
  cublasStatus_t cublas##S##copy(cublasHandle_t, int n, const Dtype* x, int incx, Dtype* y, int incy) {     \
    return cblas_##s##copy(n, x, incx, y, incy), CUBLAS_STATUS_SUCCESS;                                     \
  }                                                                                                         \
  cublasStatus_t cublas##S##dot(cublasHandle_t, int n, const Dtype* x, int incx, const Dtype* y, int incy,  \
                                Dtype* result) {                                                            \
    return *result = cblas_##s##dot(n, x, incx, y, incy), CUBLAS_STATUS_SUCCESS;                            \
  }                                                                                                         \
  cublasStatus_t cublas##S##asum(cublasHandle_t, int n, const Dtype* x, int incx, Dtype* result) {          \
    return *result = cblas_##s##asum(n, x, incx), CUBLAS_STATUS_SUCCESS;                                    \
  }                                                                                                         \
  cublasStatus_t cublas##S##nrm2(cublasHandle_t, int n, const Dtype* x, int incx, Dtype* result) {          \
    return *result = cblas_##s##nrm2(n, x, incx), CUBLAS_STATUS_SUCCESS;                                    \
  }                                                                                                         \
  cublasStatus_t cublasI##s##amax(cublasHandle_t, int n, const Dtype* x, int incx, int* result) {           \
    return *result = first_of(n, x, incx, std::greater<Dtype>()), CUBLAS_STATUS_SUCCESS;                    \
  }                                                                                                         \
  cublasStatus_t cublasI##s##amin(cublasHandle_t, int n, const Dtype* x, int incx, int* result) {           \
    return *result = first_of(n, x, incx, std::less<Dtype>()), CUBLAS_STATUS_SUCCESS;                       \
  }                                                                                                         \
  cublasStatus_t cublas##S##geam(cublasHandle_t, cublasOperation_t trans_a, cublasOperation_t trans_b,      \
                                 int m, int n, const Dtype* alpha, const Dtype* a, int lda,                 \
                                 const Dtype* beta, const Dtype* b, int ldb, Dtype* c, int ldc) {           \
    return add_matrices(trans_a, trans_b, m, n, *alpha, a, lda, *beta, b, ldb, c, ldc);                     \
  }
CAFFE_DEFINE_CUBLAS(S, s, float)
CAFFE_DEFINE_CUBLAS(D, d, double)

#else

#include "caffe/host_services.hpp"
#include "find_symbol.hpp"

// Calls the function of that name. Its name in the shared object may have a suffix.
#define CAFFE_CUBLAS_NAMED(name, suffix, ...)                                \
  static auto* const function = caffe::find_symbol<decltype(cublas##name)>(  \
      caffe::host_services.cublas_library, "cuBLAS", "cublas" #name suffix); \
  return function(__VA_ARGS__)
#define CAFFE_CUBLAS(name, ...) CAFFE_CUBLAS_NAMED(name, "_v2", __VA_ARGS__)

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  CAFFE_CUBLAS(SetStream, handle, stream);
}
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  CAFFE_CUBLAS(GetStream, handle, stream);
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  CAFFE_CUBLAS(SetPointerMode, handle, mode);
}
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  CAFFE_CUBLAS(GetPointerMode, handle, mode);
}

#define CAFFE_FORWARD_CUBLAS(S, s, Dtype)                                                                    \
  cublasStatus_t cublas##S##gemm(cublasHandle_t handle, cublasOperation_t trans_a,                           \
                                 cublasOperation_t trans_b, int m, int n, int k, const Dtype* alpha,         \
                                 const Dtype* a, int lda, const Dtype* b, int ldb, const Dtype* beta,        \
                                 Dtype* c, int ldc) {                                                        \
    CAFFE_CUBLAS(S##gemm, handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);           \
  }                                                                                                          \
  cublasStatus_t cublas##S##gemmBatched(cublasHandle_t handle, cublasOperation_t trans_a,                    \
                                        cublasOperation_t trans_b, int m, int n, int k, const Dtype* alpha,  \
                                        const Dtype* const* a, int lda, const Dtype* const* b, int ldb,      \
                                        const Dtype* beta, Dtype* const* c, int ldc, int count) {            \
    CAFFE_CUBLAS_NAMED(S##gemmBatched, "", handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta,   \
                       c, ldc, count);                                                                       \
  }                                                                                                          \
  cublasStatus_t cublas##S##gemmStridedBatched(                                                              \
      cublasHandle_t handle, cublasOperation_t trans_a, cublasOperation_t trans_b, int m, int n, int k,      \
      const Dtype* alpha, const Dtype* a, int lda, long long step_a, const Dtype* b, int ldb,                \
      long long step_b, const Dtype* beta, Dtype* c, int ldc, long long step_c, int count) {                 \
    CAFFE_CUBLAS_NAMED(S##gemmStridedBatched, "", handle, trans_a, trans_b, m, n, k, alpha, a, lda, step_a,  \
                       b, ldb, step_b, beta, c, ldc, step_c, count);                                         \
  }                                                                                                          \
  cublasStatus_t cublas##S##gemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n,               \
                                 const Dtype* alpha, const Dtype* a, int lda, const Dtype* x, int incx,      \
                                 const Dtype* beta, Dtype* y, int incy) {                                    \
    CAFFE_CUBLAS(S##gemv, handle, trans, m, n, alpha, a, lda, x, incx, beta, y, incy);                       \
  }                                                                                                          \
  cublasStatus_t cublas##S##axpy(cublasHandle_t handle, int n, const Dtype* alpha, const Dtype* x, int incx, \
                                 Dtype* y, int incy) {                                                       \
    CAFFE_CUBLAS(S##axpy, handle, n, alpha, x, incx, y, incy);                                               \
  }                                                                                                          \
  cublasStatus_t cublas##S##scal(cublasHandle_t handle, int n, const Dtype* alpha, Dtype* x, int incx) {     \
    CAFFE_CUBLAS(S##scal, handle, n, alpha, x, incx);                                                        \
  }                                                                                                          \
  cublasStatus_t cublas##S##copy(cublasHandle_t handle, int n, const Dtype* x, int incx, Dtype* y,           \
                                 int incy) {                                                                 \
    CAFFE_CUBLAS(S##copy, handle, n, x, incx, y, incy);                                                      \
  }                                                                                                          \
  cublasStatus_t cublas##S##dot(cublasHandle_t handle, int n, const Dtype* x, int incx, const Dtype* y,      \
                                int incy, Dtype* result) {                                                   \
    CAFFE_CUBLAS(S##dot, handle, n, x, incx, y, incy, result);                                               \
  }                                                                                                          \
  cublasStatus_t cublas##S##asum(cublasHandle_t handle, int n, const Dtype* x, int incx, Dtype* result) {    \
    CAFFE_CUBLAS(S##asum, handle, n, x, incx, result);                                                       \
  }                                                                                                          \
  cublasStatus_t cublas##S##nrm2(cublasHandle_t handle, int n, const Dtype* x, int incx, Dtype* result) {    \
    CAFFE_CUBLAS(S##nrm2, handle, n, x, incx, result);                                                       \
  }                                                                                                          \
  cublasStatus_t cublasI##s##amax(cublasHandle_t handle, int n, const Dtype* x, int incx, int* result) {     \
    CAFFE_CUBLAS(I##s##amax, handle, n, x, incx, result);                                                    \
  }                                                                                                          \
  cublasStatus_t cublasI##s##amin(cublasHandle_t handle, int n, const Dtype* x, int incx, int* result) {     \
    CAFFE_CUBLAS(I##s##amin, handle, n, x, incx, result);                                                    \
  }                                                                                                          \
  cublasStatus_t cublas##S##geam(cublasHandle_t handle, cublasOperation_t trans_a,                           \
                                 cublasOperation_t trans_b, int m, int n, const Dtype* alpha,                \
                                 const Dtype* a, int lda, const Dtype* beta, const Dtype* b, int ldb,        \
                                 Dtype* c, int ldc) {                                                        \
    CAFFE_CUBLAS_NAMED(S##geam, "", handle, trans_a, trans_b, m, n, alpha, a, lda, beta, b, ldb, c, ldc);    \
  }
CAFFE_FORWARD_CUBLAS(S, s, float)
CAFFE_FORWARD_CUBLAS(D, d, double)

#endif

namespace caffe {

const char* cublasGetErrorString(cublasStatus_t status) {
  switch (status) {
#define CAFFE_STATUS(name) \
  case name:               \
    return #name
    CAFFE_STATUS(CUBLAS_STATUS_SUCCESS);
    CAFFE_STATUS(CUBLAS_STATUS_NOT_INITIALIZED);
    CAFFE_STATUS(CUBLAS_STATUS_ALLOC_FAILED);
    CAFFE_STATUS(CUBLAS_STATUS_INVALID_VALUE);
    CAFFE_STATUS(CUBLAS_STATUS_ARCH_MISMATCH);
    CAFFE_STATUS(CUBLAS_STATUS_MAPPING_ERROR);
    CAFFE_STATUS(CUBLAS_STATUS_EXECUTION_FAILED);
    CAFFE_STATUS(CUBLAS_STATUS_INTERNAL_ERROR);
    CAFFE_STATUS(CUBLAS_STATUS_NOT_SUPPORTED);
    CAFFE_STATUS(CUBLAS_STATUS_LICENSE_ERROR);
#undef CAFFE_STATUS
  }
  return "unknown cuBLAS status";
}

}  // namespace caffe
