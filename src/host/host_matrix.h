// mma.sync: the product of small matrices, whose elements lie in the registers of a warp's lanes (PTX ISA, "Matrix
// Fragments for mma"). The last lane that comes computes for all.
//
// With g = lane / 4, t = lane % 4 and E elements in a register, element e of register r is, for all shapes but m8n8k4 of halves:
//   A: row g + 8 * (r % 2), column t * E + e + r / 2 * 4 * E     B: row t * E + e + r * 4 * E, column g
//   C, D: element i: row g + 8 * (i / 2), column t * 2 + i % 2
// Sums are of floats, in the order of k. A tensor core adds in another order, and cuts off bits, which PTX leaves open.
#pragma once

#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "caffe_half.h"

namespace cuda_host {
namespace matrix {

using cuffi::types::half_detail::Brain;
using cuffi::types::half_detail::Ieee;

inline int bits_of(char type) {
  switch (type) {
    case kB1:
      return 1;
    case kS4:
    case kU4:
      return 4;
    case kS8:
    case kU8:
    case kE4M3:
    case kE5M2:
      return 8;
    case kF16:
    case kBf16:
      return 16;
    case kF64:
      return 64;
    default:
      return 32;
  }
}

inline float of_fp8(unsigned bits, bool e4m3) {
  static const float* const both = [] {
    auto* table = new float[512];
    for (int i = 0; i < 512; ++i) {
      const int value = i & 255, mantissa_bits = i < 256 ? 3 : 2, bias = i < 256 ? 7 : 15;
      const int exponent = (value & 127) >> mantissa_bits, mantissa = value & ((1 << mantissa_bits) - 1);
      float size = exponent ? __builtin_ldexpf(1.f + mantissa / float(1 << mantissa_bits), exponent - bias)
                            : __builtin_ldexpf(mantissa / float(1 << mantissa_bits), 1 - bias);
      if (i < 256 ? (value & 127) == 127 : exponent == 31 && mantissa) size = __builtin_nanf("");
      if (i >= 256 && exponent == 31 && !mantissa) size = __builtin_inff();
      table[i] = value & 128 ? -size : size;
    }
    return table;
  }();
  return both[bits + (e4m3 ? 0 : 256)];
}

// A half as a float, without a call of the compiler's library.
inline float of_half(uint32_t bits) {
  static const float* const all = [] {
    auto* table = new float[65536];
    for (int i = 0; i < 65536; ++i) table[i] = Ieee::decode(static_cast<uint16_t>(i));
    return table;
  }();
  return all[bits];
}

template <typename T>
inline T element(char type, const void* registers, int index) {
  const int bits = bits_of(type);
  if (type == kF64) {
    double value;
    memcpy(&value, static_cast<const char*>(registers) + 8 * index, 8);
    return static_cast<T>(value);
  }
  uint32_t word;
  memcpy(&word, static_cast<const char*>(registers) + index * bits / 32 * 4, 4);
  const uint32_t raw = bits == 32 ? word : word >> (index * bits % 32) & ((1u << bits) - 1);
  switch (type) {
    case kF16:
      return static_cast<T>(of_half(raw));
    case kBf16:
      return static_cast<T>(Brain::decode(static_cast<uint16_t>(raw)));
    case kTf32:
      return static_cast<T>(cuffi::types::half_detail::bit_cast<float>(raw & 0xffffe000u));
    case kF32:
      return static_cast<T>(cuffi::types::half_detail::bit_cast<float>(raw));
    case kE4M3:
    case kE5M2:
      return static_cast<T>(of_fp8(raw, type == kE4M3));
    case kS8:
      return static_cast<T>(static_cast<int8_t>(raw));
    case kS4:
      return static_cast<T>(static_cast<int32_t>(raw << 28) >> 28);
    case kS32:
      return static_cast<T>(static_cast<int32_t>(raw));
    default:
      return static_cast<T>(raw);
  }
}

template <typename T>
inline void put(char type, void* registers, int index, T value) {
  char* const to = static_cast<char*>(registers);
  if (type == kF64) {
    const double number = static_cast<double>(value);
    memcpy(to + 8 * index, &number, 8);
  } else if (type == kF32) {
    const float number = static_cast<float>(value);
    memcpy(to + 4 * index, &number, 4);
  } else if (type == kS32) {
    const int32_t number = static_cast<int32_t>(value);
    memcpy(to + 4 * index, &number, 4);
  } else {
    const float number = static_cast<float>(value);
    const uint16_t half = type == kF16 ? Ieee::encode(number) : Brain::encode(number);
    memcpy(to + 2 * index, &half, 2);
  }
}

// Where an element lies that a lane holds.
struct At {
  int row, column;
};
inline At at_a(const MmaShape& s, int lane, int i) {
  if (s.volta)
    return s.a_by_column ? At{i % 4 + (lane < 16 ? 0 : 4), lane % 4} : At{lane % 4 + (lane < 16 ? 0 : 4), i};
  const int in_register = s.a == kF64 ? 1 : 32 / bits_of(s.a), r = i / in_register, e = i % in_register;
  const bool tall = s.m == 16;
  return {lane / 4 + (tall ? 8 * (r % 2) : 0),
          lane % 4 * in_register + e + (tall ? r / 2 : r) * 4 * in_register};
}
inline At at_b(const MmaShape& s, int lane, int i) {
  if (s.volta)
    return s.b_by_row ? At{lane % 4, i + (lane < 16 ? 0 : 4)} : At{i, lane % 4 + (lane < 16 ? 0 : 4)};
  const int in_register = s.b == kF64 ? 1 : 32 / bits_of(s.b), r = i / in_register, e = i % in_register;
  return {lane % 4 * in_register + e + r * 4 * in_register, lane / 4};
}
inline At at_c(const MmaShape& s, char type, int lane, int i) {
  if (s.volta) {
    if (type == kF16) return {lane % 4 + (lane < 16 ? 0 : 4), i};
    return {(lane & 1) + (i & 2) + (lane < 16 ? 0 : 4), (i & 4) + (lane & 2) + (i & 1)};
  }
  return {lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2};
}

// The shapes that most kernels use. The loops of each are compiled by themselves.
constexpr MmaShape kCommon[] = {
    {16, 8, 16, kF16, kF16, kF32, kF32, false, false, false, false, false},
    {16, 8, 16, kBf16, kBf16, kF32, kF32, false, false, false, false, false},
    {16, 8, 16, kF16, kF16, kF16, kF16, false, false, false, false, false},
    {16, 8, 8, kF16, kF16, kF32, kF32, false, false, false, false, false},
    {16, 8, 8, kTf32, kTf32, kF32, kF32, false, false, false, false, false},
    {16, 8, 32, kS8, kS8, kS32, kS32, false, false, false, false, false},
};
inline bool is_common(const MmaShape& s, int known) {
  const MmaShape& one = kCommon[known];
  return one.m == s.m && one.k == s.k && one.a == s.a && one.b == s.b && one.c == s.c && one.d == s.d &&
         !s.saturate && !s.volta;
}

template <typename T, typename Sum, int known = -1>
void multiply(void* const* lanes, const MmaShape& given) {
  const MmaShape s = known < 0 ? given : kCommon[known < 0 ? 0 : known];
  constexpr int kMostK = 64;
  static thread_local T a[4][16][kMostK];
  static thread_local Sum b[4][kMostK][8], c[4][16][8];
  const int groups = s.volta ? 4 : 1;
  const int of_a = s.m * s.k * groups / 32, of_b = s.k * s.n * groups / 32, of_c = s.m * s.n * groups / 32;
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const MmaLane*>(lanes[lane]);
    const int group = s.volta ? lane % 16 / 4 : 0;
    for (int i = 0; i < of_a; ++i) {
      const At at = at_a(s, lane, i);
      a[group][at.row][at.column] = element<T>(s.a, own.a, i);
    }
    for (int i = 0; i < of_b; ++i) {
      const At at = at_b(s, lane, i);
      b[group][at.row][at.column] = element<T>(s.b, own.b, i);
    }
    for (int i = 0; i < of_c; ++i) {
      const At at = at_c(s, s.c, lane, i);
      c[group][at.row][at.column] = element<Sum>(s.c, own.c, i);
    }
  }
  for (int group = 0; group < groups; ++group)
    for (int m = 0; m < s.m; ++m) {
      Sum sums[8];
      memcpy(sums, c[group][m], sizeof sums);
      for (int k = 0; k < s.k; ++k) {
        const Sum one = static_cast<Sum>(a[group][m][k]);
        for (int n = 0; n < 8; ++n) sums[n] += one * b[group][k][n];
      }
      memcpy(c[group][m], sums, sizeof sums);
    }
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const MmaLane*>(lanes[lane]);
    const int group = s.volta ? lane % 16 / 4 : 0;
    for (int i = 0; i < of_c; ++i) {
      const At at = at_c(s, s.d, lane, i);
      Sum value = c[group][at.row][at.column];
      if (s.d == kS32 && s.saturate)
        value = value > Sum(INT32_MAX) ? Sum(INT32_MAX) : value < Sum(INT32_MIN) ? Sum(INT32_MIN) : value;
      put(s.d, own.d, i, value);
    }
  }
}

inline void multiply_bits(void* const* lanes, const MmaShape& s) {
  const int words = s.k / 32;
  uint32_t a[16][8] = {}, b[8][8] = {};
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const MmaLane*>(lanes[lane]);
    const auto* as = static_cast<const uint32_t*>(own.a);
    const auto* bs = static_cast<const uint32_t*>(own.b);
    for (int r = 0; r < s.m * words / 32; ++r)
      a[lane / 4 + (s.m == 16 ? 8 * (r % 2) : 0)][lane % 4 + (s.m == 16 ? r / 2 : r) * 4] = as[r];
    for (int r = 0; r < 8 * words / 32; ++r) b[lane / 4][lane % 4 + r * 4] = bs[r];
  }
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const MmaLane*>(lanes[lane]);
    for (int i = 0; i < s.m * 8 / 32; ++i) {
      const At at = at_c(s, kS32, lane, i);
      int32_t sum = element<int32_t>(kS32, own.c, i);
      for (int w = 0; w < words; ++w) {
        const uint32_t x = a[at.row][w], y = b[at.column][w];
        sum += __builtin_popcount(s.by_and ? x & y : x ^ y);
      }
      put(kS32, own.d, i, sum);
    }
  }
}

template <int known = 0>
bool multiply_common(void* const* lanes, const MmaShape& s) {
  if constexpr (known < sizeof kCommon / sizeof *kCommon) {
    using T = std::conditional_t<kCommon[known].d == kS32, uint32_t, float>;
    if (!is_common(s, known)) return multiply_common<known + 1>(lanes, s);
    multiply<T, T, known>(lanes, s);
    return true;
  }
  return false;
}

inline void work(void* const* lanes, unsigned int) {
  const MmaShape& s = *static_cast<const MmaLane*>(lanes[0])->shape;
  for (int lane = 1; lane < 32; ++lane)
    if (static_cast<const MmaLane*>(lanes[lane])->shape != &s)
      ptx_problem("lanes of a warp meet at mma instructions of different shapes");
  if (multiply_common(lanes, s)) return;
  if (s.a == kB1)
    multiply_bits(lanes, s);
  else if (s.a == kF64)
    multiply<double, double>(lanes, s);
  else if (s.d == kS32 && s.saturate)
    multiply<int32_t, int64_t>(lanes, s);
  else if (s.d == kS32)
    multiply<uint32_t, uint32_t>(lanes, s);
  else
    multiply<float, float>(lanes, s);
}

// ------------------------------------------------------------------------------------- nvcuda::wmma

struct WmmaLane {
  const MmaShape* shape;
  const void *a, *b, *c;
  void* d;
  int a_held, b_held;
};

template <typename T, typename Sum>
void multiply_fragments(void* const* lanes, const MmaShape& s) {
  static thread_local Sum a[32 * 16], b[16 * 32], c[32 * 32];
  const int of_c = s.m * s.n / 32;
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const WmmaLane*>(lanes[lane]);
    for (int i = 0; i < own.a_held; ++i) {
      const auto at = fragment_place(0, s.m, s.n, s.k, s.a, lane, i);
      a[at.row * s.k + at.column] = static_cast<Sum>(element<T>(s.a, own.a, i));
    }
    for (int i = 0; i < own.b_held; ++i) {
      const auto at = fragment_place(1, s.m, s.n, s.k, s.b, lane, i);
      b[at.row * s.n + at.column] = static_cast<Sum>(element<T>(s.b, own.b, i));
    }
    for (int i = 0; i < of_c; ++i) {
      const auto at = fragment_place(2, s.m, s.n, s.k, s.c, lane, i);
      c[at.row * s.n + at.column] = element<Sum>(s.c, own.c, i);
    }
  }
  for (int m = 0; m < s.m; ++m)
    for (int k = 0; k < s.k; ++k)
      for (int n = 0; n < s.n; ++n) c[m * s.n + n] += a[m * s.k + k] * b[k * s.n + n];
  for (int lane = 0; lane < 32; ++lane) {
    const auto& own = *static_cast<const WmmaLane*>(lanes[lane]);
    for (int i = 0; i < of_c; ++i) {
      const auto at = fragment_place(2, s.m, s.n, s.k, s.c, lane, i);
      Sum value = c[at.row * s.n + at.column];
      if (s.d == kS32 && s.saturate)
        value = value > Sum(INT32_MAX) ? Sum(INT32_MAX) : value < Sum(INT32_MIN) ? Sum(INT32_MIN) : value;
      put(s.d, own.d, i, value);
    }
  }
}

inline void fragment_work(void* const* lanes, unsigned int) {
  const MmaShape& s = *static_cast<const WmmaLane*>(lanes[0])->shape;
  if (s.a == kF64)
    multiply_fragments<double, double>(lanes, s);
  else if (s.d == kS32)
    multiply_fragments<int32_t, int64_t>(lanes, s);
  else
    multiply_fragments<float, float>(lanes, s);
}

}  // namespace matrix

// Where element i of a lane's fragment lies, as on an H200 (tests/fixtures/ptx/fragments.cu).
FragmentPlace fragment_place(int use, int m, int n, int k, MatrixType type, int lane, int i) {
  const int g = lane / 4, t = lane % 4;
  const bool wide = n == 32;  // 8x32x16
  if (use == 2 && wide) return {t * 2 + i % 2, g + 8 * (i / 2)};
  if (use == 2 && n == 8) return {g + 8 * (i / 2), t * 2 + i % 2};  // 32x8x16, 8x8x4
  if (use == 2) return {g + 8 * (i / 2 % 2), t * 2 + i % 2 + 8 * (i / 4)};
  if (type == kS8 || type == kU8)
    return use == 0 ? FragmentPlace{g + 8 * (i / 4), t * 4 + i % 4}
                    : FragmentPlace{t * 4 + i % 4, g + 8 * (i / 4)};
  if (k == 4) return use == 0 ? FragmentPlace{g, t} : FragmentPlace{t, g};
  if (k == 8)
    return use == 0 ? FragmentPlace{g + 8 * (i % 2), t + 4 * (i / 2)}
                    : FragmentPlace{t + 4 * (i % 2), g + 8 * (i / 2)};
  // Halves: of 16 elements for a matrix of 8 rows or columns, the same are there four times.
  const int pair = t * 2 + i % 2;
  if (use == 0 && m == 8) return {g, pair + 8 * (i / 2 % 2)};
  if (use == 0) return {g + 8 * (i / 2 % 2) + (m == 32 ? 16 * (i / 8) : 0), pair + 8 * (i / 4 % 2)};
  if (n == 8) return {pair + 8 * (i / 2 % 2), g};
  if (wide) return {pair + 8 * (i / 4 % 2), g + 8 * (i / 2 % 2) + 16 * (i / 8)};
  return {pair + 8 * (i / 2 % 2), g + 8 * (i / 4 % 2)};
}

void wmma(const MmaShape* shape, const void* a, const void* b, const void* c, void* d, int a_held,
          int b_held) {
  matrix::WmmaLane own{shape, a, b, c, d, a_held, b_held};
  warp_together(0xffffffffu, &own, matrix::fragment_work, "wmma::mma_sync");
}

void mma(const MmaShape* shape, const void* a, const void* b, const void* c, void* d) {
  MmaLane own{shape, a, b, c, d};
  warp_together(0xffffffffu, &own, matrix::work, "mma.sync");
}

}  // namespace cuda_host
