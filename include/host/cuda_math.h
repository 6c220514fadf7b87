// CUDA's mathematical functions that are not in C's <math.h>.
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_integer.h"
// nvcc knows them only in a .cu. A .cpp of an extension may have its own.
#ifndef CAFFE_HOST_WITHOUT_MIN_MAX
#include "cuda_min_max.h"
#endif
#include "cuda_rounding.h"
#include "cuda_special.h"

inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
// The norm of a vector with that many elements. Overflows only if the result does.
template <typename T>
T caffe_norm(int n, const T* x) {
  T length = 0;
  for (int i = 0; i < n; ++i) length = hypot(length, x[i]);
  return length;
}
inline double norm(cuda_host::Int n, const double* x) { return caffe_norm(n, x); }
inline float normf(cuda_host::Int n, const float* x) { return caffe_norm(n, x); }
inline double rnorm(cuda_host::Int n, const double* x) { return 1.0 / norm(n, x); }
inline float rnormf(cuda_host::Int n, const float* x) { return 1.0f / normf(n, x); }
inline float __saturatef(float x) { return x > 0.0f ? fminf(x, 1.0f) : 0.0f; }
inline float __fdividef(float a, float b) { return a / b; }
template <int = 0>
inline float fdividef(float a, float b) {
  return a / b;
}
template <int = 0>
inline double fdivide(double a, double b) {
  return a / b;
}
// Macros, because glibc's <math.h> declares functions of these names.
#define __expf(x) expf(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __sincosf(x, sine, cosine) sincosf(x, sine, cosine)
#define __prof_trigger(counter) ((void)(counter))
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __powf(x, y) powf(x, y)

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
// glibc's libmvec computes these for 4 to 16 numbers at once (error below 4 ulp). Its headers declare that only
// under -ffast-math, which would also change the meaning of NaN. The declarations here let loops vectorise without it.
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
