// at::Half and at::BFloat16: the formats of the toolkit's caffe_half.h, with ATen's arithmetic (each result is rounded).
#pragma once

#include "caffe_half.h"
#ifdef ATEN_WITH_HALF  // torch's headers include CUDA's. They are slow, so only a file that uses them gets them (build.py)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace c10 {

template <typename Format>
struct Short;
template <typename T>
struct is_short : std::false_type {};
template <typename Format>
struct is_short<Short<Format>> : std::true_type {};

template <typename Format>
struct alignas(2) Short {
  uint16_t x;
  struct from_bits_t {};
  static constexpr CAFFE_HALF_INLINE from_bits_t from_bits() { return {}; }
  Short() = default;
  constexpr CAFFE_HALF_INLINE Short(uint16_t bits, from_bits_t) : x(bits) {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  CAFFE_HALF_INLINE Short(T value) : x(Format::encode(static_cast<float>(value))) {}
  CAFFE_HALF_INLINE operator float() const { return Format::decode(x); }
  CAFFE_HALF_INLINE float f() const { return Format::decode(x); }
#if defined(__CUDACC__) || defined(ATEN_WITH_HALF)
  // CUDA's own half of the same bytes.
  template <typename T,
            typename = std::enable_if_t<sizeof(T) == 2 && std::is_class<T>::value && !is_short<T>::value>,
            typename = void>
  CAFFE_HALF_INLINE Short(const T& other) : x(cuffi::types::half_detail::bit_cast<uint16_t>(other)) {}
#ifdef ATEN_WITH_HALF
  // To __half implicitly, to __nv_bfloat16 explicitly, as in torch: so one of CUDA's shuffles takes a BFloat16, by float.
  template <typename F = Format,
            typename = std::enable_if_t<std::is_same<F, cuffi::types::half_detail::Ieee>::value>>
  CAFFE_HALF_INLINE operator __half() const {
    return cuffi::types::half_detail::bit_cast<__half>(x);
  }
  template <typename F = Format,
            typename = std::enable_if_t<std::is_same<F, cuffi::types::half_detail::Brain>::value>>
  CAFFE_HALF_INLINE explicit operator __nv_bfloat16() const {
    return cuffi::types::half_detail::bit_cast<__nv_bfloat16>(x);
  }
#endif
#endif
};
using Half = Short<cuffi::types::half_detail::Ieee>;
using BFloat16 = Short<cuffi::types::half_detail::Brain>;

#define AT_HALF_OPERATOR(op)                                                                       \
  template <typename F>                                                                            \
  CAFFE_HALF_INLINE Short<F> operator op(Short<F> a, Short<F> b) {                                 \
    return a.f() op b.f();                                                                         \
  }                                                                                                \
  template <typename F, typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>     \
  CAFFE_HALF_INLINE std::conditional_t<std::is_floating_point<T>::value, T, Short<F>> operator op( \
      Short<F> a, T b) {                                                                           \
    return a.f() op b;                                                                             \
  }                                                                                                \
  template <typename F, typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>     \
  CAFFE_HALF_INLINE std::conditional_t<std::is_floating_point<T>::value, T, Short<F>> operator op( \
      T a, Short<F> b) {                                                                           \
    return a op b.f();                                                                             \
  }                                                                                                \
  template <typename F, typename T>                                                                \
  CAFFE_HALF_INLINE Short<F>& operator op## = (Short<F> & a, T b) {                                \
    return a = Short<F>(a.f() op static_cast<float>(b));                                           \
  }
AT_HALF_OPERATOR(+)
AT_HALF_OPERATOR(-)
AT_HALF_OPERATOR(*)
AT_HALF_OPERATOR(/)
#undef AT_HALF_OPERATOR
// By float, although CUDA's halves have such operators, too.
#define AT_HALF_COMPARE(op)                                                                    \
  template <typename F>                                                                        \
  CAFFE_HALF_INLINE bool operator op(Short<F> a, Short<F> b) {                                 \
    return a.f() op b.f();                                                                     \
  }                                                                                            \
  template <typename F, typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>> \
  CAFFE_HALF_INLINE bool operator op(Short<F> a, T b) {                                        \
    return a.f() op b;                                                                         \
  }                                                                                            \
  template <typename F, typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>> \
  CAFFE_HALF_INLINE bool operator op(T a, Short<F> b) {                                        \
    return a op b.f();                                                                         \
  }
AT_HALF_COMPARE(<)
AT_HALF_COMPARE(>)
AT_HALF_COMPARE(<=)
AT_HALF_COMPARE(>=)
AT_HALF_COMPARE(==)
AT_HALF_COMPARE(!=)
#undef AT_HALF_COMPARE
template <typename F>
CAFFE_HALF_INLINE Short<F> operator-(Short<F> a) {
  return -a.f();
}
#ifdef __CUDACC__
template <typename F>
__device__ inline Short<F> __ldg(const Short<F>* p) {
  return Short<F>(::__ldg(reinterpret_cast<const unsigned short*>(p)), Short<F>::from_bits());
}
#endif

}  // namespace c10

#include <limits>
namespace std {
template <typename F>
struct numeric_limits<c10::Short<F>> : numeric_limits<float> {
  using Self = c10::Short<F>;
  static constexpr bool is_ieee = std::is_same<F, cuffi::types::half_detail::Ieee>::value;
  static constexpr int digits = is_ieee ? 11 : 8, digits10 = is_ieee ? 3 : 2, max_digits10 = is_ieee ? 5 : 4;
  static constexpr int min_exponent = is_ieee ? -13 : -125, max_exponent = is_ieee ? 16 : 128;
  static constexpr int min_exponent10 = is_ieee ? -4 : -37, max_exponent10 = is_ieee ? 4 : 38;
  static CAFFE_HALF_INLINE Self min() { return is_ieee ? 0x1p-14f : 0x1p-126f; }
  static CAFFE_HALF_INLINE Self max() { return is_ieee ? 65504.0f : 0x1.fep127f; }
  static CAFFE_HALF_INLINE Self lowest() { return -max(); }
  static CAFFE_HALF_INLINE Self epsilon() { return is_ieee ? 0x1p-10f : 0x1p-7f; }
  static CAFFE_HALF_INLINE Self denorm_min() { return is_ieee ? 0x1p-24f : 0x1p-133f; }
  static CAFFE_HALF_INLINE Self round_error() { return 0.5f; }
  static CAFFE_HALF_INLINE Self infinity() { return numeric_limits<float>::infinity(); }
  static CAFFE_HALF_INLINE Self quiet_NaN() { return numeric_limits<float>::quiet_NaN(); }
};
}  // namespace std
