// CUDA's integer and bit functions.
#pragma once

#include <stdint.h>
#include <string.h>

#include "cuda_api.h"
#include "cuda_simd.h"

// The number of set bits, and the position of the first and last one. For 0, ffs is 0 and clz the full width,
// as in CUDA.
inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned int>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long y = 0;
  for (int i = 0; i < 64; ++i, x >>= 1) y = y << 1 | (x & 1);
  return y;
}
inline unsigned int __brev(unsigned int x) { return static_cast<unsigned int>(__brevll(x) >> 32); }

// Four bytes, selected from the eight bytes of y and x. The selector has four bits for each; CUDA reads three of them.
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int select) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned int result = 0;
  for (int i = 0; i < 4; ++i, select >>= 4) {
    result |= static_cast<unsigned int>(bytes >> 8 * (select & 7) & 0xff) << 8 * i;
  }
  return result;
}

// The upper half of a product; the product of two numbers of 24 bits.
__extension__ typedef __int128 caffe_int128;
__extension__ typedef unsigned __int128 caffe_uint128;
inline int __mulhi(int x, int y) { return static_cast<int>(static_cast<int64_t>(x) * y >> 32); }
inline unsigned int __umulhi(unsigned int x, unsigned int y) {
  return static_cast<unsigned int>(static_cast<uint64_t>(x) * y >> 32);
}
inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<caffe_int128>(x) * y >> 64);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<caffe_uint128>(x) * y >> 64);
}
inline int __mul24(int x, int y) {
  const auto low = [](int v) { return static_cast<int32_t>(static_cast<uint32_t>(v) << 8) >> 8; };
  return static_cast<int>(static_cast<uint32_t>(static_cast<int64_t>(low(x)) * low(y)));
}
inline unsigned int __umul24(unsigned int x, unsigned int y) { return (x & 0xffffffu) * (y & 0xffffffu); }

// sad: the absolute difference plus z. hadd, rhadd: the mean, rounded down and up.
inline unsigned int __sad(int x, int y, unsigned int z) {
  const int64_t difference = static_cast<int64_t>(x) - y;
  return static_cast<unsigned int>(difference < 0 ? -difference : difference) + z;
}
inline unsigned int __usad(unsigned int x, unsigned int y, unsigned int z) {
  return (x < y ? y - x : x - y) + z;
}
inline int __hadd(int x, int y) { return static_cast<int>((static_cast<int64_t>(x) + y) >> 1); }
inline int __rhadd(int x, int y) { return static_cast<int>((static_cast<int64_t>(x) + y + 1) >> 1); }
inline unsigned int __uhadd(unsigned int x, unsigned int y) {
  return static_cast<unsigned int>((static_cast<uint64_t>(x) + y) >> 1);
}
inline unsigned int __urhadd(unsigned int x, unsigned int y) {
  return static_cast<unsigned int>((static_cast<uint64_t>(x) + y + 1) >> 1);
}

// 32 bits of a shifted 64-bit number. The shift is taken modulo 32, or (c) at most 32.
inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
  return static_cast<unsigned int>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

// Templates, so that a source's own function of that name is preferred.
template <int = 0>
inline long long llmax(long long x, long long y) {
  return x > y ? x : y;
}
template <int = 0>
inline long long llmin(long long x, long long y) {
  return x < y ? x : y;
}
template <int = 0>
inline unsigned long long ullmax(unsigned long long x, unsigned long long y) {
  return x > y ? x : y;
}
template <int = 0>
inline unsigned long long ullmin(unsigned long long x, unsigned long long y) {
  return x < y ? x : y;
}
template <int = 0>
inline unsigned int umax(unsigned int x, unsigned int y) {
  return x > y ? x : y;
}
template <int = 0>
inline unsigned int umin(unsigned int x, unsigned int y) {
  return x < y ? x : y;
}

#define CAFFE_HOST_REINTERPRET(name, from, to)                  \
  inline to name(from x) {                                      \
    static_assert(sizeof(from) == sizeof(to), "the same bits"); \
    to y;                                                       \
    memcpy(&y, &x, sizeof(y));                                  \
    return y;                                                   \
  }
CAFFE_HOST_REINTERPRET(__float_as_int, float, int)
CAFFE_HOST_REINTERPRET(__int_as_float, int, float)
CAFFE_HOST_REINTERPRET(__float_as_uint, float, unsigned int)
CAFFE_HOST_REINTERPRET(__uint_as_float, unsigned int, float)
CAFFE_HOST_REINTERPRET(__double_as_longlong, double, long long)
CAFFE_HOST_REINTERPRET(__longlong_as_double, long long, double)
#undef CAFFE_HOST_REINTERPRET
inline int __double2hiint(double x) { return static_cast<int>(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return static_cast<int>(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<int64_t>(high) << 32 | static_cast<uint32_t>(low));
}

// Loads and stores with a hint for a GPU's caches, which the host ignores.
#define CAFFE_HOST_LOAD(name)                \
  template <typename T>                      \
  __forceinline__ T name(const T* address) { \
    return *address;                         \
  }
CAFFE_HOST_LOAD(__ldg)
CAFFE_HOST_LOAD(__ldca)
CAFFE_HOST_LOAD(__ldcg)
CAFFE_HOST_LOAD(__ldcs)
CAFFE_HOST_LOAD(__ldcv)
CAFFE_HOST_LOAD(__ldlu)
#undef CAFFE_HOST_LOAD
#define CAFFE_HOST_STORE(name)                  \
  template <typename T>                         \
  inline void name(T* address, const T value) { \
    *address = value;                           \
  }
CAFFE_HOST_STORE(__stcg)
CAFFE_HOST_STORE(__stcs)
CAFFE_HOST_STORE(__stwb)
CAFFE_HOST_STORE(__stwt)
#undef CAFFE_HOST_STORE

// On a GPU the kernel ends with an error.
[[noreturn]] inline void __trap() { cuda_host::trap(); }
inline void __nanosleep(unsigned int) { cuda_host::spin(); }
