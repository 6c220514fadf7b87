// Replaces CUDA's header of this name: 8-bit floats. E4M3 has 3 bits of mantissa, no infinity, and one NaN of each sign;
// E5M2 is the upper half of a float16. A conversion to them rounds once, to nearest even. Not here: e8m0.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;

struct __half_raw {
  unsigned short x;
  operator __half() const { return __ushort_as_half(x); }
};
struct __half2_raw {
  unsigned short x, y;
  operator __half2() const { return __half2{__ushort_as_half(x), __ushort_as_half(y)}; }
};

namespace cuda_host {

inline unsigned char to_fp8(double value, bool saturate, bool is_e4m3) {
  const unsigned char sign = signbit(value) ? 0x80 : 0;
  const int bits = is_e4m3 ? 3 : 2, least = is_e4m3 ? -6 : -14;
  const double most = is_e4m3 ? 448 : 57344;
  if (isnan(value)) return sign | (is_e4m3 ? 0x7f : 0x7e);
  const double size = fabs(value);
  int exponent = least;
  if (size > 0 && isfinite(size)) exponent = ilogb(size) < least ? least : ilogb(size);
  const double step = ldexp(1., exponent - bits);
  const double nearest = isinf(size) ? size : nearbyint(size / step) * step;
  if (nearest > most) return sign | (saturate ? (is_e4m3 ? 0x7e : 0x7b) : is_e4m3 ? 0x7f : 0x7c);
  if (nearest < ldexp(1., least)) return sign | static_cast<unsigned char>(nearest / ldexp(1., least - bits));
  const int own = ilogb(nearest);
  const int mantissa = static_cast<int>(ldexp(nearest, bits - own)) - (1 << bits);
  return sign | static_cast<unsigned char>((own - least + 1) << bits | mantissa);
}

inline float of_fp8(unsigned char value, bool is_e4m3) {
  const int bits = is_e4m3 ? 3 : 2, least = is_e4m3 ? -6 : -14;
  const int mantissa = value & ((1 << bits) - 1), exponent = (value & 0x7f) >> bits;
  const float sign = value & 0x80 ? -1.f : 1.f;
  if (is_e4m3 ? (value & 0x7f) == 0x7f : (value & 0x7f) > 0x7c) return NAN;
  if (!is_e4m3 && exponent == 31) return sign * INFINITY;
  const int own = exponent ? mantissa + (1 << bits) : mantissa;
  return sign * ldexpf(static_cast<float>(own), least - bits + (exponent ? exponent - 1 : 0));
}

}  // namespace cuda_host

inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturate,
                                                 __nv_fp8_interpretation_t kind) {
  return cuda_host::to_fp8(x, saturate == __NV_SATFINITE, kind == __NV_E4M3);
}
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturate,
                                                __nv_fp8_interpretation_t kind) {
  return isnan(x) ? 0x7f : __nv_cvt_double_to_fp8(x, saturate, kind);  // a NaN of floats is CUDA's own
}
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half x, __nv_saturation_t saturate,
                                                  __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(__half2float(x), saturate, kind);
}
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16 x, __nv_saturation_t saturate,
                                                      __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(__bfloat162float(x), saturate, kind);
}
inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 x, __nv_saturation_t saturate,
                                                      __nv_fp8_interpretation_t kind) {
  return __nv_cvt_double_to_fp8(x.x, saturate, kind) | __nv_cvt_double_to_fp8(x.y, saturate, kind) << 8;
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t saturate,
                                                     __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(x.x, saturate, kind) | __nv_cvt_float_to_fp8(x.y, saturate, kind) << 8;
}
inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2 x, __nv_saturation_t saturate,
                                                       __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2(__half22float2(x), saturate, kind);
}
inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162 x, __nv_saturation_t saturate,
                                                           __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2(__bfloat1622float2(x), saturate, kind);
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  const float value = cuda_host::of_fp8(x, kind == __NV_E4M3);
  return {isnan(value) ? static_cast<unsigned short>(0x7fff) : __half_as_ushort(__float2half(value))};
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind) {
  return {__nv_cvt_fp8_to_halfraw(x & 0xff, kind).x, __nv_cvt_fp8_to_halfraw(x >> 8, kind).x};
}

namespace cuda_host {

template <__nv_fp8_interpretation_t kind>
struct Fp8 {
  __nv_fp8_storage_t __x;
  Fp8() = default;
  explicit Fp8(__half x) : __x(__nv_cvt_halfraw_to_fp8(x, __NV_SATFINITE, kind)) {}
  explicit Fp8(__nv_bfloat16 x) : __x(__nv_cvt_bfloat16raw_to_fp8(x, __NV_SATFINITE, kind)) {}
  explicit Fp8(float x) : __x(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, kind)) {}
  explicit Fp8(double x) : __x(__nv_cvt_double_to_fp8(x, __NV_SATFINITE, kind)) {}
  template <typename T, typename = std::enable_if_t<std::is_integral<T>::value>>
  explicit Fp8(T x) : Fp8(static_cast<float>(x)) {}
  explicit operator __half() const { return __nv_cvt_fp8_to_halfraw(__x, kind); }
  explicit operator float() const { return of_fp8(__x, kind == __NV_E4M3); }
  explicit operator double() const { return static_cast<float>(*this); }
  explicit operator __nv_bfloat16() const { return __float2bfloat16(static_cast<float>(*this)); }
  explicit operator signed char() const { return limited<signed char>(); }
  explicit operator char() const { return limited<char>(); }
  explicit operator unsigned char() const { return limited<unsigned char>(); }
  explicit operator short() const { return __half2short_rz(static_cast<__half>(*this)); }
  explicit operator unsigned short() const { return __half2ushort_rz(static_cast<__half>(*this)); }
  explicit operator int() const { return __half2int_rz(static_cast<__half>(*this)); }
  explicit operator unsigned int() const { return __half2uint_rz(static_cast<__half>(*this)); }
  explicit operator long() const { return __half2ll_rz(static_cast<__half>(*this)); }
  explicit operator unsigned long() const { return __half2ull_rz(static_cast<__half>(*this)); }
  explicit operator long long() const { return __half2ll_rz(static_cast<__half>(*this)); }
  explicit operator unsigned long long() const { return __half2ull_rz(static_cast<__half>(*this)); }
  explicit operator bool() const { return (__x & 0x7f) != 0; }

 private:
  template <typename Byte>
  Byte limited() const {
    const float x = static_cast<float>(*this), most = std::numeric_limits<Byte>::max();
    const float least = std::numeric_limits<Byte>::min();
    return isnan(x) ? 0 : static_cast<Byte>(x > most ? most : x < least ? least : x);
  }
};

template <__nv_fp8_interpretation_t kind>
struct alignas(2) Fp8x2 {
  __nv_fp8x2_storage_t __x;
  Fp8x2() = default;
  explicit Fp8x2(__half2 x) : __x(__nv_cvt_halfraw2_to_fp8x2(x, __NV_SATFINITE, kind)) {}
  explicit Fp8x2(__nv_bfloat162 x) : __x(__nv_cvt_bfloat16raw2_to_fp8x2(x, __NV_SATFINITE, kind)) {}
  explicit Fp8x2(float2 x) : __x(__nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, kind)) {}
  explicit Fp8x2(double2 x) : __x(__nv_cvt_double2_to_fp8x2(x, __NV_SATFINITE, kind)) {}
  explicit operator __half2() const { return __nv_cvt_fp8x2_to_halfraw2(__x, kind); }
  explicit operator float2() const {
    return {of_fp8(__x & 0xff, kind == __NV_E4M3), of_fp8(__x >> 8, kind == __NV_E4M3)};
  }
};

template <__nv_fp8_interpretation_t kind>
struct alignas(4) Fp8x4 {
  __nv_fp8x4_storage_t __x;
  Fp8x4() = default;
  template <typename Pair>
  explicit Fp8x4(Pair low, Pair high)
      : __x(Fp8x2<kind>(low).__x | static_cast<unsigned int>(Fp8x2<kind>(high).__x) << 16) {}
  explicit Fp8x4(float4 x) : Fp8x4(float2{x.x, x.y}, float2{x.z, x.w}) {}
  explicit Fp8x4(double4 x) : Fp8x4(double2{x.x, x.y}, double2{x.z, x.w}) {}
  explicit operator float4() const {
    const bool is_e4m3 = kind == __NV_E4M3;
    return {of_fp8(__x & 0xff, is_e4m3), of_fp8(__x >> 8 & 0xff, is_e4m3), of_fp8(__x >> 16 & 0xff, is_e4m3),
            of_fp8(__x >> 24, is_e4m3)};
  }
};

}  // namespace cuda_host

typedef cuda_host::Fp8<__NV_E4M3> __nv_fp8_e4m3;
typedef cuda_host::Fp8<__NV_E5M2> __nv_fp8_e5m2;
typedef cuda_host::Fp8x2<__NV_E4M3> __nv_fp8x2_e4m3;
typedef cuda_host::Fp8x2<__NV_E5M2> __nv_fp8x2_e5m2;
typedef cuda_host::Fp8x4<__NV_E4M3> __nv_fp8x4_e4m3;
typedef cuda_host::Fp8x4<__NV_E5M2> __nv_fp8x4_e5m2;
