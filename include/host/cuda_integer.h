// CUDA's integer and bit functions.
#pragma once

#include <stdint.h>
#include <string.h>

#include "cuda_api.h"
#include "cuda_convert.h"
#include "cuda_simd.h"

// The number of set bits, and the position of the first and last one. For 0, ffs is 0 and clz the full width,
// as in CUDA.
inline int __popc(cuda_host::UInt x) { return __builtin_popcount(x); }
inline int __popcll(cuda_host::UInt64 x) { return __builtin_popcountll(x); }
inline int __ffs(cuda_host::Int x) { return __builtin_ffs(x); }
inline int __ffsll(cuda_host::Int64 x) { return __builtin_ffsll(x); }
inline int __clz(cuda_host::Int x) { return x ? __builtin_clz(static_cast<unsigned int>(x)) : 32; }
inline int __clzll(cuda_host::Int64 x) {
  return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
inline unsigned long long __brevll(cuda_host::UInt64 x) {
  unsigned long long y = 0;
  for (int i = 0; i < 64; ++i) y = y << 1 | (x >> i & 1);
  return y;
}
inline unsigned int __brev(cuda_host::UInt x) { return static_cast<unsigned int>(__brevll(x) >> 32); }

// Four bytes, selected from the eight bytes of y and x. The selector has four bits for each; CUDA reads three of them.
inline unsigned int __byte_perm(cuda_host::UInt x, cuda_host::UInt y, cuda_host::UInt select) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned int result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<unsigned int>(bytes >> 8 * (select >> 4 * i & 7) & 0xff) << 8 * i;
  }
  return result;
}

// The upper half of a product; the product of two numbers of 24 bits.
__extension__ typedef __int128 caffe_int128;
__extension__ typedef unsigned __int128 caffe_uint128;
inline int __mulhi(cuda_host::Int x, cuda_host::Int y) {
  return static_cast<int>(static_cast<int64_t>(x) * y >> 32);
}
inline unsigned int __umulhi(cuda_host::UInt x, cuda_host::UInt y) {
  return static_cast<unsigned int>(static_cast<uint64_t>(x) * y >> 32);
}
inline long long __mul64hi(cuda_host::Int64 x, cuda_host::Int64 y) {
  return static_cast<long long>(static_cast<caffe_int128>(x) * y >> 64);
}
inline unsigned long long __umul64hi(cuda_host::UInt64 x, cuda_host::UInt64 y) {
  return static_cast<unsigned long long>(static_cast<caffe_uint128>(x) * y >> 64);
}
inline int __mul24(cuda_host::Int x, cuda_host::Int y) {
  const auto low = [](int v) { return static_cast<int32_t>(static_cast<uint32_t>(v) << 8) >> 8; };
  return static_cast<int>(static_cast<uint32_t>(static_cast<int64_t>(low(x)) * low(y)));
}
inline unsigned int __umul24(cuda_host::UInt x, cuda_host::UInt y) {
  return (x & 0xffffffu) * (y & 0xffffffu);
}

// sad: the absolute difference plus z. hadd, rhadd: the mean, rounded down and up.
inline unsigned int __sad(cuda_host::Int x, cuda_host::Int y, cuda_host::UInt z) {
  const int64_t difference = static_cast<int64_t>(x) - y;
  return static_cast<unsigned int>(difference < 0 ? -difference : difference) + z;
}
inline unsigned int __usad(cuda_host::UInt x, cuda_host::UInt y, cuda_host::UInt z) {
  return (x < y ? y - x : x - y) + z;
}
inline int __hadd(cuda_host::Int x, cuda_host::Int y) {
  return static_cast<int>((static_cast<int64_t>(x) + y) >> 1);
}
inline int __rhadd(cuda_host::Int x, cuda_host::Int y) {
  return static_cast<int>((static_cast<int64_t>(x) + y + 1) >> 1);
}
inline unsigned int __uhadd(cuda_host::UInt x, cuda_host::UInt y) {
  return static_cast<unsigned int>((static_cast<uint64_t>(x) + y) >> 1);
}
inline unsigned int __urhadd(cuda_host::UInt x, cuda_host::UInt y) {
  return static_cast<unsigned int>((static_cast<uint64_t>(x) + y + 1) >> 1);
}

// 32 bits of a shifted 64-bit number. The shift is taken modulo 32, or (c) at most 32.
inline unsigned int __funnelshift_l(cuda_host::UInt low, cuda_host::UInt high, cuda_host::UInt shift) {
  return static_cast<unsigned int>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned int __funnelshift_r(cuda_host::UInt low, cuda_host::UInt high, cuda_host::UInt shift) {
  return static_cast<unsigned int>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned int __funnelshift_lc(cuda_host::UInt low, cuda_host::UInt high, cuda_host::UInt shift) {
  return shift >= 32 ? +low : __funnelshift_l(low, high, shift);
}
inline unsigned int __funnelshift_rc(cuda_host::UInt low, cuda_host::UInt high, cuda_host::UInt shift) {
  return shift >= 32 ? +high : __funnelshift_r(low, high, shift);
}

// Templates, so that a source's own function of that name is preferred.
template <int = 0>
inline long long llmax(cuda_host::Int64 x, cuda_host::Int64 y) {
  return x > y ? x : y;
}
template <int = 0>
inline long long llmin(cuda_host::Int64 x, cuda_host::Int64 y) {
  return x < y ? x : y;
}
template <int = 0>
inline unsigned long long ullmax(cuda_host::UInt64 x, cuda_host::UInt64 y) {
  return x > y ? x : y;
}
template <int = 0>
inline unsigned long long ullmin(cuda_host::UInt64 x, cuda_host::UInt64 y) {
  return x < y ? x : y;
}
template <int = 0>
inline unsigned int umax(cuda_host::UInt x, cuda_host::UInt y) {
  return x > y ? x : y;
}
template <int = 0>
inline unsigned int umin(cuda_host::UInt x, cuda_host::UInt y) {
  return x < y ? x : y;
}

#define CAFFE_HOST_REINTERPRET(name, from, to)                  \
  inline to name(cuda_host::given<from> given) {                \
    static_assert(sizeof(from) == sizeof(to), "the same bits"); \
    const from x = given;                                       \
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
inline double __hiloint2double(cuda_host::Int high, cuda_host::Int low) {
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
// So it does at a breakpoint where no debugger is.
[[noreturn]] inline void __brkpt() { cuda_host::trap("__brkpt"); }
inline void __nanosleep(cuda_host::UInt) { cuda_host::spin(); }
