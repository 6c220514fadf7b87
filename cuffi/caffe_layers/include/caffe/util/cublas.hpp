// The part of cuBLAS's interface that layers use. A CUDA library forwards the calls to the cuBLAS that torch
// has loaded. On the host backend the BLAS library computes them, also column-major. Neither needs cuBLAS at
// build time.
#pragma once

#ifdef CAFFE_HOST_BACKEND
#include "host/cuda_runtime.h"
#else
#include <cuda_runtime.h>
#endif

typedef struct cublasContext* cublasHandle_t;

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16,
};

enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode);

#define CAFFE_DECLARE_CUBLAS(S, s, Dtype)                                                                    \
  cublasStatus_t cublas##S##gemm(cublasHandle_t handle, cublasOperation_t trans_a,                           \
                                 cublasOperation_t trans_b, int m, int n, int k, const Dtype* alpha,         \
                                 const Dtype* a, int lda, const Dtype* b, int ldb, const Dtype* beta,        \
                                 Dtype* c, int ldc);                                                         \
  cublasStatus_t cublas##S##gemmBatched(cublasHandle_t handle, cublasOperation_t trans_a,                    \
                                        cublasOperation_t trans_b, int m, int n, int k, const Dtype* alpha,  \
                                        const Dtype* const* a, int lda, const Dtype* const* b, int ldb,      \
                                        const Dtype* beta, Dtype* const* c, int ldc, int count);             \
  cublasStatus_t cublas##S##gemmStridedBatched(                                                              \
      cublasHandle_t handle, cublasOperation_t trans_a, cublasOperation_t trans_b, int m, int n, int k,      \
      const Dtype* alpha, const Dtype* a, int lda, long long step_a, const Dtype* b, int ldb,                \
      long long step_b, const Dtype* beta, Dtype* c, int ldc, long long step_c, int count);                  \
  cublasStatus_t cublas##S##gemv(cublasHandle_t handle, cublasOperation_t trans, int m, int n,               \
                                 const Dtype* alpha, const Dtype* a, int lda, const Dtype* x, int incx,      \
                                 const Dtype* beta, Dtype* y, int incy);                                     \
  cublasStatus_t cublas##S##axpy(cublasHandle_t handle, int n, const Dtype* alpha, const Dtype* x, int incx, \
                                 Dtype* y, int incy);                                                        \
  cublasStatus_t cublas##S##scal(cublasHandle_t handle, int n, const Dtype* alpha, Dtype* x, int incx);      \
  cublasStatus_t cublas##S##copy(cublasHandle_t handle, int n, const Dtype* x, int incx, Dtype* y,           \
                                 int incy);                                                                  \
  cublasStatus_t cublas##S##dot(cublasHandle_t handle, int n, const Dtype* x, int incx, const Dtype* y,      \
                                int incy, Dtype* result);                                                    \
  cublasStatus_t cublas##S##asum(cublasHandle_t handle, int n, const Dtype* x, int incx, Dtype* result);     \
  cublasStatus_t cublas##S##nrm2(cublasHandle_t handle, int n, const Dtype* x, int incx, Dtype* result);     \
  cublasStatus_t cublasI##s##amax(cublasHandle_t handle, int n, const Dtype* x, int incx, int* result);      \
  cublasStatus_t cublasI##s##amin(cublasHandle_t handle, int n, const Dtype* x, int incx, int* result);      \
  cublasStatus_t cublas##S##geam(cublasHandle_t handle, cublasOperation_t trans_a,                           \
                                 cublasOperation_t trans_b, int m, int n, const Dtype* alpha,                \
                                 const Dtype* a, int lda, const Dtype* beta, const Dtype* b, int ldb,        \
                                 Dtype* c, int ldc);
CAFFE_DECLARE_CUBLAS(S, s, float)
CAFFE_DECLARE_CUBLAS(D, d, double)
#undef CAFFE_DECLARE_CUBLAS

namespace caffe {
const char* cublasGetErrorString(cublasStatus_t status);
}
