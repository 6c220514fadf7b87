// CUDA's conversions and arithmetic with a rounding mode: rn to nearest, rz towards 0, rd down, ru up.
#pragma once

#include <fenv.h>
#include <math.h>

#include "cuda_convert.h"
#include "vector_types.h"

// A value of which the compiler knows nothing before this call.
template <typename T>
T caffe_read_now(T x) {
  volatile T copy = x;
  return copy;
}

// The result of `compute` in that rounding mode. The compiler ignores modes and could compute before the mode is set, or
// after it is reset. (Volatile parameters are none any more where a function is inlined.)
template <int kMode, typename Result, typename Compute, typename... Operands>
Result caffe_rounded(const Compute& compute, Operands... operands) {
  const int before = fegetround();
  fesetround(kMode);
  volatile Result result = compute(caffe_read_now(operands)...);
  fesetround(before);
  return result;
}

#define CAFFE_HOST_INTEGER(real, name, integer)                                                         \
  inline integer __##real##2##name##_rn(real x) { return caffe_saturated<integer>(std::nearbyint(x)); } \
  inline integer __##real##2##name##_rz(real x) { return caffe_saturated<integer>(std::trunc(x)); }     \
  inline integer __##real##2##name##_rd(real x) { return caffe_saturated<integer>(std::floor(x)); }     \
  inline integer __##real##2##name##_ru(real x) { return caffe_saturated<integer>(std::ceil(x)); }
#define CAFFE_HOST_GIVEN(...) __VA_ARGS__
#define CAFFE_HOST_MODE(to, name, result, parameters, given)                                  \
  inline result name parameters {                                                             \
    return caffe_rounded<to, result>([] parameters -> result { return CAFFE_HOST_COMPUTED; }, \
                                     CAFFE_HOST_GIVEN given);                                 \
  }
// The processor rounds to nearest by default.
#define CAFFE_HOST_MODES(name, result, parameters, given)              \
  inline result name##_rn parameters { return CAFFE_HOST_COMPUTED; }   \
  CAFFE_HOST_MODE(FE_TOWARDZERO, name##_rz, result, parameters, given) \
  CAFFE_HOST_MODE(FE_DOWNWARD, name##_rd, result, parameters, given)   \
  CAFFE_HOST_MODE(FE_UPWARD, name##_ru, result, parameters, given)
#define CAFFE_HOST_INTEGERS(real)              \
  CAFFE_HOST_INTEGER(real, int, int)           \
  CAFFE_HOST_INTEGER(real, uint, unsigned int) \
  CAFFE_HOST_INTEGER(real, ll, long long)      \
  CAFFE_HOST_INTEGER(real, ull, unsigned long long)
CAFFE_HOST_INTEGERS(float)
CAFFE_HOST_INTEGERS(double)

#define CAFFE_HOST_COMPUTED static_cast<float>(x)
CAFFE_HOST_MODES(__int2float, float, (cuda_host::Int x), (static_cast<int>(x)))
CAFFE_HOST_MODES(__uint2float, float, (cuda_host::UInt x), (static_cast<unsigned int>(x)))
CAFFE_HOST_MODES(__ll2float, float, (cuda_host::Int64 x), (static_cast<long long>(x)))
CAFFE_HOST_MODES(__ull2float, float, (cuda_host::UInt64 x), (static_cast<unsigned long long>(x)))
CAFFE_HOST_MODES(__double2float, float, (double x), (x))
#undef CAFFE_HOST_COMPUTED
#define CAFFE_HOST_COMPUTED static_cast<double>(x)
CAFFE_HOST_MODES(__ll2double, double, (cuda_host::Int64 x), (static_cast<long long>(x)))
CAFFE_HOST_MODES(__ull2double, double, (cuda_host::UInt64 x), (static_cast<unsigned long long>(x)))
inline double __int2double_rn(cuda_host::Int x) { return x; }
inline double __uint2double_rn(cuda_host::UInt x) { return x; }
#undef CAFFE_HOST_COMPUTED
#define CAFFE_HOST_COMPUTED x + y
CAFFE_HOST_MODES(__fadd, float, (float x, float y), (x, y))
CAFFE_HOST_MODES(__dadd, double, (double x, double y), (x, y))
#undef CAFFE_HOST_COMPUTED
#define CAFFE_HOST_COMPUTED x - y
CAFFE_HOST_MODES(__fsub, float, (float x, float y), (x, y))
CAFFE_HOST_MODES(__dsub, double, (double x, double y), (x, y))
#undef CAFFE_HOST_COMPUTED
#define CAFFE_HOST_COMPUTED x* y
CAFFE_HOST_MODES(__fmul, float, (float x, float y), (x, y))
CAFFE_HOST_MODES(__dmul, double, (double x, double y), (x, y))
#undef CAFFE_HOST_COMPUTED
#define CAFFE_HOST_COMPUTED x / y
CAFFE_HOST_MODES(__fdiv, float, (float x, float y), (x, y))
CAFFE_HOST_MODES(__ddiv, double, (double x, double y), (x, y))
#undef CAFFE_HOST_COMPUTED
#define CAFFE_HOST_COMPUTED std::fma(x, y, z)
CAFFE_HOST_MODES(__fmaf, float, (float x, float y, float z), (x, y, z))
CAFFE_HOST_MODES(__fma, double, (double x, double y, double z), (x, y, z))
#undef CAFFE_HOST_COMPUTED
#define CAFFE_HOST_COMPUTED 1 / x
CAFFE_HOST_MODES(__frcp, float, (float x), (x))
CAFFE_HOST_MODES(__drcp, double, (double x), (x))
#undef CAFFE_HOST_COMPUTED
#define CAFFE_HOST_COMPUTED std::sqrt(x)
CAFFE_HOST_MODES(__fsqrt, float, (float x), (x))
CAFFE_HOST_MODES(__dsqrt, double, (double x), (x))
#undef CAFFE_HOST_COMPUTED
#define CAFFE_HOST_PAIRED(mode)                                          \
  __forceinline__ float2 __fadd2_##mode(float2 x, float2 y) {            \
    return {__fadd_##mode(x.x, y.x), __fadd_##mode(x.y, y.y)};           \
  }                                                                      \
  __forceinline__ float2 __fmul2_##mode(float2 x, float2 y) {            \
    return {__fmul_##mode(x.x, y.x), __fmul_##mode(x.y, y.y)};           \
  }                                                                      \
  __forceinline__ float2 __ffma2_##mode(float2 x, float2 y, float2 z) {  \
    return {__fmaf_##mode(x.x, y.x, z.x), __fmaf_##mode(x.y, y.y, z.y)}; \
  }                                                                      \
  inline float __fmaf_ieee_##mode(float x, float y, float z) { return __fmaf_##mode(x, y, z); }
CAFFE_HOST_PAIRED(rn)
CAFFE_HOST_PAIRED(rz)
CAFFE_HOST_PAIRED(rd)
CAFFE_HOST_PAIRED(ru)
#undef CAFFE_HOST_PAIRED
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
#undef CAFFE_HOST_INTEGER
#undef CAFFE_HOST_INTEGERS
#undef CAFFE_HOST_MODE
#undef CAFFE_HOST_MODES
#undef CAFFE_HOST_GIVEN
