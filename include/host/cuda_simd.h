// CUDA's functions for two or four integers in one word, and dot products of them.
#pragma once

#include <stdint.h>

#include <limits>
#include <type_traits>

#include "cuda_convert.h"

namespace cuda_host {

// A word of `f(x, y)` for each pair of lanes. Results that do not fit keep their low bits.
template <typename Lane, typename Function>
inline unsigned int lanes(unsigned int a, unsigned int b, Function f) {
  constexpr int bits = 8 * sizeof(Lane);
  constexpr unsigned int low = (1u << bits) - 1;
  unsigned int result = 0;
  for (int at = 0; at < 32; at += bits) {
    const int x = static_cast<Lane>(a >> at & low), y = static_cast<Lane>(b >> at & low);
    result |= (static_cast<unsigned int>(f(x, y)) & low) << at;
  }
  return result;
}
template <typename Lane>
inline int saturated(int x) {
  constexpr int low = std::numeric_limits<Lane>::min(), high = std::numeric_limits<Lane>::max();
  return x < low ? low : x > high ? high : x;
}
template <typename Lane>
inline unsigned int total(unsigned int word) {
  unsigned int sum = 0;
  for (int at = 0; at < 32; at += 8 * sizeof(Lane)) sum += static_cast<Lane>(word >> at);
  return sum;
}

}  // namespace cuda_host

// Both widths: 2 lanes of 16 bits, and 4 of 8. S and U are the signed and unsigned types of a lane.
#define CAFFE_HOST_LANES(name, parameters, b, sign, expression)                                              \
  inline unsigned int __v##name##2 parameters {                                                              \
    using Lane = std::conditional_t<sign, int16_t, uint16_t>;                                                \
    return cuda_host::lanes<Lane>(a, b, [](int x, int y) { return (void)y, static_cast<int>(expression); }); \
  }                                                                                                          \
  inline unsigned int __v##name##4 parameters {                                                              \
    using Lane = std::conditional_t<sign, int8_t, uint8_t>;                                                  \
    return cuda_host::lanes<Lane>(a, b, [](int x, int y) { return (void)y, static_cast<int>(expression); }); \
  }
#define CAFFE_HOST_LANES_1(name, sign, expression) \
  CAFFE_HOST_LANES(name, (::cuda_host::UInt a), 0u, sign, expression)
#define CAFFE_HOST_LANES_2(name, sign, expression) \
  CAFFE_HOST_LANES(name, (::cuda_host::UInt a, ::cuda_host::UInt b), b, sign, expression)
// set: 1 or 0. cmp: all bits or none.
#define CAFFE_HOST_LANES_COMPARE(name, sign, expression) \
  CAFFE_HOST_LANES_2(set##name, sign, expression)        \
  CAFFE_HOST_LANES_2(cmp##name, sign, -(expression))
CAFFE_HOST_LANES_1(abs, true, x < 0 ? -x : x)
CAFFE_HOST_LANES_1(absss, true, cuda_host::saturated<Lane>(x < 0 ? -x : x))
CAFFE_HOST_LANES_1(neg, true, -x)
CAFFE_HOST_LANES_1(negss, true, cuda_host::saturated<Lane>(-x))
CAFFE_HOST_LANES_2(add, false, x + y)
CAFFE_HOST_LANES_2(addss, true, cuda_host::saturated<Lane>(x + y))
CAFFE_HOST_LANES_2(addus, false, cuda_host::saturated<Lane>(x + y))
CAFFE_HOST_LANES_2(sub, false, x - y)
CAFFE_HOST_LANES_2(subss, true, cuda_host::saturated<Lane>(x - y))
CAFFE_HOST_LANES_2(subus, false, cuda_host::saturated<Lane>(x - y))
CAFFE_HOST_LANES_2(absdiffs, true, x < y ? y - x : x - y)
CAFFE_HOST_LANES_2(absdiffu, false, x < y ? y - x : x - y)
CAFFE_HOST_LANES_2(avgs, true, (x + y + (x + y >= 0)) >> 1)
CAFFE_HOST_LANES_2(avgu, false, (x + y + 1) >> 1)
CAFFE_HOST_LANES_2(haddu, false, (x + y) >> 1)
CAFFE_HOST_LANES_2(maxs, true, x > y ? x : y)
CAFFE_HOST_LANES_2(maxu, false, x > y ? x : y)
CAFFE_HOST_LANES_2(mins, true, x < y ? x : y)
CAFFE_HOST_LANES_2(minu, false, x < y ? x : y)
CAFFE_HOST_LANES_COMPARE(eq, false, x == y)
CAFFE_HOST_LANES_COMPARE(ne, false, x != y)
CAFFE_HOST_LANES_COMPARE(ges, true, x >= y)
CAFFE_HOST_LANES_COMPARE(geu, false, x >= y)
CAFFE_HOST_LANES_COMPARE(gts, true, x > y)
CAFFE_HOST_LANES_COMPARE(gtu, false, x > y)
CAFFE_HOST_LANES_COMPARE(les, true, x <= y)
CAFFE_HOST_LANES_COMPARE(leu, false, x <= y)
CAFFE_HOST_LANES_COMPARE(lts, true, x < y)
CAFFE_HOST_LANES_COMPARE(ltu, false, x < y)
#undef CAFFE_HOST_LANES
#undef CAFFE_HOST_LANES_1
#undef CAFFE_HOST_LANES_2
#undef CAFFE_HOST_LANES_COMPARE

// The sum of the absolute differences. A difference of two signed lanes does not fit a signed lane.
inline unsigned int __vsads2(cuda_host::UInt a, cuda_host::UInt b) {
  return cuda_host::total<uint16_t>(__vabsdiffs2(a, b));
}
inline unsigned int __vsadu2(cuda_host::UInt a, cuda_host::UInt b) {
  return cuda_host::total<uint16_t>(__vabsdiffu2(a, b));
}
inline unsigned int __vsads4(cuda_host::UInt a, cuda_host::UInt b) {
  return cuda_host::total<uint8_t>(__vabsdiffs4(a, b));
}
inline unsigned int __vsadu4(cuda_host::UInt a, cuda_host::UInt b) {
  return cuda_host::total<uint8_t>(__vabsdiffu4(a, b));
}

// The dot product of four bytes plus c. Of two shorts with the low or the high two bytes of b, plus c.
#define CAFFE_HOST_DOT(result, word, byte, half)                                                       \
  inline result __dp4a(word a, word b, result c) {                                                     \
    unsigned int sum = static_cast<unsigned int>(c);                                                   \
    for (int at = 0; at < 32; at += 8) sum += static_cast<byte>(a >> at) * static_cast<byte>(b >> at); \
    return static_cast<result>(sum);                                                                   \
  }                                                                                                    \
  inline result __dp2a_lo(word a, word b, result c) {                                                  \
    const int sum = static_cast<half>(a) * static_cast<byte>(b) +                                      \
                    static_cast<half>(a >> 16) * static_cast<byte>(b >> 8);                            \
    return static_cast<result>(static_cast<unsigned int>(c) + static_cast<unsigned int>(sum));         \
  }                                                                                                    \
  inline result __dp2a_hi(word a, word b, result c) { return __dp2a_lo(a, b >> 16, c); }
CAFFE_HOST_DOT(int, int, int8_t, int16_t)
CAFFE_HOST_DOT(unsigned int, unsigned int, uint8_t, uint16_t)
#undef CAFFE_HOST_DOT
// With a real number among the arguments the others choose the function, and it becomes an integer as on a GPU.
namespace cuda_host {
template <typename T>
constexpr bool is_uint = is_real<T> || std::is_same<decltype(+std::declval<const T&>()), unsigned int>::value;
template <typename... T>
constexpr bool are_reals = (is_real<T> && ...);
template <typename... T>
using Dotted =
    std::enable_if_t<(is_real<T> || ...),
                     std::conditional_t<(is_uint<T> && ...) && !are_reals<T...>, unsigned int, int>>;
}  // namespace cuda_host
#define CAFFE_HOST_DOT_OF_REALS(name)                       \
  template <typename A, typename B, typename C>             \
  inline ::cuda_host::Dotted<A, B, C> name(A a, B b, C c) { \
    using One = ::cuda_host::Dotted<A, B, C>;               \
    const ::cuda_host::Given<One> x = a, y = b, z = c;      \
    return name(One(x), One(y), One(z));                    \
  }
CAFFE_HOST_DOT_OF_REALS(__dp4a)
CAFFE_HOST_DOT_OF_REALS(__dp2a_lo)
CAFFE_HOST_DOT_OF_REALS(__dp2a_hi)
#undef CAFFE_HOST_DOT_OF_REALS

// Of three numbers, or of a sum and a number; relu: at least 0.
#define CAFFE_HOST_VI(name, type, least, expression)                                                     \
  inline type name(::cuda_host::Given<type> a, ::cuda_host::Given<type> b, ::cuda_host::Given<type> c) { \
    const type x = expression;                                                                           \
    if constexpr (least) return x > 0 ? x : 0;                                                           \
    return x;                                                                                            \
  }
#define CAFFE_HOST_ADDED static_cast<int>(static_cast<unsigned int>(a) + static_cast<unsigned int>(b))
CAFFE_HOST_VI(__vimax3_s32, int, false, (a > b ? a : b) > c ? (a > b ? a : b) : c)
CAFFE_HOST_VI(__vimin3_s32, int, false, (a < b ? a : b) < c ? (a < b ? a : b) : c)
CAFFE_HOST_VI(__vimax3_u32, unsigned int, false, (a > b ? a : b) > c ? (a > b ? a : b) : c)
CAFFE_HOST_VI(__vimin3_u32, unsigned int, false, (a < b ? a : b) < c ? (a < b ? a : b) : c)
CAFFE_HOST_VI(__vimax3_s32_relu, int, true, (a > b ? a : b) > c ? (a > b ? a : b) : c)
CAFFE_HOST_VI(__vimin3_s32_relu, int, true, (a < b ? a : b) < c ? (a < b ? a : b) : c)
CAFFE_HOST_VI(__viaddmax_s32, int, false, CAFFE_HOST_ADDED > c ? CAFFE_HOST_ADDED : +c)
CAFFE_HOST_VI(__viaddmin_s32, int, false, CAFFE_HOST_ADDED < c ? CAFFE_HOST_ADDED : +c)
CAFFE_HOST_VI(__viaddmax_s32_relu, int, true, CAFFE_HOST_ADDED > c ? CAFFE_HOST_ADDED : +c)
CAFFE_HOST_VI(__viaddmin_s32_relu, int, true, CAFFE_HOST_ADDED < c ? CAFFE_HOST_ADDED : +c)
CAFFE_HOST_VI(__viaddmax_u32, unsigned int, false, a + b > c ? a + b : +c)
CAFFE_HOST_VI(__viaddmin_u32, unsigned int, false, a + b < c ? a + b : +c)
#undef CAFFE_HOST_ADDED
#undef CAFFE_HOST_VI

// The same of two lanes of 16 bits.
#define CAFFE_HOST_VI_LANES(which, kind, lane)                                                \
  inline unsigned int __vi##which##3_##kind##16x2(::cuda_host::UInt a, ::cuda_host::UInt b,   \
                                                  ::cuda_host::UInt c) {                      \
    return __v##which##lane##2(__v##which##lane##2(a, b), c);                                 \
  }                                                                                           \
  inline unsigned int __viadd##which##_##kind##16x2(::cuda_host::UInt a, ::cuda_host::UInt b, \
                                                    ::cuda_host::UInt c) {                    \
    return __v##which##lane##2(__vadd2(a, b), c);                                             \
  }
#define CAFFE_HOST_VI_RELU(which)                                                           \
  inline unsigned int __vi##which##_s16x2_relu(::cuda_host::UInt a, ::cuda_host::UInt b) {  \
    return __vmaxs2(__v##which##s2(a, b), 0);                                               \
  }                                                                                         \
  inline unsigned int __vi##which##3_s16x2_relu(::cuda_host::UInt a, ::cuda_host::UInt b,   \
                                                ::cuda_host::UInt c) {                      \
    return __vmaxs2(__vi##which##3_s16x2(a, b, c), 0);                                      \
  }                                                                                         \
  inline unsigned int __viadd##which##_s16x2_relu(::cuda_host::UInt a, ::cuda_host::UInt b, \
                                                  ::cuda_host::UInt c) {                    \
    return __vmaxs2(__viadd##which##_s16x2(a, b, c), 0);                                    \
  }
CAFFE_HOST_VI_LANES(max, s, s)
CAFFE_HOST_VI_LANES(min, s, s)
CAFFE_HOST_VI_LANES(max, u, u)
CAFFE_HOST_VI_LANES(min, u, u)
CAFFE_HOST_VI_RELU(max)
CAFFE_HOST_VI_RELU(min)
#undef CAFFE_HOST_VI_LANES
#undef CAFFE_HOST_VI_RELU
// The maximum or minimum, and whether it is a.
#define CAFFE_HOST_VIB(which, compare)                                                           \
  inline int __vib##which##_s32(::cuda_host::Int a, ::cuda_host::Int b, bool* is_a) {            \
    return (*is_a = a compare b) ? a : b;                                                        \
  }                                                                                              \
  inline unsigned int __vib##which##_u32(::cuda_host::UInt a, ::cuda_host::UInt b, bool* is_a) { \
    return (*is_a = a compare b) ? a : b;                                                        \
  }                                                                                              \
  inline unsigned int __vib##which##_s16x2(::cuda_host::UInt a, ::cuda_host::UInt b, bool* high, \
                                           bool* low) {                                          \
    *high = int16_t(a >> 16) compare int16_t(b >> 16), *low = int16_t(a) compare int16_t(b);     \
    return (*high ? a : b) >> 16 << 16 | uint16_t(*low ? a : b);                                 \
  }                                                                                              \
  inline unsigned int __vib##which##_u16x2(::cuda_host::UInt a, ::cuda_host::UInt b, bool* high, \
                                           bool* low) {                                          \
    *high = (a >> 16) compare(b >> 16), *low = uint16_t(a) compare uint16_t(b);                  \
    return (*high ? a : b) >> 16 << 16 | uint16_t(*low ? a : b);                                 \
  }
CAFFE_HOST_VIB(max, >=)
CAFFE_HOST_VIB(min, <=)
#undef CAFFE_HOST_VIB
inline int __vimax_s32_relu(cuda_host::Int a, cuda_host::Int b) {
  return a > b ? (a > 0 ? +a : 0) : b > 0 ? +b : 0;
}
inline int __vimin_s32_relu(cuda_host::Int a, cuda_host::Int b) {
  return a < b ? (a > 0 ? +a : 0) : b > 0 ? +b : 0;
}

// The position of the offset-th set bit from `base` on, upwards or, for a negative offset, downwards; else all bits.
inline unsigned int __fns(cuda_host::UInt mask, cuda_host::UInt base, cuda_host::Int offset) {
  if (offset == 0) return mask >> (base & 31) & 1u ? +base : 0xffffffffu;
  const int step = offset > 0 ? 1 : -1;
  int left = offset > 0 ? +offset : -offset;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step)
    if (mask >> at & 1u && --left == 0) return static_cast<unsigned int>(at);
  return 0xffffffffu;
}
