// CUDA's complex numbers: pairs of real and imaginary part.
#pragma once

#include <math.h>

#include "cuda_runtime.h"

#define CAFFE_HOST_COMPLEX(type, pair, suffix, dot)                                                        \
  typedef pair cu##dot##Complex;                                                                           \
  __forceinline__ type cuCreal##suffix(pair x) { return x.x; }                                             \
  __forceinline__ type cuCimag##suffix(pair x) { return x.y; }                                             \
  __forceinline__ pair make_cu##dot##Complex(type real, type imaginary) { return pair{real, imaginary}; }  \
  __forceinline__ pair cuConj##suffix(pair x) { return pair{x.x, -x.y}; }                                  \
  __forceinline__ pair cuCadd##suffix(pair x, pair y) { return pair{x.x + y.x, x.y + y.y}; }               \
  __forceinline__ pair cuCsub##suffix(pair x, pair y) { return pair{x.x - y.x, x.y - y.y}; }               \
  __forceinline__ pair cuCmul##suffix(pair x, pair y) {                                                    \
    return pair{x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x};                                             \
  }                                                                                                        \
  __forceinline__ type cuCabs##suffix(pair x) { return hypot(x.x, x.y); }                                  \
  __forceinline__ pair cuCdiv##suffix(pair x, pair y) {                                                    \
    const type scale = fabs(y.x) + fabs(y.y); /* so that the squares do not overflow */                    \
    const type a = x.x / scale, b = x.y / scale, c = y.x / scale, d = y.y / scale, length = c * c + d * d; \
    return pair{(a * c + b * d) / length, (b * c - a * d) / length};                                       \
  }                                                                                                        \
  __forceinline__ pair cuCfma##suffix(pair x, pair y, pair z) {                                            \
    return cuCadd##suffix(cuCmul##suffix(x, y), z);                                                        \
  }
CAFFE_HOST_COMPLEX(float, float2, f, Float)
CAFFE_HOST_COMPLEX(double, double2, , Double)
#undef CAFFE_HOST_COMPLEX

typedef cuFloatComplex cuComplex;
__forceinline__ cuComplex make_cuComplex(float real, float imaginary) {
  return make_cuFloatComplex(real, imaginary);
}
__forceinline__ cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x) {
  return make_cuDoubleComplex(x.x, x.y);
}
__forceinline__ cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x) {
  return make_cuFloatComplex(static_cast<float>(x.x), static_cast<float>(x.y));
}
