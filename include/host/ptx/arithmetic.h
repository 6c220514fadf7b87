// Arithmetic of inline PTX: by type, rounding and flags, with the carry of add.cc and its like.
#pragma once

#include <math.h>

#include "../cuda_rounding.h"
#include "registers.h"

namespace cuda_ptx {

template <typename T>
__forceinline__ auto work_type(T value) {
  if constexpr (is_narrow<T>)
    return static_cast<float>(value);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<std::make_unsigned_t<T>>(value);
  else
    return value;
}
template <typename T, typename V>
__forceinline__ T back(V value) {
  if constexpr (is_narrow<T>)
    return T::of(value);
  else
    return static_cast<T>(value);
}
// Apply to both halves of a pair.
template <typename T, typename F>
__forceinline__ T each(F f, T a) {
  if constexpr (is_two<T>::value)
    return {f(a.x), f(a.y)};
  else
    return f(a);
}
template <typename T, typename F>
__forceinline__ T each(F f, T a, T b) {
  if constexpr (is_two<T>::value)
    return {f(a.x, b.x), f(a.y, b.y)};
  else
    return f(a, b);
}
template <typename T, typename F>
__forceinline__ T each(F f, T a, T b, T c) {
  if constexpr (is_two<T>::value)
    return {f(a.x, b.x, c.x), f(a.y, b.y, c.y)};
  else
    return f(a, b, c);
}
enum Rounding { kNearest, kZero, kUp, kDown, kAway };
constexpr int kFtz = 1, kSat = 2, kNan = 4, kAbs = 8, kRelu = 16, kXorSign = 32, kSatFinite = 64;

__forceinline__ float flushed(float x) { return fabsf(x) < 1.17549435e-38f ? copysignf(0.f, x) : x; }
template <typename T>
__forceinline__ T flush(int flags, T x) {
  if constexpr (std::is_same_v<T, float>) {
    return flags & kFtz ? flushed(x) : x;
  } else if constexpr (std::is_same_v<T, f16>) {
    if (flags & kFtz && (x.bits & 0x7c00) == 0) x.bits &= 0x8000;
    return x;
  } else {
    return x;
  }
}
template <typename T>
__forceinline__ T finish(int flags, T x) {
  if constexpr (is_real<T>) {
    if constexpr (is_narrow<T>)
      if (flags & kSatFinite && isinf(float(x))) x.bits -= 1;
    if (flags & kSat) {
      const auto number = work_type(x);
      x = back<T>(number > 0 ? (number < 1 ? number : decltype(number)(1)) : decltype(number)(0));
    }
    if constexpr (std::is_same_v<T, float>)  // a GPU's only NaN
      if (x != x) x = bit_cast<float>(0x7fffffffu);
    if constexpr (is_narrow<T>)
      if (float(x) != float(x)) x.bits = 0x7fff;
    if (flags & kRelu && !(work_type(x) > 0) && work_type(x) == work_type(x))
      x = back<T>(decltype(work_type(x))(0));
  }
  return flush(flags, x);
}
// A GPU's NaN of doubles is the first operand that is one, quiet. One of floats or halves has always the same bits.
template <typename V>
__forceinline__ V quiet(V x) {
  if constexpr (std::is_same_v<V, double>)
    if (x != x) return bit_cast<double>(bit_cast<u64>(x) | u64(1) << 51);
  return x;
}
template <typename V, typename... Others>
__forceinline__ V or_nan(V result, V first, Others... others) {
  if constexpr (std::is_same_v<V, double>) {
    if (first != first) return quiet(first);
    if constexpr (sizeof...(others) != 0) return or_nan(result, others...);
  }
  return result;
}
template <int rounding, typename V>
__forceinline__ V add_rounded(V a, V b) {
  if constexpr (rounding == kNearest) return a + b;
  if constexpr (std::is_same_v<V, float>)
    return rounding == kZero ? __fadd_rz(a, b) : rounding == kUp ? __fadd_ru(a, b) : __fadd_rd(a, b);
  else if constexpr (std::is_same_v<V, double>)
    return rounding == kZero ? __dadd_rz(a, b) : rounding == kUp ? __dadd_ru(a, b) : __dadd_rd(a, b);
}
template <int rounding, typename V>
__forceinline__ V mul_rounded(V a, V b) {
  if constexpr (rounding == kNearest) return a * b;
  if constexpr (std::is_same_v<V, float>)
    return rounding == kZero ? __fmul_rz(a, b) : rounding == kUp ? __fmul_ru(a, b) : __fmul_rd(a, b);
  else if constexpr (std::is_same_v<V, double>)
    return rounding == kZero ? __dmul_rz(a, b) : rounding == kUp ? __dmul_ru(a, b) : __dmul_rd(a, b);
}
template <int rounding, typename V>
__forceinline__ V fma_rounded(V a, V b, V c) {
  if constexpr (rounding == kNearest) return static_cast<V>(fma(a, b, c));
  if constexpr (std::is_same_v<V, float>)
    return rounding == kZero ? __fmaf_rz(a, b, c) : rounding == kUp ? __fmaf_ru(a, b, c) : __fmaf_rd(a, b, c);
  else if constexpr (std::is_same_v<V, double>)
    return rounding == kZero ? __fma_rz(a, b, c) : rounding == kUp ? __fma_ru(a, b, c) : __fma_rd(a, b, c);
}
// The result of real operands that are flushed, and of which one may be no number.
template <typename V, typename Compute>
__forceinline__ V of_reals(int flags, const Compute& compute, V x, V y) {
  return finish(flags,
                or_nan(back<V>(compute(work_type(flush(flags, x)), work_type(flush(flags, y)))), x, y));
}
template <>
__forceinline__ float fma_rounded<kNearest, float>(float a, float b, float c) {
  return fmaf(a, b, c);
}
template <typename T, int rounding = kNearest>
__forceinline__ T add(int flags, T a, T b) {
  return each(
      [=](auto x, auto y) {
        using V = decltype(x);
        if constexpr (std::is_integral_v<V>) {
          if (std::is_same_v<V, s32> && flags & kSat) {
            const s64 sum = s64(x) + s64(y);
            return static_cast<V>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
          }
          return back<V>(work_type(x) + work_type(y));
        } else {
          return of_reals(flags, [](auto u, auto v) { return add_rounded<rounding>(u, v); }, x, y);
        }
      },
      a, b);
}
template <typename T, int rounding = kNearest>
__forceinline__ T sub(int flags, T a, T b) {
  return each(
      [=](auto x, auto y) {
        using V = decltype(x);
        if constexpr (std::is_integral_v<V>) {
          if (std::is_same_v<V, s32> && flags & kSat) {
            const s64 sum = s64(x) - s64(y);
            return static_cast<V>(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
          }
          return back<V>(work_type(x) - work_type(y));
        } else {
          return of_reals(flags, [](auto u, auto v) { return add_rounded<rounding>(u, -v); }, x, y);
        }
      },
      a, b);
}
template <typename T, int rounding = kNearest>
__forceinline__ T mul(int flags, T a, T b) {  // of integers: the lower half
  return each(
      [=](auto x, auto y) {
        using V = decltype(x);
        if constexpr (std::is_integral_v<V>)
          return static_cast<V>(static_cast<u64>(x) * static_cast<u64>(y));
        else
          return of_reals(flags, [](auto u, auto v) { return mul_rounded<rounding>(u, v); }, x, y);
      },
      a, b);
}
// A sum whose last bit says whether it is exact (odd: it is not), so that it can be rounded once more.
__forceinline__ double sum_to_odd(double a, double b) {
  const double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
  if (!(error < 0 || error > 0)) return sum;
  const u64 bits = bit_cast<u64>(sum);
  return bits & 1 ? sum : bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}
template <typename T, int rounding = kNearest>
__forceinline__ T fma_of(int flags, T a, T b, T c) {
  return each(
      [=](auto x, auto y, auto z) {
        using V = decltype(x);
        if constexpr (is_narrow<V>) {
          const double product = double(float(flush(flags, x))) * float(flush(flags, y));
          return finish(flags, V::of(sum_to_odd(product, float(flush(flags, z)))));
        } else {
          const V result = fma_rounded<rounding>(flush(flags, x), flush(flags, y), flush(flags, z));
          return finish(flags, or_nan(result, x, z, y));
        }
      },
      a, b, c);
}
template <typename T>
struct Wide;
template <>
struct Wide<u16> {
  using type = u32;
};
template <>
struct Wide<s16> {
  using type = s32;
};
template <>
struct Wide<u32> {
  using type = u64;
};
template <>
struct Wide<s32> {
  using type = s64;
};
template <>
struct Wide<u64> {
  using type = b128;
};
template <>
struct Wide<s64> {
  using type = s128;
};
template <typename T>
__forceinline__ typename Wide<T>::type mul_wide(T a, T b) {
  using W = typename Wide<T>::type;
  return static_cast<W>(a) * static_cast<W>(b);
}
template <typename T>
__forceinline__ T mul_hi(T a, T b) {
  return static_cast<T>(mul_wide(a, b) >> (8 * sizeof(T)));
}
template <typename T>
__forceinline__ T mul24(T a, T b, bool high) {
  const s64 x = std::is_signed_v<T> ? s64(s32(u32(a) << 8) >> 8) : s64(u32(a) & 0xffffffu);
  const s64 y = std::is_signed_v<T> ? s64(s32(u32(b) << 8) >> 8) : s64(u32(b) & 0xffffffu);
  return static_cast<T>((x * y) >> (high ? 16 : 0));
}
template <int rounding, typename V>
__forceinline__ V div_rounded(V a, V b) {
  if constexpr (rounding == kNearest) return a / b;
  if constexpr (std::is_same_v<V, float>)
    return rounding == kZero ? __fdiv_rz(a, b) : rounding == kUp ? __fdiv_ru(a, b) : __fdiv_rd(a, b);
  else if constexpr (std::is_same_v<V, double>)
    return rounding == kZero ? __ddiv_rz(a, b) : rounding == kUp ? __ddiv_ru(a, b) : __ddiv_rd(a, b);
}
template <typename T, int rounding = kNearest>
__forceinline__ T div_of(int flags, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return static_cast<T>(-1);
    return std::is_signed_v<T> && b == T(-1) ? static_cast<T>(-work_type(a)) : static_cast<T>(a / b);
  } else {
    return of_reals(flags, [](auto u, auto v) { return div_rounded<rounding>(u, v); }, a, b);
  }
}
template <typename T>
__forceinline__ T rem(T a, T b) {
  return b == 0 ? static_cast<T>(-1) : std::is_signed_v<T> && b == T(-1) ? T(0) : static_cast<T>(a % b);
}
template <typename T>
__forceinline__ T neg(int flags, T a) {
  return each(
      [=](auto x) {
        using V = decltype(x);
        if constexpr (std::is_integral_v<V>)
          return static_cast<V>(-work_type(x));
        else if constexpr (is_narrow<V>)
          return finish(flags, V{static_cast<u16>(x.bits ^ 0x8000)});
        else
          return or_nan(finish(flags, -flush(flags, x)), x);
      },
      a);
}
template <typename T>
__forceinline__ T abs_of(int flags, T a) {
  return each(
      [=](auto x) {
        using V = decltype(x);
        if constexpr (std::is_integral_v<V>)
          return x < 0 ? static_cast<V>(-work_type(x)) : x;
        else if constexpr (is_narrow<V>)
          return finish(flags, V{static_cast<u16>(x.bits & 0x7fff)});
        else
          return or_nan(finish(flags, static_cast<V>(fabs(flush(flags, x)))), x);
      },
      a);
}
template <bool most, typename T>
__forceinline__ T min_max(int flags, T a, T b) {
  return each(
      [=](auto x, auto y) {
        using V = decltype(x);
        if constexpr (std::is_integral_v<V>) {
          const V one = most == (x > y) ? x : y;
          return flags & kRelu && one < V(0) ? V(0) : one;
        } else {
          auto u = work_type(flush(flags, x)), v = work_type(flush(flags, y));
          using W = decltype(u);
          const bool sign = signbit(u) != signbit(v);
          if (flags & kAbs) u = static_cast<W>(fabs(u)), v = static_cast<W>(fabs(v));
          W value = u != u            ? (v != v ? quiet(u) : v)
                    : v != v          ? u
                    : u == v          ? (most == signbit(u) ? v : u)
                    : most == (u > v) ? u
                                      : v;
          if (flags & kNan && (u != u || v != v)) value = static_cast<W>(NAN);
          if (flags & kXorSign) value = static_cast<W>(copysign(value, sign ? W(-1) : W(1)));
          return finish(flags, back<V>(value));
        }
      },
      a, b);
}
template <typename A, typename B>
__forceinline__ s32 dp4a(u32 a, u32 b, s32 c) {
  u32 sum = static_cast<u32>(c);
  for (int i = 0; i < 4; ++i) sum += static_cast<u32>(s32(A(a >> 8 * i)) * s32(B(b >> 8 * i)));
  return static_cast<s32>(sum);
}
template <typename A, typename B>
__forceinline__ s32 dp2a(u32 a, u32 b, s32 c, bool high) {
  using A16 = std::conditional_t<std::is_signed_v<A>, s16, u16>;
  u32 sum = static_cast<u32>(c);
  for (int i = 0; i < 2; ++i)
    sum += static_cast<u32>(s32(A16(a >> 16 * i)) * s32(B(b >> 8 * (i + (high ? 2 : 0)))));
  return static_cast<s32>(sum);
}
// The carry flag, which the next asm statement may read. A thread that waits in between may lose it, as PTX allows.
// Each has its own, so the race finder does not watch it.
inline __thread u32 carry;
__attribute__((no_sanitize("thread"))) inline u32 carried() { return carry; }
__attribute__((no_sanitize("thread"))) inline void carries(u32 value) { carry = value; }
template <typename T>
__forceinline__ T add_carry(T a, T b, bool reads, bool writes) {
  using U = std::make_unsigned_t<T>;
  const b128 sum = static_cast<b128>(static_cast<U>(a)) + static_cast<U>(b) + (reads ? carried() : 0);
  if (writes) carries(static_cast<u32>(sum >> (8 * sizeof(T))) & 1);
  return static_cast<T>(sum);
}
template <typename T>
__forceinline__ T sub_carry(T a, T b, bool reads, bool writes) {
  using U = std::make_unsigned_t<T>;
  // On a GPU the flag is that of a + ~b + 1, so it is 1 without a borrow. One sees it if addc reads what sub.cc wrote.
  const b128 sum =
      static_cast<b128>(static_cast<U>(a)) + static_cast<U>(~static_cast<U>(b)) + (reads ? carried() : 1);
  if (writes) carries(static_cast<u32>(sum >> (8 * sizeof(T))) & 1);
  return static_cast<T>(sum);
}

// ----------------------------------------------------------------------------------- functions of real numbers

#define CAFFE_PTX_FUNCTION(name, expression)                                   \
  template <typename T>                                                        \
  __forceinline__ T name(int flags, T a) {                                     \
    return each(                                                               \
        [=](auto one) {                                                        \
          using V = decltype(one);                                             \
          const auto x = work_type(flush(flags, one));                         \
          return finish(flags, back<V>(static_cast<decltype(x)>(expression))); \
        },                                                                     \
        a);                                                                    \
  }
CAFFE_PTX_FUNCTION(ex2, exp2(x))
CAFFE_PTX_FUNCTION(lg2, log2(x))
CAFFE_PTX_FUNCTION(rsqrt_of, 1 / sqrt(x))
CAFFE_PTX_FUNCTION(sin_of, sin(x))
CAFFE_PTX_FUNCTION(cos_of, cos(x))
CAFFE_PTX_FUNCTION(tanh_of, tanh(x))
#undef CAFFE_PTX_FUNCTION
template <typename T, int rounding = kNearest>
__forceinline__ T rcp(int flags, T a) {
  const T x = flush(flags, a);
  if constexpr (rounding == kNearest)
    return finish(flags, 1 / x);
  else
    return finish(flags, div_rounded<rounding>(T(1), x));
}
template <typename T, int rounding = kNearest>
__forceinline__ T sqrt_of(int flags, T a) {
  const T x = flush(flags, a);
  if constexpr (rounding == kNearest)
    return finish(flags, static_cast<T>(sqrt(x)));
  else if constexpr (std::is_same_v<T, float>)
    return finish(flags, rounding == kZero ? __fsqrt_rz(x) : rounding == kUp ? __fsqrt_ru(x) : __fsqrt_rd(x));
  else
    return finish(flags, rounding == kZero ? __dsqrt_rz(x) : rounding == kUp ? __dsqrt_ru(x) : __dsqrt_rd(x));
}
template <typename T>
__forceinline__ T sad(T a, T b, T c) {
  return static_cast<T>(work_type(a > b ? a : b) - work_type(a > b ? b : a) + work_type(c));
}

}  // namespace cuda_ptx
