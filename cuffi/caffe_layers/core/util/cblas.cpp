// cblas_* for Caffe sources. The matrix functions call the Fortran interface of the BLAS that torch has
// loaded: every BLAS exports it, also libtorch_cpu.so. The vector functions are computed here.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "caffe/host_services.hpp"
#include "caffe/util/mkl_alternate.hpp"
#include "find_symbol.hpp"

namespace {

template <typename Dtype>
using Gemm = void(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
                  const Dtype* alpha, const Dtype* a, const int* lda, const Dtype* b, const int* ldb,
                  const Dtype* beta, Dtype* c, const int* ldc);
template <typename Dtype>
using Gemv = void(const char* trans, const int* m, const int* n, const Dtype* alpha, const Dtype* a,
                  const int* lda, const Dtype* x, const int* incx, const Dtype* beta, Dtype* y,
                  const int* incy);

template <typename Dtype>
using Trsm = void(const char* side, const char* uplo, const char* trans, const char* diag, const int* m,
                  const int* n, const Dtype* alpha, const Dtype* a, const int* lda, Dtype* b, const int* ldb);

template <typename Function>
Function* blas(const char* name) {
  return caffe::find_symbol<Function>(caffe::host_services.blas_library, "BLAS", name);
}

char letter(CBLAS_TRANSPOSE trans) { return trans == CblasNoTrans ? 'N' : 'T'; }
char opposite(CBLAS_TRANSPOSE trans) { return trans == CblasNoTrans ? 'T' : 'N'; }

// A vector with a step. As in BLAS, a negative step starts at the far end.
template <typename Dtype>
struct Strided {
  Dtype* first;
  ptrdiff_t step;
  Strided(int n, Dtype* x, int inc) : first(inc < 0 ? x - ptrdiff_t(n - 1) * inc : x), step(inc) {}
  Dtype& operator[](ptrdiff_t i) const { return first[i * step]; }
};

// Calls body(x, y, i) for each i < n. Steps of 1 have a loop of their own, which compilers vectorise.
template <typename X, typename Y, typename Body>
void walk(int n, X* x, int incx, Y* y, int incy, const Body& body) {
  if (incx == 1 && incy == 1) {
#pragma GCC ivdep
    for (int i = 0; i < n; ++i) body(x[i], y[i]);
  } else {
    const Strided<X> xs(n, x, incx);
    const Strided<Y> ys(n, y, incy);
    for (int i = 0; i < n; ++i) body(xs[i], ys[i]);
  }
}

// The sum of term(0) ... term(n - 1). It has 16 lanes, which the compiler keeps in vector registers. The sums
// of blocks are added in double, so that a long float vector loses no digits.
template <typename Dtype, typename Term>
double sum(int n, const Term& term) {
  constexpr int kLanes = 16, kBlock = 4096;
  double total = 0;
  for (int start = 0; start < n;) {
    const int end = n - start > kBlock ? start + kBlock : n;
    Dtype lane[kLanes] = {};
    for (; end - start >= kLanes; start += kLanes)
      for (int l = 0; l < kLanes; ++l) lane[l] += term(start + l);
    for (; start < end; ++start) lane[0] += term(start);
    for (int l = 0; l < kLanes; ++l) total += lane[l];
  }
  return total;
}

template <typename Dtype>
void gemm(Gemm<Dtype>* function, CBLAS_ORDER order, CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, int m,
          int n, int k, Dtype alpha, const Dtype* a, int lda, const Dtype* b, int ldb, Dtype beta, Dtype* c,
          int ldc) {
  if (order == CblasRowMajor) {  // BLAS reads it as column-major, transposed: C' = op(B)' op(A)'
    std::swap(trans_a, trans_b);
    std::swap(m, n);
    std::swap(a, b);
    std::swap(lda, ldb);
  }
  if (m <= 0 || n <= 0) return;
  // BLAS refuses a leading dimension of 0, which an empty matrix may have.
  lda = std::max(lda, 1);
  ldb = std::max(ldb, 1);
  const char ta = letter(trans_a), tb = letter(trans_b);
  function(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

template <typename Dtype>
void scal(int n, Dtype alpha, Dtype* x, int incx) {
  if (incx == 1) {
    for (int i = 0; i < n; ++i) x[i] *= alpha;
  } else {
    const Strided<Dtype> xs(n, x, incx);
    for (int i = 0; i < n; ++i) xs[i] *= alpha;
  }
}

template <typename Dtype>
void axpby(int n, Dtype alpha, const Dtype* x, int incx, Dtype beta, Dtype* y, int incy) {
  if (beta == 0) {
    walk(n, x, incx, y, incy, [=](const Dtype& from, Dtype& to) { to = alpha * from; });
  } else {
    walk(n, x, incx, y, incy, [=](const Dtype& from, Dtype& to) { to = alpha * from + beta * to; });
  }
}

template <typename Dtype>
void gemv(Gemv<Dtype>* function, CBLAS_ORDER order, CBLAS_TRANSPOSE trans, int m, int n, Dtype alpha,
          const Dtype* a, int lda, const Dtype* x, int incx, Dtype beta, Dtype* y, int incy) {
  const int length = trans == CblasNoTrans ? m : n, terms = trans == CblasNoTrans ? n : m;
  if (length <= 0) return;
  if (terms <= 0) {  // BLAS would return without touching y
    const Strided<Dtype> ys(length, y, incy);
    for (int i = 0; i < length; ++i) ys[i] = beta == 0 ? Dtype(0) : beta * ys[i];
    return;
  }
  char t = letter(trans);
  if (order == CblasRowMajor) {
    std::swap(m, n);
    t = opposite(trans);
  }
  function(&t, &m, &n, &alpha, a, &lda, x, &incx, &beta, y, &incy);
}

template <typename Dtype>
Dtype dot(int n, const Dtype* x, int incx, const Dtype* y, int incy) {
  if (incx == 1 && incy == 1) return static_cast<Dtype>(sum<Dtype>(n, [=](int i) { return x[i] * y[i]; }));
  const Strided<const Dtype> xs(n, x, incx), ys(n, y, incy);
  return static_cast<Dtype>(sum<Dtype>(n, [=](int i) { return xs[i] * ys[i]; }));
}

template <typename Dtype>
Dtype asum(int n, const Dtype* x, int incx) {
  if (incx == 1) return static_cast<Dtype>(sum<Dtype>(n, [=](int i) { return std::fabs(x[i]); }));
  const Strided<const Dtype> xs(n, x, incx);
  return static_cast<Dtype>(sum<Dtype>(n, [=](int i) { return std::fabs(xs[i]); }));
}

template <typename Dtype>
Dtype nrm2(int n, const Dtype* x, int incx) {  // squares in double, where a float's square cannot overflow
  const Strided<const Dtype> xs(n, x, incx);
  return static_cast<Dtype>(std::sqrt(sum<double>(n, [=](int i) { return double(xs[i]) * xs[i]; })));
}

// The index of the first element with the largest absolute value.
template <typename Dtype>
size_t amax(int n, const Dtype* x, int incx) {
  size_t best = 0;
  for (int i = 1; i < n; ++i)
    if (std::fabs(x[ptrdiff_t(i) * incx]) > std::fabs(x[best * incx])) best = i;
  return best;
}

template <typename Dtype>
void ger(CBLAS_ORDER order, int m, int n, Dtype alpha, const Dtype* x, int incx, const Dtype* y, int incy,
         Dtype* a, int lda) {
  const Strided<const Dtype> xs(m, x, incx), ys(n, y, incy);
  const ptrdiff_t row = order == CblasRowMajor ? lda : 1, column = order == CblasRowMajor ? 1 : lda;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) a[i * row + j * column] += alpha * xs[i] * ys[j];
}

// The whole matrix of a symmetric one whose triangle is given. Dense, so that both orders read the same.
template <typename Dtype>
std::vector<Dtype> whole(CBLAS_ORDER order, CBLAS_UPLO uplo, int n, const Dtype* a, int lda) {
  std::vector<Dtype> all(size_t(n) * n);
  const bool rows_grow = (order == CblasRowMajor) == (uplo == CblasUpper);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      const int low = std::min(i, j), high = std::max(i, j);
      all[size_t(i) * n + j] = rows_grow ? a[size_t(low) * lda + high] : a[size_t(high) * lda + low];
    }
  return all;
}

template <typename Dtype>
void trsm(Trsm<Dtype>* function, CBLAS_ORDER order, CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans,
          CBLAS_DIAG diag, int m, int n, Dtype alpha, const Dtype* a, int lda, Dtype* b, int ldb) {
  if (m <= 0 || n <= 0) return;
  bool left = side == CblasLeft, upper = uplo == CblasUpper;
  if (order == CblasRowMajor) {  // the transposed system
    std::swap(m, n);
    left = !left;
    upper = !upper;
  }
  const char t = letter(trans);
  function(left ? "L" : "R", upper ? "U" : "L", &t, diag == CblasUnit ? "U" : "N", &m, &n, &alpha, a, &lda, b,
           &ldb);
}

}  // namespace

#define CAFFE_DEFINE_CBLAS(s, Dtype)                                                                        \
  void cblas_##s##gemm(CBLAS_ORDER order, CBLAS_TRANSPOSE trans_a, CBLAS_TRANSPOSE trans_b, int m, int n,   \
                       int k, Dtype alpha, const Dtype* a, int lda, const Dtype* b, int ldb, Dtype beta,    \
                       Dtype* c, int ldc) {                                                                 \
    static Gemm<Dtype>* const function = blas<Gemm<Dtype>>(#s "gemm_");                                     \
    gemm(function, order, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                  \
  }                                                                                                         \
  void cblas_##s##gemm_batch(                                                                               \
      CBLAS_ORDER order, const CBLAS_TRANSPOSE* trans_a, const CBLAS_TRANSPOSE* trans_b, const int* m,      \
      const int* n, const int* k, const Dtype* alpha, const Dtype** a, const int* lda, const Dtype** b,     \
      const int* ldb, const Dtype* beta, Dtype** c, const int* ldc, int groups, const int* sizes) {         \
    for (int g = 0, at = 0; g < groups; ++g)                                                                \
      for (const int end = at + sizes[g]; at < end; ++at)                                                   \
        cblas_##s##gemm(order, trans_a[g], trans_b[g], m[g], n[g], k[g], alpha[g], a[at], lda[g], b[at],    \
                        ldb[g], beta[g], c[at], ldc[g]);                                                    \
  }                                                                                                         \
  void cblas_##s##gemv(CBLAS_ORDER order, CBLAS_TRANSPOSE trans, int m, int n, Dtype alpha, const Dtype* a, \
                       int lda, const Dtype* x, int incx, Dtype beta, Dtype* y, int incy) {                 \
    static Gemv<Dtype>* const function = blas<Gemv<Dtype>>(#s "gemv_");                                     \
    gemv(function, order, trans, m, n, alpha, a, lda, x, incx, beta, y, incy);                              \
  }                                                                                                         \
  void cblas_##s##axpy(int n, Dtype alpha, const Dtype* x, int incx, Dtype* y, int incy) {                  \
    walk(n, x, incx, y, incy, [=](const Dtype& from, Dtype& to) { to += alpha * from; });                   \
  }                                                                                                         \
  void cblas_##s##axpby(int n, Dtype alpha, const Dtype* x, int incx, Dtype beta, Dtype* y, int incy) {     \
    axpby(n, alpha, x, incx, beta, y, incy);                                                                \
  }                                                                                                         \
  void cblas_##s##scal(int n, Dtype alpha, Dtype* x, int incx) { scal(n, alpha, x, incx); }                 \
  void cblas_##s##copy(int n, const Dtype* x, int incx, Dtype* y, int incy) {                               \
    walk(n, x, incx, y, incy, [](const Dtype& from, Dtype& to) { to = from; });                             \
  }                                                                                                         \
  Dtype cblas_##s##dot(int n, const Dtype* x, int incx, const Dtype* y, int incy) {                         \
    return dot(n, x, incx, y, incy);                                                                        \
  }                                                                                                         \
  Dtype cblas_##s##asum(int n, const Dtype* x, int incx) { return asum(n, x, incx); }                       \
  Dtype cblas_##s##nrm2(int n, const Dtype* x, int incx) { return nrm2(n, x, incx); }                       \
  size_t cblas_i##s##amax(int n, const Dtype* x, int incx) { return amax(n, x, incx); }                     \
  void cblas_##s##swap(int n, Dtype* x, int incx, Dtype* y, int incy) {                                     \
    walk(n, x, incx, y, incy, [](Dtype& a, Dtype& b) { std::swap(a, b); });                                 \
  }                                                                                                         \
  void cblas_##s##ger(CBLAS_ORDER order, int m, int n, Dtype alpha, const Dtype* x, int incx,               \
                      const Dtype* y, int incy, Dtype* a, int lda) {                                        \
    ger(order, m, n, alpha, x, incx, y, incy, a, lda);                                                      \
  }                                                                                                         \
  void cblas_##s##symm(CBLAS_ORDER order, CBLAS_SIDE side, CBLAS_UPLO uplo, int m, int n, Dtype alpha,      \
                       const Dtype* a, int lda, const Dtype* b, int ldb, Dtype beta, Dtype* c, int ldc) {   \
    const int k = side == CblasLeft ? m : n;                                                                \
    const std::vector<Dtype> all = whole(order, uplo, k, a, lda);                                           \
    const bool left = side == CblasLeft;                                                                    \
    cblas_##s##gemm(order, CblasNoTrans, CblasNoTrans, m, n, k, alpha, left ? all.data() : b,               \
                    left ? k : ldb, left ? b : all.data(), left ? ldb : k, beta, c, ldc);                   \
  }                                                                                                         \
  void cblas_##s##symv(CBLAS_ORDER order, CBLAS_UPLO uplo, int n, Dtype alpha, const Dtype* a, int lda,     \
                       const Dtype* x, int incx, Dtype beta, Dtype* y, int incy) {                          \
    const std::vector<Dtype> all = whole(order, uplo, n, a, lda);                                           \
    cblas_##s##gemv(order, CblasNoTrans, n, n, alpha, all.data(), n, x, incx, beta, y, incy);               \
  }                                                                                                         \
  void cblas_##s##trsm(CBLAS_ORDER order, CBLAS_SIDE side, CBLAS_UPLO uplo, CBLAS_TRANSPOSE trans,          \
                       CBLAS_DIAG diag, int m, int n, Dtype alpha, const Dtype* a, int lda, Dtype* b,       \
                       int ldb) {                                                                           \
    static Trsm<Dtype>* const function = blas<Trsm<Dtype>>(#s "trsm_");                                     \
    trsm(function, order, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb);                            \
  }
CAFFE_DEFINE_CBLAS(s, float)
CAFFE_DEFINE_CBLAS(d, double)
