// Conversions and comparisons.
#pragma once

#include <math.h>

#include <limits>

#include "arithmetic.h"

namespace cuda_ptx {

enum Whole { kNotWhole, kWholeNearest, kWholeZero, kWholeUp, kWholeDown };
template <typename V>
__forceinline__ V whole(int how, V x) {
  return static_cast<V>(how == kWholeNearest ? rint(x)
                        : how == kWholeZero  ? trunc(x)
                        : how == kWholeUp    ? ceil(x)
                                             : floor(x));
}
template <typename To, int rounding>
__forceinline__ To to_real(double value) {
  if constexpr (std::is_same_v<To, double>) {
    return value;
  } else if constexpr (std::is_same_v<To, float>) {
    return rounding == kZero   ? __double2float_rz(value)
           : rounding == kUp   ? __double2float_ru(value)
           : rounding == kDown ? __double2float_rd(value)
                               : static_cast<float>(value);
  } else {
    To near = To::of(value);
    if (rounding == kNearest || value != value) return near;
    const bool too_large = fabs(double(float(near))) > fabs(value);
    const bool too_small = fabs(double(float(near))) < fabs(value);
    const bool outwards = rounding == kUp ? value > 0 : rounding == kDown ? value < 0 : false;
    if (outwards && too_small) ++near.bits;
    if (!outwards && too_large) --near.bits;
    return near;
  }
}
template <typename To, int rounding, typename From>
__forceinline__ To of_integer(From from) {
  if constexpr (rounding == kNearest || sizeof(From) < 4 ||
                (sizeof(From) == 4 && std::is_same_v<To, double>)) {
    return static_cast<To>(from);
  } else if constexpr (std::is_same_v<To, float>) {
    if constexpr (sizeof(From) == 4) return to_real<float, rounding>(static_cast<double>(from));
    if constexpr (std::is_signed_v<From>)
      return rounding == kZero ? __ll2float_rz(from)
             : rounding == kUp ? __ll2float_ru(from)
                               : __ll2float_rd(from);
    return rounding == kZero ? __ull2float_rz(from)
           : rounding == kUp ? __ull2float_ru(from)
                             : __ull2float_rd(from);
  } else {
    if constexpr (std::is_signed_v<From>)
      return rounding == kZero ? __ll2double_rz(from)
             : rounding == kUp ? __ll2double_ru(from)
                               : __ll2double_rd(from);
    return rounding == kZero ? __ull2double_rz(from)
           : rounding == kUp ? __ull2double_ru(from)
                             : __ull2double_rd(from);
  }
}
template <typename To, int how, typename From>
__forceinline__ To real_to_integer(int flags, From from) {
  auto x = work_type(std::is_same_v<From, float> ? flush(flags, from) : from);
  if constexpr (how != kNotWhole) x = whole(how, x);
  if (x != x && sizeof(x) == 4 && sizeof(To) < 8) return 0;
  return caffe_saturated<To>(x);
}
// The NaN of a conversion keeps its sign and upper bits if a double is converted, or a bfloat16 widened.
template <typename To, int rounding, int how, typename From>
__forceinline__ To real_to_real(int flags, From from) {
  auto x = work_type(std::is_same_v<From, float> ? flush(flags, from) : from);
  if constexpr (how != kNotWhole) x = whole(how, x);
  if constexpr (std::is_same_v<To, float> && std::is_same_v<decltype(x), float>) {
    if (std::is_same_v<From, bf16> && x != x) return x;
    return finish(flags, x);
  } else {
    const To result = to_real<To, rounding>(x);
    if constexpr (std::is_same_v<From, double> && is_narrow<To>) {
      if (x != x)
        return To{static_cast<u16>((signbit(x) ? 0x8000 : 0) | 0x7e00 | (bit_cast<u64>(x) >> 42 & 0x3ff))};
    } else if constexpr (std::is_same_v<From, double>) {
      if (x != x && !(flags & kSat)) return quiet(result);
    }
    return finish(is_narrow<To> ? flags & ~kFtz : flags, result);
  }
}
template <typename To, typename From, int rounding, int how>
__forceinline__ To cvt(int flags, From from) {
  if constexpr (is_real<From> && is_real<To>) {
    return real_to_real<To, rounding, how>(flags, from);
  } else if constexpr (is_real<From>) {
    return real_to_integer<To, how>(flags, from);
  } else if constexpr (is_narrow<To> && sizeof(From) == 8) {
    return finish(flags & ~kFtz, To::of(static_cast<float>(from)));
  } else if constexpr (is_narrow<To>) {
    return finish(flags & ~kFtz, to_real<To, rounding>(static_cast<double>(from)));
  } else if constexpr (is_real<To>) {
    return finish(flags, of_integer<To, rounding>(from));
  } else {
    if (flags & kSat) {
      using L = std::numeric_limits<To>;
      const s128 x = from;
      return static_cast<To>(x > L::max() ? s128(L::max()) : x < L::min() ? s128(L::min()) : x);
    }
    return static_cast<To>(from);
  }
}
// Small floats of `exponent` and `mantissa` bits, of which e4m3 and e5m2 have a NaN.
__forceinline__ u32 to_small(float given, int exponent_bits, int mantissa_bits, bool relu) {
  const double value = relu && given <= 0 ? 0. : double(given);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const bool e4m3 = exponent_bits == 4, e5m2 = exponent_bits == 5;
  const u32 sign = signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
  if (value != value) return e4m3 || e5m2 ? 0x7f : (1u << (exponent_bits + mantissa_bits)) - 1;
  const double size = fabs(value);
  const u32 most = e4m3 ? 0x7e : e5m2 ? 0x7b : (1u << (exponent_bits + mantissa_bits)) - 1;
  if (isinf(size)) return sign | most;
  int exponent = size > 0 ? ilogb(size) : 1 - bias;
  if (exponent < 1 - bias) exponent = 1 - bias;
  const double units = nearbyint(ldexp(size, mantissa_bits - exponent));
  u32 bits = static_cast<u32>(units) + (static_cast<u32>(exponent + bias - 1) << mantissa_bits);
  return sign | (exponent + bias > (1 << exponent_bits) || bits > most ? most : bits);
}
__forceinline__ float of_small(u32 bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const u32 size = bits & ((1u << (exponent_bits + mantissa_bits)) - 1),
            mantissa = size & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(size >> mantissa_bits);
  float value = exponent ? ldexpf(1 + mantissa / float(1 << mantissa_bits), exponent - bias)
                         : ldexpf(mantissa / float(1 << mantissa_bits), 1 - bias);
  if (exponent_bits == 4 && size == 127) value = NAN;
  if (exponent_bits == 5 && exponent == 31) value = mantissa ? NAN : INFINITY;
  return bits >> (exponent_bits + mantissa_bits) & 1 ? -value : value;
}
__forceinline__ f16 half_of_small(u32 bits, int exponent_bits, int mantissa_bits, bool relu) {
  const float value = of_small(bits, exponent_bits, mantissa_bits);
  return finish(relu ? kRelu : 0, f16::of(value));
}
// Two integers, each saturated to T, beside the lower bits of c.
template <typename T>
__forceinline__ u32 pack_integers(s32 a, s32 b, u32 c) {
  using L = std::numeric_limits<T>;
  constexpr int bits = 8 * sizeof(T);
  const auto one = [](s32 x) {
    const s64 low = x < s64(L::min()) ? s64(L::min()) : s64(x);
    return static_cast<u32>(low > s64(L::max()) ? s64(L::max()) : low) & ((1u << bits) - 1);
  };
  return (bits == 16 ? 0 : c << (2 * bits)) | one(a) << bits | one(b);
}
__forceinline__ u32 to_tf32(float x, int rounding,
                            bool relu) {  // kAway: to the nearest, from the middle away from zero
  if (relu && x < 0) x = 0;
  const u32 bits = bit_cast<u32>(x);
  if (isinf(x)) return bits;
  if (x != x)
    return rounding == kAway ? bits & 0xffffe000u : 0x7fffe000u;  // which may be an infinity, as on a GPU
  const u32 more = rounding == kAway ? 0x1000u : rounding == kNearest ? 0xfffu + (bits >> 13 & 1) : 0;
  return (bits + more) & 0xffffe000u;
}
template <typename T>
__forceinline__ auto comparable(T value) {
  if constexpr (is_narrow<T>)
    return static_cast<float>(value);
  else
    return value;
}
enum Comparison { kEq, kNe, kLt, kLe, kGt, kGe, kNum, kIsNan };
template <typename T>
__forceinline__ bool compare(int how, bool unordered, int flags, T first, T second) {
  const auto a = comparable(flush(flags, first)), b = comparable(flush(flags, second));
  if constexpr (is_real<T>) {
    const bool has_nan = a != a || b != b;
    if (how == kNum || how == kIsNan) return has_nan == (how == kIsNan);
    if (has_nan) return unordered;
  }
  switch (how) {
    case kEq:
      return a == b;
    case kNe:
      return a != b;
    case kLt:
      return a < b;
    case kLe:
      return a <= b;
    case kGt:
      return a > b;
    default:
      return a >= b;
  }
}

}  // namespace cuda_ptx
