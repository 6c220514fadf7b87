// CUDA's min and max for host compilers. Old sources call them in .cpp files, too.
#pragma once

#include <math.h>

// Functions for each type, as in CUDA, so that the compiler prefers them to std::max after `using std::max`.
#define CAFFE_HOST_MIN_MAX(result, a_type, b_type)                                   \
  constexpr result min(a_type a, b_type b) {                                         \
    return static_cast<result>(a) < static_cast<result>(b) ? static_cast<result>(a)  \
                                                           : static_cast<result>(b); \
  }                                                                                  \
  constexpr result max(a_type a, b_type b) {                                         \
    return static_cast<result>(a) < static_cast<result>(b) ? static_cast<result>(b)  \
                                                           : static_cast<result>(a); \
  }
CAFFE_HOST_MIN_MAX(int, int, int)
CAFFE_HOST_MIN_MAX(unsigned int, unsigned int, unsigned int)
CAFFE_HOST_MIN_MAX(unsigned int, int, unsigned int)
CAFFE_HOST_MIN_MAX(unsigned int, unsigned int, int)
CAFFE_HOST_MIN_MAX(long, long, long)
CAFFE_HOST_MIN_MAX(unsigned long, unsigned long, unsigned long)
CAFFE_HOST_MIN_MAX(unsigned long, long, unsigned long)
CAFFE_HOST_MIN_MAX(unsigned long, unsigned long, long)
CAFFE_HOST_MIN_MAX(long long, long long, long long)
CAFFE_HOST_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
CAFFE_HOST_MIN_MAX(unsigned long long, long long, unsigned long long)
CAFFE_HOST_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef CAFFE_HOST_MIN_MAX

// For floating point CUDA's min and max ignore a NaN, as fmin and fmax do.
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double min(float a, double b) { return fmin(a, b); }
inline double max(float a, double b) { return fmax(a, b); }
inline double min(double a, float b) { return fmin(a, b); }
inline double max(double a, float b) { return fmax(a, b); }
