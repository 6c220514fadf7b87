// The BLAS names that Caffe sources use. The work is done by the BLAS library that torch has loaded (see
// src/caffe/util/blas.cpp): there is no cblas.h to install and nothing to link.
#ifndef CAFFE_UTIL_MKL_ALTERNATE_HPP_
#define CAFFE_UTIL_MKL_ALTERNATE_HPP_

enum CBLAS_ORDER { CblasRowMajor = 101, CblasColMajor = 102 };
enum CBLAS_TRANSPOSE { CblasNoTrans = 111, CblasTrans = 112, CblasConjTrans = 113 };

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
  Dtype cblas_##s##nrm2(int n, const Dtype* x, int incx);
CAFFE_DECLARE_CBLAS(s, float)
CAFFE_DECLARE_CBLAS(d, double)
#undef CAFFE_DECLARE_CBLAS

#endif  // CAFFE_UTIL_MKL_ALTERNATE_HPP_
