// CUDA's mathematical functions that C's <math.h> lacks.
#ifndef CAFFE_HOST_CUDA_MATH_H_
#define CAFFE_HOST_CUDA_MATH_H_

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_min_max.h"

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
// The length of a vector of that many elements, which overflows only where the result does.
template <typename T>
T caffe_norm(int n, const T* x) {
  T length = 0;
  for (int i = 0; i < n; ++i) length = hypot(length, x[i]);
  return length;
}
inline double norm(int n, const double* x) { return caffe_norm(n, x); }
inline float normf(int n, const float* x) { return caffe_norm(n, x); }
inline double rnorm(int n, const double* x) { return 1.0 / norm(n, x); }
inline float rnormf(int n, const float* x) { return 1.0f / normf(n, x); }
inline float __saturatef(float x) { return x > 0.0f ? fminf(x, 1.0f) : 0.0f; }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
// Macros, because glibc's <math.h> declares functions of these names.
#define __expf(x) expf(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __powf(x, y) powf(x, y)

inline int __float2int_rn(float x) { return static_cast<int>(nearbyintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }

// How often a bit is set, and where the first and last one is; 0 and the full width for 0, as in CUDA.
inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned int>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __mul24(int a, int b) { return a * b; }

#define CAFFE_HOST_REINTERPRET(name, from, to)                  \
  inline to name(from x) {                                      \
    static_assert(sizeof(from) == sizeof(to), "the same bits"); \
    to y;                                                       \
    memcpy(&y, &x, sizeof(y));                                  \
    return y;                                                   \
  }
CAFFE_HOST_REINTERPRET(__float_as_int, float, int)
CAFFE_HOST_REINTERPRET(__int_as_float, int, float)
CAFFE_HOST_REINTERPRET(__float_as_uint, float, unsigned int)
CAFFE_HOST_REINTERPRET(__uint_as_float, unsigned int, float)
CAFFE_HOST_REINTERPRET(__double_as_longlong, double, long long)
CAFFE_HOST_REINTERPRET(__longlong_as_double, long long, double)
#undef CAFFE_HOST_REINTERPRET

template <typename T>
inline T __ldg(const T* address) {
  return *address;
}

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
// glibc's libmvec has these for 4 to 16 numbers at once (error below 4 ulp). Its own headers say so
// only under -ffast-math, which would also change the meaning of NaN; said here, loops vectorise.
#define CAFFE_HOST_VECTORISED __attribute__((simd("notinbranch")))
extern "C" {
CAFFE_HOST_VECTORISED float expf(float) noexcept;
CAFFE_HOST_VECTORISED double exp(double) noexcept;
CAFFE_HOST_VECTORISED float logf(float) noexcept;
CAFFE_HOST_VECTORISED double log(double) noexcept;
CAFFE_HOST_VECTORISED float powf(float, float) noexcept;
CAFFE_HOST_VECTORISED double pow(double, double) noexcept;
CAFFE_HOST_VECTORISED float sinf(float) noexcept;
CAFFE_HOST_VECTORISED double sin(double) noexcept;
CAFFE_HOST_VECTORISED float cosf(float) noexcept;
CAFFE_HOST_VECTORISED double cos(double) noexcept;
}
#undef CAFFE_HOST_VECTORISED
#endif

#endif  // CAFFE_HOST_CUDA_MATH_H_
