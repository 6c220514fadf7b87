// The BLAS functions that Caffe sources use, and MKL's vector functions. The BLAS library that torch has
// loaded computes the products (core/util/cblas.cpp), so there is no cblas.h to install, and
// nothing to link.
#pragma once

#include <cmath>
#include <cstddef>

enum CBLAS_ORDER { CblasRowMajor = 101, CblasColMajor = 102 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 };
enum CBLAS_UPLO { CblasUpper = 121, CblasLower = 122 };
enum CBLAS_DIAG { CblasNonUnit = 131, CblasUnit = 132 };
enum CBLAS_SIDE { CblasLeft = 141, CblasRight = 142 };

#define CAFFE_DECLARE_CBLAS(s, Dtype)                                                                      \
  void cblas_##s##gemm(CBLAS_ORDER order, CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, int m, int n,  \
                       int k, Dtype alpha, const Dtype* a, int lda, const Dtype* b, int ldb, Dtype beta,   \
                       Dtype* c, int ldc);                                                                 \
  void cblas_##s##gemm_batch(                                                                              \
      CBLAS_ORDER order, const CBLAS_TRANSPOSE* trans_a, const CBLAS_TRANSPOSE* trans_b, const int* m,     \
      const int* n, const int* k, const Dtype* alpha, const Dtype** a, const int* lda, const Dtype** b,    \
      const int* ldb, const Dtype* beta, Dtype** c, const int* ldc, int groups, const int* sizes);         \
  void cblas_##s##gemv(CBLAS_ORDER order, CBLAS_TRANSPOSE trans_a, int m, int n, Dtype alpha,              \
                       const Dtype* a, int lda, const Dtype* x, int incx, Dtype beta, Dtype* y, int incy); \
  void cblas_##s##axpy(int n, Dtype alpha, const Dtype* x, int incx, Dtype* y, int incy);                  \
  void cblas_##s##axpby(int n, Dtype alpha, const Dtype* x, int incx, Dtype beta, Dtype* y, int incy);     \
  void cblas_##s##scal(int n, Dtype alpha, Dtype* x, int incx);                                            \
  void cblas_##s##copy(int n, const Dtype* x, int incx, Dtype* y, int incy);                               \
  Dtype cblas_##s##dot(int n, const Dtype* x, int incx, const Dtype* y, int incy);                         \
  Dtype cblas_##s##asum(int n, const Dtype* x, int incx);                                                  \
  Dtype cblas_##s##nrm2(int n, const Dtype* x, int incx);                                                  \
  size_t cblas_i##s##amax(int n, const Dtype* x, int incx);                                                \
  void cblas_##s##swap(int n, Dtype* x, int incx, Dtype* y, int incy);                                     \
  void cblas_##s##ger(CBLAS_ORDER order, int m, int n, Dtype alpha, const Dtype* x, int incx,              \
                      const Dtype* y, int incy, Dtype* a, int lda);                                        \
  void cblas_##s##symm(CBLAS_ORDER order, CBLAS_SIDE side, CBLAS_UPLO uplo, int m, int n, Dtype alpha,     \
                       const Dtype* a, int lda, const Dtype* b, int ldb, Dtype beta, Dtype* c, int ldc);   \
  void cblas_##s##symv(CBLAS_ORDER order, CBLAS_UPLO uplo, int n, Dtype alpha, const Dtype* a, int lda,    \
                       const Dtype* x, int incx, Dtype beta, Dtype* y, int incy);                          \
  void cblas_##s##trsm(CBLAS_ORDER order, CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans,         \
                       CBLAS_DIAG diag, int m, int n, Dtype alpha, const Dtype* a, int lda, Dtype* b,      \
                       int ldb);
CAFFE_DECLARE_CBLAS(s, float)
CAFFE_DECLARE_CBLAS(d, double)
#undef CAFFE_DECLARE_CBLAS

// Vector functions: vsExp(n, a, y) for float, vdExp for double, and vExp for both.
#define CAFFE_DEFINE_VSL_(name, operation, ...)                     \
  template <typename Dtype>                                         \
  void v##name(const int n, const Dtype* a, __VA_ARGS__ Dtype* y) { \
    for (int i = 0; i < n; ++i) {                                   \
      operation;                                                    \
    }                                                               \
  }
#define DEFINE_VSL_UNARY_FUNC(name, operation)                                             \
  CAFFE_DEFINE_VSL_(name, operation, )                                                     \
  inline void vs##name(const int n, const float* a, float* y) { v##name<float>(n, a, y); } \
  inline void vd##name(const int n, const double* a, double* y) { v##name<double>(n, a, y); }
#define DEFINE_VSL_UNARY_FUNC_WITH_PARAM(name, operation)                                                    \
  CAFFE_DEFINE_VSL_(name, operation, const Dtype b, )                                                        \
  inline void vs##name(const int n, const float* a, const float b, float* y) { v##name<float>(n, a, b, y); } \
  inline void vd##name(const int n, const double* a, const double b, double* y) {                            \
    v##name<double>(n, a, b, y);                                                                             \
  }
#define DEFINE_VSL_BINARY_FUNC(name, operation)                                    \
  CAFFE_DEFINE_VSL_(name, operation, const Dtype* b, )                             \
  inline void vs##name(const int n, const float* a, const float* b, float* y) {    \
    v##name<float>(n, a, b, y);                                                    \
  }                                                                                \
  inline void vd##name(const int n, const double* a, const double* b, double* y) { \
    v##name<double>(n, a, b, y);                                                   \
  }

DEFINE_VSL_UNARY_FUNC(Abs, y[i] = std::fabs(a[i]))
DEFINE_VSL_UNARY_FUNC(Sqr, y[i] = a[i] * a[i])
DEFINE_VSL_UNARY_FUNC(Sqrt, y[i] = std::sqrt(a[i]))
DEFINE_VSL_UNARY_FUNC(Inv, y[i] = 1 / a[i])
DEFINE_VSL_UNARY_FUNC(Exp, y[i] = std::exp(a[i]))
DEFINE_VSL_UNARY_FUNC(Ln, y[i] = std::log(a[i]))
DEFINE_VSL_UNARY_FUNC(Log10, y[i] = std::log10(a[i]))
DEFINE_VSL_UNARY_FUNC(Sin, y[i] = std::sin(a[i]))
DEFINE_VSL_UNARY_FUNC(Cos, y[i] = std::cos(a[i]))
DEFINE_VSL_UNARY_FUNC(Tan, y[i] = std::tan(a[i]))
DEFINE_VSL_UNARY_FUNC(Asin, y[i] = std::asin(a[i]))
DEFINE_VSL_UNARY_FUNC(Acos, y[i] = std::acos(a[i]))
DEFINE_VSL_UNARY_FUNC(Atan, y[i] = std::atan(a[i]))
DEFINE_VSL_UNARY_FUNC(Tanh, y[i] = std::tanh(a[i]))
DEFINE_VSL_UNARY_FUNC(Erf, y[i] = std::erf(a[i]))
DEFINE_VSL_UNARY_FUNC(Floor, y[i] = std::floor(a[i]))
DEFINE_VSL_UNARY_FUNC(Ceil, y[i] = std::ceil(a[i]))
DEFINE_VSL_UNARY_FUNC(Round, y[i] = std::round(a[i]))
DEFINE_VSL_UNARY_FUNC_WITH_PARAM(Powx, y[i] = std::pow(a[i], b))
DEFINE_VSL_BINARY_FUNC(Add, y[i] = a[i] + b[i])
DEFINE_VSL_BINARY_FUNC(Sub, y[i] = a[i] - b[i])
DEFINE_VSL_BINARY_FUNC(Mul, y[i] = a[i] * b[i])
DEFINE_VSL_BINARY_FUNC(Div, y[i] = a[i] / b[i])
DEFINE_VSL_BINARY_FUNC(Pow, y[i] = std::pow(a[i], b[i]))
DEFINE_VSL_BINARY_FUNC(Atan2, y[i] = std::atan2(a[i], b[i]))
