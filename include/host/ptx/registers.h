// Types and registers of inline PTX.
#pragma once

#include <math.h>
#include <string.h>

#include <type_traits>

#include "../../caffe_half.h"
#include "../cuda_words.h"

namespace cuda_ptx {

using u8 = uint8_t;
using s8 = int8_t;
using u16 = uint16_t;
using s16 = int16_t;
using u32 = uint32_t;
using s32 = int32_t;
using u64 = uint64_t;
using s64 = int64_t;
// No standard C++, so a compiler that is told to be strict takes them only behind __extension__.
__extension__ typedef __int128 s128;
__extension__ typedef unsigned __int128 b128;
using f32 = float;
using f64 = double;
using cuffi::types::half_detail::bit_cast;
using cuffi::types::half_detail::Brain;
using cuffi::types::half_detail::Ieee;
template <typename Format>
struct Narrow {
  u16 bits;
  __forceinline__ operator float() const { return Format::decode(bits); }
  static __forceinline__ Narrow of(float value) { return {Format::encode(value)}; }
  static __forceinline__ Narrow of(double value) { return {Format::encode(round_to_odd(value))}; }
  static __forceinline__ float round_to_odd(double number) {
    float near = static_cast<float>(number);
    if (static_cast<double>(near) == number || number != number || fabsf(near) == INFINITY) return near;
    u32 word = bit_cast<u32>(near);
    if (fabs(static_cast<double>(near)) > fabs(number)) --word;
    return bit_cast<float>(word | 1);
  }
};
using f16 = Narrow<Ieee>;
using bf16 = Narrow<Brain>;
template <typename T>
struct Two {
  T x, y;
};
using f16x2 = Two<f16>;
using bf16x2 = Two<bf16>;
using f32x2 = Two<f32>;
using u16x2 = Two<u16>;
using s16x2 = Two<s16>;
template <typename T>
struct is_two : std::false_type {
  using one = T;
};
template <typename T>
struct is_two<Two<T>> : std::true_type {
  using one = T;
};
template <typename T>
constexpr bool is_narrow = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
template <typename T>
constexpr bool is_real = std::is_floating_point_v<T> || is_narrow<T>;

template <typename T, typename R>
__forceinline__ T get(const R& from) {
  if constexpr (std::is_same_v<R, bool> || (std::is_same_v<R, double> && std::is_floating_point_v<T>)) {
    return static_cast<T>(from);
  } else if constexpr (sizeof(T) <= sizeof(R)) {
    T value;
    memcpy(&value, &from, sizeof(T));
    return value;
  } else {  // an immediate, or a register that is too narrow
    u64 wide = static_cast<u64>(from);
    T value{};
    memcpy(&value, &wide, sizeof(T) < 8 ? sizeof(T) : 8);
    return value;
  }
}
template <typename R, typename T>
__forceinline__ void set(R& to, T value) {
  if constexpr (std::is_same_v<R, bool>) {
    to = value;
  } else if constexpr (std::is_integral_v<T>) {
    to = static_cast<R>(value);
  } else {
    R bits = 0;
    memcpy(&bits, &value, sizeof(T) < sizeof(R) ? sizeof(T) : sizeof(R));
    to = bits;
  }
}
// An operand of an asm statement. CUDA asks for a type of the register's size.
template <typename R, typename E>
__forceinline__ R in(const E& expression) {
  if constexpr ((std::is_integral_v<E> || std::is_enum_v<E>) && sizeof(E) != sizeof(R)) {
    return static_cast<R>(expression);
  } else if constexpr (std::is_array_v<E> || std::is_function_v<E>) {
    return static_cast<R>(reinterpret_cast<uintptr_t>(&expression));
  } else if constexpr (std::is_same_v<E, double> && sizeof(R) == 4) {
    return bit_cast<u32>(static_cast<float>(expression));
  } else {
    static_assert(sizeof(E) == sizeof(R),
                  "an operand of inline PTX whose type has not the size of its constraint");
    R bits;
    memcpy(&bits, &expression, sizeof(R));
    return bits;
  }
}
template <typename R, typename T>
__forceinline__ R in(T* pointer) {  // by value: a reference cannot drop __restrict__
  return static_cast<R>(reinterpret_cast<uintptr_t>(pointer));
}
template <typename E, typename R>
__forceinline__ void out(E& to, const R& from) {
  if constexpr (std::is_integral_v<E> && sizeof(E) != sizeof(R)) {
    to = static_cast<E>(from);
  } else {
    static_assert(sizeof(E) == sizeof(R),
                  "an operand of inline PTX whose type has not the size of its constraint");
    memcpy(&to, &from, sizeof(R));
  }
}
// A register that nothing has written: on a GPU it has any value.
template <typename R>
__forceinline__ R unset() {
  if constexpr (std::is_same_v<R, bool>)
    return false;
  else
    return static_cast<R>(static_cast<R>(-1) / 255 * 0xfb);
}
struct Sink {  // `_`
  template <typename T>
  __forceinline__ operator T() const {
    return T();
  }
};
template <typename T>
__forceinline__ void set(const Sink&, T) {}

}  // namespace cuda_ptx
