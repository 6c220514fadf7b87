// at::Half and at::BFloat16: the formats of the toolkit's caffe_half.h, with ATen's arithmetic (each result is rounded).
#pragma once

#include "caffe_half.h"
#ifdef ATEN_WITH_HALF  // torch's headers include CUDA's. They are slow, so only a file that uses them gets them (build.py)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace c10 {

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
            typename =
                std::enable_if_t<sizeof(T) == 2 && std::is_class<T>::value && !std::is_same<T, Short>::value>,
            typename = void>
  CAFFE_HALF_INLINE Short(const T& other) : x(cuffi::types::half_detail::bit_cast<uint16_t>(other)) {}
#ifdef ATEN_WITH_HALF
  using Cuda =
      std::conditional_t<std::is_same<Format, cuffi::types::half_detail::Ieee>::value, __half, __nv_bfloat16>;
  CAFFE_HALF_INLINE operator Cuda() const { return cuffi::types::half_detail::bit_cast<Cuda>(x); }
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

}  // namespace c10

#include <limits>
namespace std {
template <typename F>
struct numeric_limits<c10::Short<F>> : numeric_limits<float> {
  static constexpr bool is_ieee = std::is_same<F, cuffi::types::half_detail::Ieee>::value;
  static CAFFE_HALF_INLINE c10::Short<F> max() { return is_ieee ? 65504.0f : 3.38953139e38f; }
  static CAFFE_HALF_INLINE c10::Short<F> lowest() { return is_ieee ? -65504.0f : -3.38953139e38f; }
  static CAFFE_HALF_INLINE c10::Short<F> infinity() { return numeric_limits<float>::infinity(); }
};
}  // namespace std
