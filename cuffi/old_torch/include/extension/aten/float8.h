// The 8-bit floats of torch: a byte, and conversions from float, to the nearest even, and back.
#pragma once

#include "half.h"

namespace c10 {

// What the largest codes mean: a NaN alone (fn), infinity and NaNs as in IEEE, or a NaN in the place of -0 (fnuz).
enum class Float8Kind { kFn, kIeee, kFnuz };

template <int bits, int bias, Float8Kind kind>
struct Float8 {
  uint8_t x;
  struct from_bits_t {};
  static constexpr CAFFE_HALF_INLINE from_bits_t from_bits() { return {}; }
  Float8() = default;
  constexpr CAFFE_HALF_INLINE Float8(uint8_t code, from_bits_t) : x(code) {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  CAFFE_HALF_INLINE Float8(T value) : x(encode(static_cast<float>(value))) {}
  CAFFE_HALF_INLINE operator float() const { return decode(x); }

  static CAFFE_HALF_INLINE uint8_t encode(float value) {
    const uint32_t all = cuffi::types::half_detail::bit_cast<uint32_t>(value), size = all & 0x7fffffff;
    const uint8_t sign = kind == Float8Kind::kFnuz ? 0 : all >> 31 << 7;
    const uint8_t nan = kind == Float8Kind::kFnuz ? 0x80 : 0x7f;
    if (size > 0x7f800000) return sign | nan;
    const int exponent = static_cast<int>(size >> 23) - 127, least = 1 - bias;
    const uint32_t mantissa = (size & 0x7fffff) | (size >> 23 ? 1u << 23 : 0);
    const int shift = 23 - bits + (exponent < least ? least - exponent : 0);
    if (shift > 24) return sign;
    uint32_t code = mantissa >> shift;
    const uint32_t rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
    code += rest > half || (rest == half && (code & 1));
    if (exponent >= least) code += static_cast<uint32_t>(exponent - least) << bits;
    const uint32_t most = kind == Float8Kind::kFn ? 0x7e : kind == Float8Kind::kIeee ? 0x7b : 0x7f;
    // Of fn the largest number, as in torch from 2.13 on.
    if (code > most) return sign | (kind == Float8Kind::kIeee ? 0x7c : kind == Float8Kind::kFn ? 0x7e : nan);
    return kind == Float8Kind::kFnuz && code ? static_cast<uint8_t>(code | all >> 31 << 7) : sign | code;
  }
  static CAFFE_HALF_INLINE float decode(uint8_t code) {
    const uint32_t size = code & 0x7f, sign = uint32_t{code} >> 7 << 31, exponent = size >> bits;
    uint32_t mantissa = size & ((1u << bits) - 1), made = 0x7fc00000 | sign;  // a NaN
    if (kind == Float8Kind::kIeee && size >= 0x7c) {
      made = size == 0x7c ? sign | 0x7f800000 : made;
    } else if (kind == Float8Kind::kFnuz ? code != 0x80 : kind == Float8Kind::kIeee || size != 0x7f) {
      int power = static_cast<int>(exponent ? exponent : 1) - bias + 127;
      if (!exponent && mantissa)
        for (; !(mantissa >> bits); mantissa <<= 1) --power;
      made = sign;
      if (exponent || mantissa)
        made |= static_cast<uint32_t>(power) << 23 | (mantissa & ((1u << bits) - 1)) << (23 - bits);
    }
    return cuffi::types::half_detail::bit_cast<float>(made);
  }
};
using Float8_e5m2 = Float8<2, 15, Float8Kind::kIeee>;
using Float8_e4m3fn = Float8<3, 7, Float8Kind::kFn>;
using Float8_e5m2fnuz = Float8<2, 16, Float8Kind::kFnuz>;
using Float8_e4m3fnuz = Float8<3, 8, Float8Kind::kFnuz>;

// A power of two, without a sign.
struct Float8_e8m0fnu {
  uint8_t x;
  struct from_bits_t {};
  static constexpr CAFFE_HALF_INLINE from_bits_t from_bits() { return {}; }
  Float8_e8m0fnu() = default;
  constexpr CAFFE_HALF_INLINE Float8_e8m0fnu(uint8_t code, from_bits_t) : x(code) {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  CAFFE_HALF_INLINE Float8_e8m0fnu(T value) {
    const uint32_t all = cuffi::types::half_detail::bit_cast<uint32_t>(static_cast<float>(value));
    const uint32_t exponent = all >> 23 & 0xff, rest = all & 0x7fffff, half = 1u << 22;
    x = static_cast<uint8_t>(exponent +
                             (exponent != 0xff && (rest > half || (rest == half && exponent > 0))));
  }
  CAFFE_HALF_INLINE operator float() const {
    const uint32_t made = x == 0xff ? 0x7fc00000 : x ? uint32_t{x} << 23 : 0x00400000;
    return cuffi::types::half_detail::bit_cast<float>(made);
  }
};

}  // namespace c10
