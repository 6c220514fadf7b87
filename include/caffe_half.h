// caffe::half and caffe::bfloat16: two bytes in memory, float in every computation.
//
// Both convert implicitly from and to float, and have no arithmetic of their own. So an expression of halves is
// computed in float, and rounded once, when it is stored. nvcc and the host compiler use the same types, and get the
// same results.
//
// Beware: in C++ `c ? x : 2.0f` is ambiguous if x is a half. Write `c ? float(x) : 2.0f`.
#ifndef CAFFE_HALF_H_
#define CAFFE_HALF_H_

#ifdef __CUDACC_RTC__
#include "caffe_device_std.h"
#else
#include <stdint.h>
#include <string.h>

#include <type_traits>
#endif

#ifdef __CUDACC__
#define CAFFE_HALF_INLINE __host__ __device__ __forceinline__
#else
#define CAFFE_HALF_INLINE inline __attribute__((always_inline))
#endif

namespace cuffi {
namespace types {
namespace half_detail {

// The compiler's own half, if it has one. nvcc knows its g++'s macros, but not its types. g++ 12 knows __FLT16_MAX__ for
// ARM processors, but _Float16 not in C++.
#if defined(__CUDACC__)
#elif defined(__aarch64__)
#define CAFFE_HALF_OF_COMPILER __fp16
#elif defined(__FLT16_MAX__)
#define CAFFE_HALF_OF_COMPILER _Float16
#endif

template <typename To, typename From>
CAFFE_HALF_INLINE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps the size");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

// Conversion of a 16-bit format to float and back, with rounding to nearest even. The GPU's instructions for it are written
// as PTX, because cuda_fp16.h and cuda_bf16.h, which have functions for them, are a fifth of compiling a small kernel.
struct Ieee {
  static CAFFE_HALF_INLINE uint16_t encode(float value) {
#if defined(__CUDACC__) && defined(__CUDA_ARCH__)
    uint16_t bits;
    asm("{  cvt.rn.f16.f32 %0, %1;}\n" : "=h"(bits) : "f"(value));
    return bits;
#elif defined(CAFFE_HALF_OF_COMPILER)
    return bit_cast<uint16_t>(static_cast<CAFFE_HALF_OF_COMPILER>(value));
#else
    const uint32_t bits = bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);   // NaN
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
    if (magnitude < 0x38800000u) {  // subnormal: let float addition do the rounding at 2^-24
      const float shifted = bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0x0fffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
#endif
  }
  static CAFFE_HALF_INLINE float decode(uint16_t bits) {
#if defined(__CUDACC__) && defined(__CUDA_ARCH__)
    float value;
    asm("{  cvt.f32.f16 %0, %1;}\n" : "=f"(value) : "h"(bits));
    return value;
#elif defined(CAFFE_HALF_OF_COMPILER)
    return static_cast<float>(bit_cast<CAFFE_HALF_OF_COMPILER>(bits));
#else
    const uint32_t sign = (bits & 0x8000u) << 16;
    const uint32_t rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) return bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
    // 2^112 moves the exponent from half's bias to float's; subnormals become right, too.
    const float value = bit_cast<float>(rest << 13) * 5.192296858534828e+33f;
    return bit_cast<float>(sign | bit_cast<uint32_t>(value));
#endif
  }
};

struct Brain {
  static CAFFE_HALF_INLINE uint16_t encode(float value) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
    uint16_t bits;
    asm("{  cvt.rn.bf16.f32 %0, %1;}\n" : "=h"(bits) : "f"(value));
    return bits;
#else
    const uint32_t bits = bit_cast<uint32_t>(value);
    // One expression without a branch, so that loops over it vectorise.
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return static_cast<uint16_t>(value != value ? 0x7fc0u : rounded);
#endif
  }
  static CAFFE_HALF_INLINE float decode(uint16_t bits) {
    return bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
};

template <typename Format>
struct alignas(2) Reduced {
  uint16_t bits;

  Reduced() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  CAFFE_HALF_INLINE Reduced(T value) : bits(Format::encode(static_cast<float>(value))) {}
  CAFFE_HALF_INLINE operator float() const { return Format::decode(bits); }

  CAFFE_HALF_INLINE Reduced& operator+=(float other) { return *this = *this + other; }
  CAFFE_HALF_INLINE Reduced& operator-=(float other) { return *this = *this - other; }
  CAFFE_HALF_INLINE Reduced& operator*=(float other) { return *this = *this * other; }
  CAFFE_HALF_INLINE Reduced& operator/=(float other) { return *this = *this / other; }
};

}  // namespace half_detail

using half = half_detail::Reduced<half_detail::Ieee>;
using bfloat16 = half_detail::Reduced<half_detail::Brain>;

// The type to accumulate in: double for double, float for all others.
template <typename Dtype>
struct accumulate {
  using type = float;
};
template <>
struct accumulate<double> {
  using type = double;
};
template <typename Dtype>
using accumulate_t = typename accumulate<Dtype>::type;

}  // namespace types
}  // namespace cuffi

#endif  // CAFFE_HALF_H_
