// What was left of TH and THC in ATen's time (until torch 1.10).
#pragma once

#include "cuda.h"

namespace aten {
template <typename T>
inline int64_t address_of(const T* pointer) {
  return reinterpret_cast<int64_t>(pointer);
}
// c = alpha op(a) op(b) + beta c and y = alpha op(a) x + beta y, by columns: torch computes them.
template <typename T>
inline void gemm(c10::DeviceType where, char ta, char tb, int64_t m, int64_t n, int64_t k, T alpha,
                 const T* a, int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  call("gemm", c10::Device(where), c10::CppTypeToScalarType<T>::value, std::string(1, ta), std::string(1, tb),
       m, n, k, double{alpha}, address_of(a), lda, address_of(b), ldb, double{beta}, address_of(c), ldc);
}
template <typename T>
inline void gemv(c10::DeviceType where, char turned, int64_t m, int64_t n, T alpha, const T* a, int64_t lda,
                 const T* x, int64_t step_x, T beta, T* y, int64_t step_y) {
  call("gemv", c10::Device(where), c10::CppTypeToScalarType<T>::value, std::string(1, turned), m, n,
       double{alpha}, address_of(a), lda, address_of(x), step_x, double{beta}, address_of(y), step_y);
}
// A copy of an array of pointers, which lies in the GPU's memory.
template <typename T>
std::vector<T*> pointers(T** array, int64_t count) {
  std::vector<T*> copy(static_cast<size_t>(count));
  C10_CUDA_CHECK(cudaMemcpy(copy.data(), array, copy.size() * sizeof(T*), cudaMemcpyDefault));
  return copy;
}
}  // namespace aten

// Memory for one call, until THCudaFree.
inline void* THCudaMalloc(THCState*, size_t bytes) { return aten::allocate(bytes); }
inline void THCudaFree(THCState*, void* pointer) { aten::release(pointer); }
inline cudaStream_t THCState_getCurrentStream(THCState*) { return c10::cuda::getCurrentCUDAStream(); }
#define THCudaCheck C10_CUDA_CHECK
#define THArgCheck(condition, argument, ...) TORCH_CHECK(condition, "argument " #argument ": ", ##__VA_ARGS__)
#define THError(...) AT_ERROR(__VA_ARGS__)
#define THCCeilDiv aten_ceil_div
template <typename T>
C10_HOST_DEVICE inline T aten_ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

#define ATEN_BLAS(of_thc, of_th, T)                                                                          \
  inline void THCudaBlas_##of_thc##gemm(THCState*, char ta, char tb, int64_t m, int64_t n, int64_t k,        \
                                        T alpha, const T* a, int64_t lda, const T* b, int64_t ldb, T beta,   \
                                        T* c, int64_t ldc) {                                                 \
    aten::gemm<T>(c10::kCUDA, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                         \
  }                                                                                                          \
  inline void THCudaBlas_##of_thc##gemmBatched(THCState*, char ta, char tb, int64_t m, int64_t n, int64_t k, \
                                               T alpha, const T** a, int64_t lda, const T** b, int64_t ldb,  \
                                               T beta, T** c, int64_t ldc, int64_t count) {                  \
    const auto as = aten::pointers(a, count), bs = aten::pointers(b, count);                                 \
    const auto cs = aten::pointers(c, count);                                                                \
    for (size_t i = 0; i < cs.size(); ++i)                                                                   \
      aten::gemm<T>(c10::kCUDA, ta, tb, m, n, k, alpha, as[i], lda, bs[i], ldb, beta, cs[i], ldc);           \
  }                                                                                                          \
  inline void THCudaBlas_##of_thc##gemv(THCState*, char turned, int64_t m, int64_t n, T alpha, const T* a,   \
                                        int64_t lda, const T* x, int64_t incx, T beta, T* y, int64_t incy) { \
    aten::gemv<T>(c10::kCUDA, turned, m, n, alpha, a, lda, x, incx, beta, y, incy);                          \
  }                                                                                                          \
  inline void TH##of_th##Blas_gemm(char ta, char tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a,   \
                                   int64_t lda, const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {        \
    aten::gemm<T>(c10::kCPU, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                          \
  }                                                                                                          \
  inline void TH##of_th##Blas_gemv(char turned, int64_t m, int64_t n, T alpha, const T* a, int64_t lda,      \
                                   const T* x, int64_t incx, T beta, T* y, int64_t incy) {                   \
    aten::gemv<T>(c10::kCPU, turned, m, n, alpha, a, lda, x, incx, beta, y, incy);                           \
  }
ATEN_BLAS(S, Float, float)
ATEN_BLAS(D, Double, double)
#undef ATEN_BLAS
