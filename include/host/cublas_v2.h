// The part of cuBLAS that most programs call, on the host: column-major, plain loops, in the type that cuBLAS computes in. A
// program that calls another function of it does not compile.
#pragma once

#include <math.h>
#include <stdlib.h>

#include <algorithm>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuComplex.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"
#include "library_types.h"

#define CUBLAS_VERSION 120000
#define CUBLAS_VER_MAJOR 12
typedef struct cublasContext* cublasHandle_t;
#define CAFFE_CUBLAS_STATUSES(_) \
  _(SUCCESS, 0)                  \
  _(NOT_INITIALIZED, 1)          \
  _(ALLOC_FAILED, 3)             \
  _(INVALID_VALUE, 7)            \
  _(ARCH_MISMATCH, 8)            \
  _(MAPPING_ERROR, 11)           \
  _(EXECUTION_FAILED, 13)        \
  _(INTERNAL_ERROR, 14)          \
  _(NOT_SUPPORTED, 15)           \
  _(LICENSE_ERROR, 16)
#define CAFFE_CUBLAS_STATUS(name, number) CUBLAS_STATUS_##name = number,
typedef enum cublasStatus_t { CAFFE_CUBLAS_STATUSES(CAFFE_CUBLAS_STATUS) } cublasStatus;
#undef CAFFE_CUBLAS_STATUS
enum cublasOperation_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1, CUBLAS_FILL_MODE_FULL = 2 };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 };
enum cublasMath_t {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
};
enum cublasGemmAlgo_t {
  CUBLAS_GEMM_DFALT = -1,
  CUBLAS_GEMM_DEFAULT = -1,
  CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99
};
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32I_PEDANTIC = 73,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
};

// ------------------------------------------------------------------------------------ handles

inline cublasStatus_t cublasCreate(cublasHandle_t* made) {
  return *made = new cublasContext, CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  return delete handle, CUBLAS_STATUS_SUCCESS;
}
#define CAFFE_CUBLAS_MODE(Name, Type, member)                                 \
  inline cublasStatus_t cublasSet##Name(cublasHandle_t handle, Type value) {  \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;                        \
    return handle->member = value, CUBLAS_STATUS_SUCCESS;                     \
  }                                                                           \
  inline cublasStatus_t cublasGet##Name(cublasHandle_t handle, Type* value) { \
    if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;                        \
    return *value = handle->member, CUBLAS_STATUS_SUCCESS;                    \
  }
CAFFE_CUBLAS_MODE(Stream, cudaStream_t, stream)
CAFFE_CUBLAS_MODE(PointerMode, cublasPointerMode_t, pointers)
CAFFE_CUBLAS_MODE(MathMode, cublasMath_t, math)
CAFFE_CUBLAS_MODE(AtomicsMode, cublasAtomicsMode_t, atomics)
#undef CAFFE_CUBLAS_MODE
inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  return *version = CUBLAS_VERSION, CUBLAS_STATUS_SUCCESS;
}
inline const char* cublasGetStatusName(cublasStatus_t status) {
#define CAFFE_CUBLAS_STATUS(name, number) \
  if (status == number) return "CUBLAS_STATUS_" #name;
  CAFFE_CUBLAS_STATUSES(CAFFE_CUBLAS_STATUS)
#undef CAFFE_CUBLAS_STATUS
  return "unknown cuBLAS status";
}
inline const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

// ------------------------------------------------------------------------------------ copies

inline cublasStatus_t cublasSetMatrix(int rows, int columns, int bytes, const void* a, int lda, void* b,
                                      int ldb) {
  if (rows < 0 || columns < 0 || bytes <= 0 || lda < std::max(1, rows) || ldb < std::max(1, rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  const size_t pitch = size_t(ldb) * bytes, from = size_t(lda) * bytes, width = size_t(rows) * bytes;
  for (int j = 0; j < columns; ++j)
    if (cudaMemcpy(static_cast<char*>(b) + j * pitch, static_cast<const char*>(a) + j * from, width,
                   cudaMemcpyDefault))
      return CUBLAS_STATUS_MAPPING_ERROR;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasSetVector(int n, int bytes, const void* x, int incx, void* y, int incy) {
  if (incx <= 0 || incy <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  return incx == 1 && incy == 1 ? cublasSetMatrix(n, 1, bytes, x, std::max(n, 1), y, std::max(n, 1))
                                : cublasSetMatrix(1, n, bytes, x, incx, y, incy);
}
inline cublasStatus_t cublasGetMatrix(int rows, int columns, int bytes, const void* a, int lda, void* b,
                                      int ldb) {
  return cublasSetMatrix(rows, columns, bytes, a, lda, b, ldb);
}
inline cublasStatus_t cublasGetVector(int n, int bytes, const void* x, int incx, void* y, int incy) {
  return cublasSetVector(n, bytes, x, incx, y, incy);
}
#define CAFFE_CUBLAS_LATER(Name)                                                                            \
  inline cublasStatus_t cublas##Name##MatrixAsync(int rows, int columns, int bytes, const void* a, int lda, \
                                                  void* b, int ldb, cudaStream_t) {                         \
    return cublasSetMatrix(rows, columns, bytes, a, lda, b, ldb);                                           \
  }                                                                                                         \
  inline cublasStatus_t cublas##Name##VectorAsync(int n, int bytes, const void* x, int incx, void* y,       \
                                                  int incy, cudaStream_t) {                                 \
    return cublasSetVector(n, bytes, x, incx, y, incy);                                                     \
  }
CAFFE_CUBLAS_LATER(Set)
CAFFE_CUBLAS_LATER(Get)
#undef CAFFE_CUBLAS_LATER

// ------------------------------------------------------------------------------------ formulas

namespace cublas_host {

// What cuBLAS adds in.
template <typename T>
using Sum = std::conditional_t<std::is_same<T, double>::value, double,
                               std::conditional_t<std::is_integral<T>::value, int, float>>;
// Element i of a vector: with a negative step from its end.
template <typename T>
T& at(T* x, int n, int step, int i) {
  return x[static_cast<ptrdiff_t>(step < 0 ? i - n + 1 : i) * step];
}
template <typename T>
void is_set(T* x, int n, int step) {
  if (n > 0) cuda_host::memory_set(x, (size_t(n - 1) * abs(step) + 1) * sizeof(T));
}
// A result goes where the handle's mode says; to the host's memory only after all that was asked for.
template <typename T>
cublasStatus_t result(cublasHandle_t handle, T* to, T what) {
  if (handle->pointers == CUBLAS_POINTER_MODE_HOST)
    cuda_host::host_waits();
  else
    cuda_host::memory_set(to, sizeof(T));
  return *to = what, CUBLAS_STATUS_SUCCESS;
}
}  // namespace cublas_host

#define CAFFE_CUBLAS_NEEDS(condition)                \
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED; \
  if (!(condition)) return CUBLAS_STATUS_INVALID_VALUE;

namespace cublas_host {

template <typename T>
cublasStatus_t axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int incx, T* y, int incy) {
  CAFFE_CUBLAS_NEEDS(true)
  for (int i = 0; i < n; ++i) at(y, n, incy, i) += *alpha * at(x, n, incx, i);
  return is_set(y, n, incy), CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, int incy) {
  CAFFE_CUBLAS_NEEDS(true)
  for (int i = 0; i < n; ++i) at(y, n, incy, i) = at(x, n, incx, i);
  return is_set(y, n, incy), CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t swap(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy) {
  CAFFE_CUBLAS_NEEDS(true)
  for (int i = 0; i < n; ++i) std::swap(at(y, n, incy, i), at(x, n, incx, i));
  return CUBLAS_STATUS_SUCCESS;
}
// With a step below 1 these four have no elements.
template <typename T>
cublasStatus_t scal(cublasHandle_t handle, int n, const T* alpha, T* x, int incx) {
  CAFFE_CUBLAS_NEEDS(true)
  for (int i = 0; i < n && incx > 0; ++i) at(x, n, incx, i) *= *alpha;
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t nrm2(cublasHandle_t handle, int n, const T* x, int incx, T* to) {
  CAFFE_CUBLAS_NEEDS(true)
  double sum = 0;
  for (int i = 0; i < n && incx > 0; ++i) sum += static_cast<double>(at(x, n, incx, i)) * at(x, n, incx, i);
  return result(handle, to, static_cast<T>(sqrt(sum)));
}
template <typename T>
cublasStatus_t asum(cublasHandle_t handle, int n, const T* x, int incx, T* to) {
  CAFFE_CUBLAS_NEEDS(true)
  T sum = 0;
  for (int i = 0; i < n && incx > 0; ++i) sum += std::abs(at(x, n, incx, i));
  return result(handle, to, sum);
}
// The first of the largest, or of the smallest, counted from 1.
template <typename T, typename Better>
cublasStatus_t extreme(cublasHandle_t handle, int n, const T* x, int incx, int* found, Better is_better) {
  CAFFE_CUBLAS_NEEDS(true)
  int best = 0;
  for (int i = 1; i < n && incx > 0; ++i)
    if (is_better(std::abs(at(x, n, incx, i)), std::abs(at(x, n, incx, best)))) best = i;
  return result(handle, found, n > 0 && incx > 0 ? best + 1 : 0);
}
template <typename T>
cublasStatus_t amax(cublasHandle_t handle, int n, const T* x, int incx, int* found) {
  return extreme(handle, n, x, incx, found, std::greater<T>());
}
template <typename T>
cublasStatus_t amin(cublasHandle_t handle, int n, const T* x, int incx, int* found) {
  return extreme(handle, n, x, incx, found, std::less<T>());
}
template <typename T>
cublasStatus_t dot(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy, T* to) {
  CAFFE_CUBLAS_NEEDS(true)
  T sum = 0;
  for (int i = 0; i < n; ++i) sum += at(x, n, incx, i) * at(y, n, incy, i);
  return result(handle, to, sum);
}

// Element (i, j) of a column-major matrix after its operation.
template <typename T>
const T& in(const T* a, int lda, bool transposed, int i, int j) {
  return transposed ? a[j + static_cast<size_t>(i) * lda] : a[i + static_cast<size_t>(j) * lda];
}
template <typename T>
cublasStatus_t gemv(cublasHandle_t handle, cublasOperation_t of_a, int m, int n, const T* alpha, const T* a,
                    int lda, const T* x, int incx, const T* beta, T* y, int incy) {
  CAFFE_CUBLAS_NEEDS(m >= 0 && n >= 0 && lda >= std::max(1, m) && incx && incy)
  const bool t = of_a != CUBLAS_OP_N;
  const int rows = t ? n : m, columns = t ? m : n;
  for (int i = 0; i < rows; ++i) {
    T sum = 0, &to = at(y, rows, incy, i);
    for (int j = 0; j < columns; ++j) sum += in(a, lda, t, i, j) * at(x, columns, incx, j);
    to = *beta == 0 ? *alpha * sum : *alpha * sum + *beta * to;
  }
  return is_set(y, rows, incy), CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx, const T* y,
                   int incy, T* a, int lda) {
  CAFFE_CUBLAS_NEEDS(m >= 0 && n >= 0 && lda >= std::max(1, m) && incx && incy)
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i)
      a[i + static_cast<size_t>(j) * lda] += *alpha * at(x, m, incx, i) * at(y, n, incy, j);
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t geam(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                    const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c, int ldc) {
  const bool ta = of_a != CUBLAS_OP_N, tb = of_b != CUBLAS_OP_N;
  CAFFE_CUBLAS_NEEDS(m >= 0 && n >= 0 && ldc >= std::max(1, m))
  CAFFE_CUBLAS_NEEDS(lda >= std::max(1, ta ? n : m) && ldb >= std::max(1, tb ? n : m))
  for (int j = 0; j < n; ++j) {
    T* const column = c + static_cast<size_t>(j) * ldc;
    for (int i = 0; i < m; ++i)
      column[i] =
          (*alpha == 0 ? 0 : *alpha * in(a, lda, ta, i, j)) + (*beta == 0 ? 0 : *beta * in(b, ldb, tb, i, j));
    is_set(column, m, 1);
  }
  return CUBLAS_STATUS_SUCCESS;
}

// C = alpha A B + beta C, with A of m x k and B of k x n after their operations; S is what is added in.
template <typename S, typename A, typename C>
cublasStatus_t product(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                       int k, S alpha, const A* a, int lda, const A* b, int ldb, S beta, C* c, int ldc) {
  const bool ta = of_a != CUBLAS_OP_N, tb = of_b != CUBLAS_OP_N;
  CAFFE_CUBLAS_NEEDS(m >= 0 && n >= 0 && k >= 0 && ldc >= std::max(1, m))
  CAFFE_CUBLAS_NEEDS(lda >= std::max(1, ta ? k : m) && ldb >= std::max(1, tb ? n : k))
  std::vector<S> sums(m);
  for (int j = 0; j < n; ++j) {
    std::fill(sums.begin(), sums.end(), S(0));
    for (int l = 0; l < k; ++l) {
      const S y = static_cast<S>(in(b, ldb, tb, l, j));
      for (int i = 0; i < m; ++i) sums[i] += static_cast<S>(in(a, lda, ta, i, l)) * y;
    }
    C* const column = c + static_cast<size_t>(j) * ldc;
    for (int i = 0; i < m; ++i)
      column[i] =
          static_cast<C>(beta == S(0) ? alpha * sums[i] : alpha * sums[i] + beta * static_cast<S>(column[i]));
    is_set(column, m, 1);
  }
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                    int k, const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta, T* c,
                    int ldc) {
  return product<Sum<T>>(handle, of_a, of_b, m, n, k, static_cast<Sum<T>>(*alpha), a, lda, b, ldb,
                         static_cast<Sum<T>>(*beta), c, ldc);
}
template <typename T>
cublasStatus_t gemmStridedBatched(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                                  int m, int n, int k, const T* alpha, const T* a, int lda, long long step_a,
                                  const T* b, int ldb, long long step_b, const T* beta, T* c, int ldc,
                                  long long step_c, int count) {
  CAFFE_CUBLAS_NEEDS(count >= 0)
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  for (int i = 0; i < count && !status; ++i)
    status = gemm<T>(handle, of_a, of_b, m, n, k, alpha, a + i * step_a, lda, b + i * step_b, ldb, beta,
                     c + i * step_c, ldc);
  return status;
}
template <typename T>
cublasStatus_t gemmBatched(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m,
                           int n, int k, const T* alpha, const T* const a[], int lda, const T* const b[],
                           int ldb, const T* beta, T* const c[], int ldc, int count) {
  CAFFE_CUBLAS_NEEDS(count >= 0)
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  for (int i = 0; i < count && !status; ++i)
    status = gemm<T>(handle, of_a, of_b, m, n, k, alpha, a[i], lda, b[i], ldb, beta, c[i], ldc);
  return status;
}

}  // namespace cublas_host

#define CAFFE_CUBLAS_NAME(name, of, T)          \
  template <typename... Arguments>              \
  cublasStatus_t name(Arguments... arguments) { \
    return cublas_host::of<T>(arguments...);    \
  }
#define CAFFE_CUBLAS_NAMES(of)              \
  CAFFE_CUBLAS_NAME(cublasS##of, of, float) \
  CAFFE_CUBLAS_NAME(cublasD##of, of, double)
CAFFE_CUBLAS_NAMES(axpy)
CAFFE_CUBLAS_NAMES(copy)
CAFFE_CUBLAS_NAMES(swap)
CAFFE_CUBLAS_NAMES(scal)
CAFFE_CUBLAS_NAMES(nrm2)
CAFFE_CUBLAS_NAMES(asum)
CAFFE_CUBLAS_NAMES(dot)
CAFFE_CUBLAS_NAMES(gemv)
CAFFE_CUBLAS_NAMES(ger)
CAFFE_CUBLAS_NAMES(geam)
CAFFE_CUBLAS_NAMES(gemm)
CAFFE_CUBLAS_NAMES(gemmStridedBatched)
CAFFE_CUBLAS_NAMES(gemmBatched)
CAFFE_CUBLAS_NAME(cublasIsamax, amax, float)
CAFFE_CUBLAS_NAME(cublasIdamax, amax, double)
CAFFE_CUBLAS_NAME(cublasIsamin, amin, float)
CAFFE_CUBLAS_NAME(cublasIdamin, amin, double)
CAFFE_CUBLAS_NAME(cublasHgemm, gemm, __half)
CAFFE_CUBLAS_NAME(cublasHgemmStridedBatched, gemmStridedBatched, __half)
CAFFE_CUBLAS_NAME(cublasHgemmBatched, gemmBatched, __half)
#undef CAFFE_CUBLAS_NAMES
#undef CAFFE_CUBLAS_NAME
#undef CAFFE_CUBLAS_NEEDS

// The types are arguments. alpha and beta have the type that is computed in: cublasComputeType_t, before CUDA 11
// cudaDataType.
namespace cublas_host {
template <typename S, typename A, typename C>
cublasStatus_t gemm_of(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n,
                       int k, const void* alpha, const void* a, int lda, const void* b, int ldb,
                       const void* beta, void* c, int ldc) {
  return product<Sum<S>>(handle, of_a, of_b, m, n, k, static_cast<Sum<S>>(*static_cast<const S*>(alpha)),
                         static_cast<const A*>(a), lda, static_cast<const A*>(b), ldb,
                         static_cast<Sum<S>>(*static_cast<const S*>(beta)), static_cast<C*>(c), ldc);
}
inline cudaDataType scale_of(cudaDataType type) { return type; }
inline cudaDataType scale_of(cublasComputeType_t type) {
  if (type == CUBLAS_COMPUTE_16F || type == CUBLAS_COMPUTE_16F_PEDANTIC) return CUDA_R_16F;
  if (type == CUBLAS_COMPUTE_64F || type == CUBLAS_COMPUTE_64F_PEDANTIC) return CUDA_R_64F;
  if (type == CUBLAS_COMPUTE_32I || type == CUBLAS_COMPUTE_32I_PEDANTIC) return CUDA_R_32I;
  return CUDA_R_32F;
}
}  // namespace cublas_host
template <typename Compute, typename Algorithm>
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                            const void* b, cudaDataType b_type, int ldb, const void* beta, void* c,
                            cudaDataType c_type, int ldc, Compute compute, Algorithm) {
  const cudaDataType scale = cublas_host::scale_of(compute);
  if (a_type != b_type) return CUBLAS_STATUS_NOT_SUPPORTED;
#define CAFFE_CUBLAS_TYPES(S, s, A, a_of, C, c_of)                               \
  if (scale == CUDA_R_##s && a_type == CUDA_R_##a_of && c_type == CUDA_R_##c_of) \
    return cublas_host::gemm_of<S, A, C>(handle, of_a, of_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  CAFFE_CUBLAS_TYPES(float, 32F, float, 32F, float, 32F)
  CAFFE_CUBLAS_TYPES(float, 32F, __half, 16F, __half, 16F)
  CAFFE_CUBLAS_TYPES(float, 32F, __half, 16F, float, 32F)
  CAFFE_CUBLAS_TYPES(float, 32F, __nv_bfloat16, 16BF, __nv_bfloat16, 16BF)
  CAFFE_CUBLAS_TYPES(float, 32F, __nv_bfloat16, 16BF, float, 32F)
  CAFFE_CUBLAS_TYPES(__half, 16F, __half, 16F, __half, 16F)
  CAFFE_CUBLAS_TYPES(double, 64F, double, 64F, double, 64F)
  CAFFE_CUBLAS_TYPES(int, 32I, signed char, 8I, int, 32I)
#undef CAFFE_CUBLAS_TYPES
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
// The names of the second interface, which are those of the first.
#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasSetStream_v2 cublasSetStream
#define cublasSetPointerMode_v2 cublasSetPointerMode
#define cublasSgemm_v2 cublasSgemm
#define cublasDgemm_v2 cublasDgemm
#define cublasSgemv_v2 cublasSgemv
#define cublasDgemv_v2 cublasDgemv
#define cublasSaxpy_v2 cublasSaxpy
#define cublasDaxpy_v2 cublasDaxpy
#define cublasSdot_v2 cublasSdot
#define cublasDdot_v2 cublasDdot
#define cublasSscal_v2 cublasSscal
#define cublasDscal_v2 cublasDscal
#define cublasSnrm2_v2 cublasSnrm2
#define cublasDnrm2_v2 cublasDnrm2
