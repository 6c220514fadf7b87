// CUDA's half types: two bytes, and arithmetic that rounds each result to a half, by way of float. cuda_fp16.h and
// cuda_bf16.h give them CUDA's names.
#pragma once

#include <math.h>

#include "../caffe_half.h"
#include "cuda_runtime.h"

namespace cuda_host {

// The next float towards zero, with its last bit set, unless the number is a float. Rounded to a half it is what the
// number itself would be.
__forceinline__ float round_to_odd(double number) {
  float near = static_cast<float>(number);
  if (static_cast<double>(near) == number || number != number || fabsf(near) == INFINITY) return near;
  uint32_t bits;
  memcpy(&bits, &near, sizeof(bits));
  if (fabs(static_cast<double>(near)) > fabs(number)) --bits;
  bits |= 1;
  memcpy(&near, &bits, sizeof(bits));
  return near;
}

// Operators of its own, because an expression of caffe::half is one of floats.
template <typename Format>
struct alignas(2) Half : cuffi::types::half_detail::Reduced<Format> {
  using Base = cuffi::types::half_detail::Reduced<Format>;
  Half() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  __forceinline__ Half(T value) : Base(value) {}
  __forceinline__ Half(Base value) : Base(value) {}
  __forceinline__ float f() const { return *this; }
  __forceinline__ Half& operator+=(Half y) { return *this = f() + y.f(); }
  __forceinline__ Half& operator-=(Half y) { return *this = f() - y.f(); }
  __forceinline__ Half& operator*=(Half y) { return *this = f() * y.f(); }
  __forceinline__ Half& operator/=(Half y) { return *this = f() / y.f(); }
  __forceinline__ friend Half operator+(Half x, Half y) { return x.f() + y.f(); }
  __forceinline__ friend Half operator-(Half x, Half y) { return x.f() - y.f(); }
  __forceinline__ friend Half operator*(Half x, Half y) { return x.f() * y.f(); }
  __forceinline__ friend Half operator/(Half x, Half y) { return x.f() / y.f(); }
  __forceinline__ friend Half operator-(Half x) { return -x.f(); }
  __forceinline__ friend bool operator==(Half x, Half y) { return x.f() == y.f(); }
  __forceinline__ friend bool operator!=(Half x, Half y) { return x.f() != y.f(); }
  __forceinline__ friend bool operator<(Half x, Half y) { return x.f() < y.f(); }
  __forceinline__ friend bool operator>(Half x, Half y) { return x.f() > y.f(); }
  __forceinline__ friend bool operator<=(Half x, Half y) { return x.f() <= y.f(); }
  __forceinline__ friend bool operator>=(Half x, Half y) { return x.f() >= y.f(); }
};

template <typename Format>
struct alignas(4) Half2 {
  using One = Half<Format>;
  One x, y;
  Half2() = default;
  __forceinline__ Half2(One x_, One y_) : x(x_), y(y_) {}
  __forceinline__ friend Half2 operator+(Half2 a, Half2 b) { return {a.x + b.x, a.y + b.y}; }
  __forceinline__ friend Half2 operator-(Half2 a, Half2 b) { return {a.x - b.x, a.y - b.y}; }
  __forceinline__ friend Half2 operator*(Half2 a, Half2 b) { return {a.x * b.x, a.y * b.y}; }
  __forceinline__ friend Half2 operator/(Half2 a, Half2 b) { return {a.x / b.x, a.y / b.y}; }
  __forceinline__ friend Half2 operator-(Half2 a) { return {-a.x, -a.y}; }
  __forceinline__ Half2& operator+=(Half2 b) { return *this = *this + b; }
  __forceinline__ Half2& operator-=(Half2 b) { return *this = *this - b; }
  __forceinline__ Half2& operator*=(Half2 b) { return *this = *this * b; }
  __forceinline__ friend bool operator==(Half2 a, Half2 b) { return a.x == b.x && a.y == b.y; }
};

}  // namespace cuda_host

#define CAFFE_HOST_OF_HALVES(name, parameters, expression) \
  template <typename F>                                    \
  __forceinline__ cuda_host::Half<F> name parameters {     \
    return expression;                                     \
  }
#define CAFFE_HOST_OF_PAIRS(name, parameters, first, second) \
  template <typename F>                                      \
  __forceinline__ cuda_host::Half2<F> name parameters {      \
    return {first, second};                                  \
  }
#define CAFFE_HOST_UNARY(name, of_float)                                 \
  CAFFE_HOST_OF_HALVES(h##name, (cuda_host::Half<F> x), of_float(x.f())) \
  CAFFE_HOST_OF_PAIRS(h2##name, (cuda_host::Half2<F> x), h##name(x.x), h##name(x.y))
#define CAFFE_HOST_BINARY(name, pairs, expression)                                     \
  CAFFE_HOST_OF_HALVES(name, (cuda_host::Half<F> x, cuda_host::Half<F> y), expression) \
  CAFFE_HOST_OF_PAIRS(pairs, (cuda_host::Half2<F> x, cuda_host::Half2<F> y), name(x.x, y.x), name(x.y, y.y))
// name##u: true of a NaN, too. _mask: all bits of a half or none.
#define CAFFE_HOST_MASK(name)                                                               \
  template <typename F>                                                                     \
  __forceinline__ unsigned int name##2_mask(cuda_host::Half2<F> x, cuda_host::Half2<F> y) { \
    return (name(x.x, y.x) ? 0xffffu : 0u) | (name(x.y, y.y) ? 0xffff0000u : 0u);           \
  }
#define CAFFE_HOST_UNORDERED(name)                                                    \
  template <typename F>                                                               \
  __forceinline__ bool __h##name##u(cuda_host::Half<F> x, cuda_host::Half<F> y) {     \
    return x != x || y != y || __h##name(x, y);                                       \
  }                                                                                   \
  CAFFE_HOST_OF_PAIRS(__h##name##u2, (cuda_host::Half2<F> x, cuda_host::Half2<F> y),  \
                      float(__h##name##u(x.x, y.x)), float(__h##name##u(x.y, y.y)))   \
  template <typename F>                                                               \
  __forceinline__ bool __hb##name##u2(cuda_host::Half2<F> x, cuda_host::Half2<F> y) { \
    return __h##name##u(x.x, y.x) && __h##name##u(x.y, y.y);                          \
  }                                                                                   \
  CAFFE_HOST_MASK(__h##name)                                                          \
  CAFFE_HOST_MASK(__h##name##u)
#define CAFFE_HOST_COMPARE(name, operation)                                          \
  template <typename F>                                                              \
  __forceinline__ bool __h##name(cuda_host::Half<F> x, cuda_host::Half<F> y) {       \
    return x operation y;                                                            \
  }                                                                                  \
  CAFFE_HOST_OF_PAIRS(__h##name##2, (cuda_host::Half2<F> x, cuda_host::Half2<F> y),  \
                      float(x.x operation y.x), float(x.y operation y.y))            \
  template <typename F>                                                              \
  __forceinline__ bool __hb##name##2(cuda_host::Half2<F> x, cuda_host::Half2<F> y) { \
    return x.x operation y.x && x.y operation y.y;                                   \
  }
CAFFE_HOST_BINARY(__hadd, __hadd2, x + y)
CAFFE_HOST_BINARY(__hsub, __hsub2, x - y)
CAFFE_HOST_BINARY(__hmul, __hmul2, x* y)
CAFFE_HOST_BINARY(__hdiv, __h2div, x / y)
CAFFE_HOST_BINARY(__hadd_rn, __hadd2_rn, x + y)
CAFFE_HOST_BINARY(__hsub_rn, __hsub2_rn, x - y)
CAFFE_HOST_BINARY(__hmul_rn, __hmul2_rn, x* y)
CAFFE_HOST_BINARY(__hsub_sat, __hsub2_sat, fminf(fmaxf((x - y).f(), 0.0f), 1.0f))
CAFFE_HOST_BINARY(__hmax_nan, __hmax2_nan, x != x || y != y ? NAN : fmaxf(x.f(), y.f()))
CAFFE_HOST_BINARY(__hmin_nan, __hmin2_nan, x != x || y != y ? NAN : fminf(x.f(), y.f()))
CAFFE_HOST_BINARY(__hmax, __hmax2, fmaxf(x.f(), y.f()))
CAFFE_HOST_BINARY(__hmin, __hmin2, fminf(x.f(), y.f()))
CAFFE_HOST_BINARY(__hadd_sat, __hadd2_sat, fminf(fmaxf((x + y).f(), 0.0f), 1.0f))
CAFFE_HOST_BINARY(__hmul_sat, __hmul2_sat, fminf(fmaxf((x * y).f(), 0.0f), 1.0f))
CAFFE_HOST_COMPARE(eq, ==)
CAFFE_HOST_COMPARE(ne, !=)
CAFFE_HOST_COMPARE(lt, <)
CAFFE_HOST_COMPARE(le, <=)
CAFFE_HOST_COMPARE(gt, >)
CAFFE_HOST_COMPARE(ge, >=)
CAFFE_HOST_UNORDERED(eq)
CAFFE_HOST_UNORDERED(ne)
CAFFE_HOST_UNORDERED(lt)
CAFFE_HOST_UNORDERED(le)
CAFFE_HOST_UNORDERED(gt)
CAFFE_HOST_UNORDERED(ge)
CAFFE_HOST_UNARY(exp, expf)
CAFFE_HOST_UNARY(exp2, exp2f)
CAFFE_HOST_UNARY(log, logf)
CAFFE_HOST_UNARY(log2, log2f)
CAFFE_HOST_UNARY(log10, log10f)
CAFFE_HOST_UNARY(sqrt, sqrtf)
CAFFE_HOST_UNARY(rsqrt, 1.0f / sqrtf)
CAFFE_HOST_UNARY(rcp, 1.0f /)
CAFFE_HOST_UNARY(sin, sinf)
CAFFE_HOST_UNARY(cos, cosf)
CAFFE_HOST_UNARY(tanh, tanhf)
CAFFE_HOST_OF_HALVES(htanh_approx, (cuda_host::Half<F> x), tanhf(x.f()))
CAFFE_HOST_OF_PAIRS(h2tanh_approx, (cuda_host::Half2<F> x), htanh_approx(x.x), htanh_approx(x.y))
CAFFE_HOST_UNARY(floor, floorf)
CAFFE_HOST_UNARY(ceil, ceilf)
CAFFE_HOST_UNARY(trunc, truncf)
CAFFE_HOST_UNARY(rint, rintf)
CAFFE_HOST_OF_HALVES(__hneg, (cuda_host::Half<F> x), -x)
CAFFE_HOST_OF_HALVES(__habs, (cuda_host::Half<F> x), fabsf(x.f()))
CAFFE_HOST_OF_HALVES(__hfma, (cuda_host::Half<F> x, cuda_host::Half<F> y, cuda_host::Half<F> z),
                     cuda_host::round_to_odd(double(x.f()) * y.f() + z.f()))
CAFFE_HOST_OF_HALVES(hexp10, (cuda_host::Half<F> x), cuda_host::round_to_odd(pow(10.0, x.f())))
CAFFE_HOST_OF_PAIRS(h2exp10, (cuda_host::Half2<F> x), hexp10(x.x), hexp10(x.y))
CAFFE_HOST_OF_HALVES(__hfma_sat, (cuda_host::Half<F> x, cuda_host::Half<F> y, cuda_host::Half<F> z),
                     fminf(fmaxf(__hfma(x, y, z).f(), 0.0f), 1.0f))
CAFFE_HOST_OF_HALVES(__hfma_relu, (cuda_host::Half<F> x, cuda_host::Half<F> y, cuda_host::Half<F> z),
                     __hfma(x, y, z).f() < 0.0f ? 0.0f : __hfma(x, y, z).f())
CAFFE_HOST_OF_PAIRS(__hfma2_sat, (cuda_host::Half2<F> x, cuda_host::Half2<F> y, cuda_host::Half2<F> z),
                    __hfma_sat(x.x, y.x, z.x), __hfma_sat(x.y, y.y, z.y))
CAFFE_HOST_OF_PAIRS(__hfma2_relu, (cuda_host::Half2<F> x, cuda_host::Half2<F> y, cuda_host::Half2<F> z),
                    __hfma_relu(x.x, y.x, z.x), __hfma_relu(x.y, y.y, z.y))
CAFFE_HOST_OF_PAIRS(__hisnan2, (cuda_host::Half2<F> x), float(x.x != x.x), float(x.y != x.y))
CAFFE_HOST_OF_PAIRS(__hneg2, (cuda_host::Half2<F> x), -x.x, -x.y)
CAFFE_HOST_OF_PAIRS(__habs2, (cuda_host::Half2<F> x), __habs(x.x), __habs(x.y))
CAFFE_HOST_OF_PAIRS(__hfma2, (cuda_host::Half2<F> x, cuda_host::Half2<F> y, cuda_host::Half2<F> z),
                    __hfma(x.x, y.x, z.x), __hfma(x.y, y.y, z.y))
// a * b + c of complex numbers.
CAFFE_HOST_OF_PAIRS(__hcmadd, (cuda_host::Half2<F> a, cuda_host::Half2<F> b, cuda_host::Half2<F> c),
                    __hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y)))
#undef CAFFE_HOST_OF_HALVES
#undef CAFFE_HOST_OF_PAIRS
#undef CAFFE_HOST_UNARY
#undef CAFFE_HOST_BINARY
#undef CAFFE_HOST_COMPARE
#undef CAFFE_HOST_UNORDERED
#undef CAFFE_HOST_MASK

namespace cuda_host {
// As caffe_saturated. Of a NaN, 0 in types of up to 32 bits.
template <typename Integer>
__forceinline__ Integer of_half(float whole) {
  return sizeof(Integer) < 8 && whole != whole ? Integer(0) : caffe_saturated<Integer>(whole);
}
}  // namespace cuda_host

template <typename F>
__forceinline__ bool __hisnan(cuda_host::Half<F> x) {
  return x != x;
}
template <typename F>
__forceinline__ int __hisinf(cuda_host::Half<F> x) {
  return fabsf(x.f()) == INFINITY ? x.f() < 0.0f ? -1 : 1 : 0;
}
template <typename F>
__forceinline__ cuda_host::Half<F> atomicAdd(cuda_host::Half<F>* address, cuda_host::Half<F> value) {
  return cuda_host::atomic_change(address, [value](cuda_host::Half<F> old) { return old + value; });
}
template <typename F>
__forceinline__ cuda_host::Half2<F> atomicAdd(cuda_host::Half2<F>* address, cuda_host::Half2<F> value) {
  return cuda_host::atomic_change(address, [value](cuda_host::Half2<F> old) { return old + value; });
}

namespace cuda_host {
// A half next to `exact`: towards 0 (FE_TOWARDZERO), down or up. `near` is the nearest one.
template <typename F>
__forceinline__ Half<F> rounded_to(int mode, Half<F> near, long double exact) {
  const bool negative = near.bits >> 15;
  const bool is_up = near.f() > exact, is_down = near.f() < exact;
  const bool too_far = mode == FE_TOWARDZERO ? (negative ? is_down : is_up)
                       : mode == FE_DOWNWARD ? is_up
                                             : is_down;
  if (too_far) near.bits = static_cast<uint16_t>(near.bits + (is_up == negative ? 1 : -1));
  return near;
}
}  // namespace cuda_host

// To and from an integer. A double is exact for all that fit a half.
#define CAFFE_HOST_HALF_ROUNDED(H, one, name, type)                              \
  __forceinline__ H __##name##2##one##_rz(cuda_host::given<type> x) {            \
    return cuda_host::rounded_to(FE_TOWARDZERO, H(__##name##2##one##_rn(x)), x); \
  }                                                                              \
  __forceinline__ H __##name##2##one##_rd(cuda_host::given<type> x) {            \
    return cuda_host::rounded_to(FE_DOWNWARD, H(__##name##2##one##_rn(x)), x);   \
  }                                                                              \
  __forceinline__ H __##name##2##one##_ru(cuda_host::given<type> x) {            \
    return cuda_host::rounded_to(FE_UPWARD, H(__##name##2##one##_rn(x)), x);     \
  }
#define CAFFE_HOST_HALF_INTEGER(H, one, name, type)                                                   \
  __forceinline__ H __##name##2##one##_rn(cuda_host::given<type> x) {                                 \
    return cuda_host::round_to_odd(static_cast<double>(x));                                           \
  }                                                                                                   \
  CAFFE_HOST_HALF_ROUNDED(H, one, name, type)                                                         \
  __forceinline__ type __##one##2##name##_rn(H x) { return cuda_host::of_half<type>(rintf(x.f())); }  \
  __forceinline__ type __##one##2##name##_rz(H x) { return cuda_host::of_half<type>(truncf(x.f())); } \
  __forceinline__ type __##one##2##name##_rd(H x) { return cuda_host::of_half<type>(floorf(x.f())); } \
  __forceinline__ type __##one##2##name##_ru(H x) { return cuda_host::of_half<type>(ceilf(x.f())); }
// Names that have the type's own in them: __float2half, __low2half, __half22float2. one is half or bfloat16, pair
// half2 or bfloat162, and H the type.
#define CAFFE_HOST_HALF_NAMES(H, one, pair)                                            \
  __forceinline__ H __float2##one(float x) { return x; }                               \
  __forceinline__ H __float2##one##_rn(float x) { return x; }                          \
  CAFFE_HOST_HALF_ROUNDED(H, one, float, float)                                        \
  __forceinline__ signed char __##one##2char_rz(H x) {                                 \
    return cuda_host::of_half<signed char>(truncf(x.f()));                             \
  }                                                                                    \
  __forceinline__ unsigned char __##one##2uchar_rz(H x) {                              \
    return cuda_host::of_half<unsigned char>(truncf(x.f()));                           \
  }                                                                                    \
  __forceinline__ H __double2##one(double x) { return cuda_host::round_to_odd(x); }    \
  __forceinline__ float __##one##2float(H x) { return x; }                             \
  CAFFE_HOST_HALF_INTEGER(H, one, int, int)                                            \
  CAFFE_HOST_HALF_INTEGER(H, one, uint, unsigned int)                                  \
  CAFFE_HOST_HALF_INTEGER(H, one, ll, long long)                                       \
  CAFFE_HOST_HALF_INTEGER(H, one, ull, unsigned long long)                             \
  CAFFE_HOST_HALF_INTEGER(H, one, short, short)                                        \
  CAFFE_HOST_HALF_INTEGER(H, one, ushort, unsigned short)                              \
  __forceinline__ unsigned short __##one##_as_ushort(H x) { return x.bits; }           \
  __forceinline__ short __##one##_as_short(H x) { return static_cast<short>(x.bits); } \
  __forceinline__ H __ushort_as_##one(cuda_host::given<unsigned short> bits) {         \
    H x;                                                                               \
    return x.bits = bits, x;                                                           \
  }                                                                                    \
  __forceinline__ H __short_as_##one(cuda_host::given<short> bits) {                   \
    return __ushort_as_##one(static_cast<unsigned short>(bits));                       \
  }                                                                                    \
  __forceinline__ H##2 __float2##pair##_rn(float x) { return {x, x}; }                 \
  __forceinline__ H##2 __floats2##pair##_rn(float x, float y) { return {x, y}; }       \
  __forceinline__ H##2 __float22##pair##_rn(float2 x) { return {x.x, x.y}; }           \
  __forceinline__ float2 __##pair##2float2(H##2 x) { return float2{x.x, x.y}; }        \
  __forceinline__ H##2 __##one##2##pair(H x) { return {x, x}; }                        \
  __forceinline__ H##2 __halves2##pair(H x, H y) { return {x, y}; }                    \
  __forceinline__ H##2 make_##pair(H x, H y) { return {x, y}; }                        \
  __forceinline__ H __low2##one(H##2 x) { return x.x; }                                \
  __forceinline__ H __high2##one(H##2 x) { return x.y; }                               \
  __forceinline__ H##2 __low2##pair(H##2 x) { return {x.x, x.x}; }                     \
  __forceinline__ H##2 __high2##pair(H##2 x) { return {x.y, x.y}; }                    \
  __forceinline__ H##2 __lows2##pair(H##2 x, H##2 y) { return {x.x, y.x}; }            \
  __forceinline__ H##2 __highs2##pair(H##2 x, H##2 y) { return {x.y, y.y}; }           \
  __forceinline__ H##2 __lowhigh2highlow(H##2 x) { return {x.y, x.x}; }                \
  __forceinline__ float __low2float(H##2 x) { return x.x; }                            \
  __forceinline__ float __high2float(H##2 x) { return x.y; }
