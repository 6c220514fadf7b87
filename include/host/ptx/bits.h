// Bits: shifts, fields, permutations, counts.
#pragma once

#include "registers.h"

namespace cuda_ptx {

template <typename T>
__forceinline__ T shl(T a, u32 by) {
  return by >= 8 * sizeof(T) ? T(0) : static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << by);
}
template <typename T>
__forceinline__ T shr(T a, u32 by) {
  if (by >= 8 * sizeof(T)) return std::is_signed_v<T> && a < 0 ? static_cast<T>(-1) : T(0);
  return static_cast<T>(a >> by);
}
template <bool left, bool clamp>
__forceinline__ u32 shf(u32 a, u32 b, u32 by) {
  by = clamp ? (by > 32 ? 32 : by) : by & 31;
  const u64 both = static_cast<u64>(b) << 32 | a;
  return left ? (by == 32 ? a : static_cast<u32>((both << by) >> 32))
              : static_cast<u32>(by == 32 ? b : both >> by);
}
__forceinline__ u32 lop3(u32 a, u32 b, u32 c, u32 table) {
  u32 result = 0;
  if (table & 0x01) result |= ~a & ~b & ~c;
  if (table & 0x02) result |= ~a & ~b & c;
  if (table & 0x04) result |= ~a & b & ~c;
  if (table & 0x08) result |= ~a & b & c;
  if (table & 0x10) result |= a & ~b & ~c;
  if (table & 0x20) result |= a & ~b & c;
  if (table & 0x40) result |= a & b & ~c;
  if (table & 0x80) result |= a & b & c;
  return result;
}
enum { kPlain, kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };
__forceinline__ u32 prmt(u32 a, u32 b, u32 how, int mode = kPlain) {
  const u64 both = static_cast<u64>(b) << 32 | a;
  u32 result = 0;
  for (u32 i = 0; i < 4; ++i) {
    const u32 c = how & 3;
    u32 one = how >> (4 * i) & 15;
    if (mode == kF4e) one = (c + i) & 7;
    if (mode == kB4e) one = (c - i) & 7;
    if (mode == kRc8) one = c;
    if (mode == kEcl) one = i > c ? i : c;
    if (mode == kEcr) one = i < c ? i : c;
    if (mode == kRc16) one = (c & 1) * 2 + (i & 1);
    u32 byte = static_cast<u32>(both >> (8 * (one & 7))) & 255;
    if (one & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}
// A GPU takes the lower 8 bits of the position and the length for 32 bits, as PTX's text says, and all of them for 64 bits.
template <typename T>
__forceinline__ u64 of_field(u32 number) {
  return sizeof(T) == 8 ? number : number & 255;
}
template <typename T>
__forceinline__ T bfe(T a, u32 position, u32 length) {
  using U = std::make_unsigned_t<T>;
  constexpr u64 most = 8 * sizeof(T);
  const u64 at = of_field<T>(position), count = of_field<T>(length), end = at + count;
  if (!count) return 0;
  const U bits = at < most ? static_cast<U>(a) >> at : 0;
  const bool sign = std::is_signed_v<T> && static_cast<U>(a) >> (end < most ? end - 1 : most - 1) & 1;
  const u64 kept = end <= most ? count : at < most ? most - at : 0;  // bits of a; the others are the sign
  const U mask = kept >= most ? static_cast<U>(-1) : static_cast<U>((U(1) << kept) - 1);
  return static_cast<T>((bits & mask) | (sign ? static_cast<U>(~mask) : U(0)));
}
template <typename T>
__forceinline__ T bfi(T a, T b, u32 position, u32 length) {
  constexpr u64 most = 8 * sizeof(T);
  const u64 at = of_field<T>(position), count = of_field<T>(length);
  if (at >= most) return b;
  const T mask =
      shl(count >= most ? static_cast<T>(-1) : static_cast<T>((T(1) << count) - 1), static_cast<u32>(at));
  return (b & ~mask) | (shl(a, static_cast<u32>(at)) & mask);
}
template <typename T>
__forceinline__ u32 bfind(T a, bool shift_amount) {
  auto bits = static_cast<std::make_unsigned_t<T>>(std::is_signed_v<T> && a < 0 ? ~a : a);
  if (!bits) return 0xffffffffu;
  const u32 at = 63 - __builtin_clzll(bits);
  return shift_amount ? 8 * sizeof(T) - 1 - at : at;
}
template <typename T>
__forceinline__ u32 clz(T a) {
  return a ? __builtin_clzll(a) - (64 - 8 * sizeof(T)) : 8 * sizeof(T);
}
template <typename T>
__forceinline__ T brev(T a) {
  T result = 0;
  for (u32 i = 0; i < 8 * sizeof(T); ++i) result = static_cast<T>(result << 1 | (a >> i & 1));
  return result;
}
template <typename T>
__forceinline__ u32 popc(T a) {
  return static_cast<u32>(__builtin_popcountll(a));
}
// `count` ones from bit `at`.
template <bool clamp>
__forceinline__ u32 bmsk(u32 at, u32 count) {
  if (!clamp) at &= 31, count &= 31;
  return shl(count >= 32 ? ~0u : (1u << count) - 1, at);
}
// Where the |n|-th set bit is, from `base` upwards or downwards.
__forceinline__ u32 fns(u32 mask, u32 base, s32 n) {
  if (n == 0) return base < 32 && mask >> base & 1 ? base : 0xffffffffu;
  const int step = n > 0 ? 1 : -1;
  if (n == INT32_MIN) return 0;  // as a GPU does
  int left = n > 0 ? n : -n;
  for (int at = static_cast<int>(base); at >= 0 && at < 32; at += step)
    if (mask >> at & 1 && --left == 0) return static_cast<u32>(at);
  return 0xffffffffu;
}

}  // namespace cuda_ptx
