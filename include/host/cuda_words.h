// Qualifiers, vector types and the thread's identity.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda_convert.h"

#if defined(__clang__) && defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1  // as g++ says it
#endif
#endif

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __cluster_dims__(...)
#define __builtin_assume(...) ((void)0)
#define __forceinline__ inline __attribute__((always_inline))
// __noinline__ is not a macro: glibc's and libstdc++'s headers use it inside of __attribute__. to_host.py replaces it.
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __align__(bytes)
#define __no_return__ __attribute__((noreturn))
#define __inline_hint__
#define __nv_pure__
#define __device_builtin__
#define __cudart_builtin__
// A host thread runs one block at a time, with all its threads.
#define __shared__ static thread_local
// A static_assert stands behind such a variable.
namespace cuda_host {
constexpr size_t kMostStatic = 48 * 1024;
}
#define CAFFE_HOST_TOO_MUCH \
  "more than 48 KiB of static shared memory, which nvcc refuses; use extern __shared__"

// CUDA's vector types, with the alignment that they have on a GPU.
#define CAFFE_HOST_VECTOR(type, name)                                                              \
  struct name##1 { type x; };                                                                      \
  struct alignas(2 * sizeof(type)) name##2 { type x, y; };                                         \
  struct name##3 { type x, y, z; };                                                                \
  struct alignas(sizeof(type) < 4 ? 4 * sizeof(type) : 16) name##4 { type x, y, z, w; };           \
  __forceinline__ name##1 make_##name##1(::cuda_host::given<type> x) { return name##1 {x}; }       \
  __forceinline__ name##2 make_##name##2(::cuda_host::given<type> x, ::cuda_host::given<type> y) { \
    return name##2 {x, y};                                                                         \
  }                                                                                                \
  __forceinline__ name##3 make_##name##3(::cuda_host::given<type> x, ::cuda_host::given<type> y,   \
                                         ::cuda_host::given<type> z) {                             \
    return name##3 {x, y, z};                                                                      \
  }                                                                                                \
  __forceinline__ name##4 make_##name##4(::cuda_host::given<type> x, ::cuda_host::given<type> y,   \
                                         ::cuda_host::given<type> z, ::cuda_host::given<type> w) { \
    return name##4 {x, y, z, w};                                                                   \
  }
CAFFE_HOST_VECTOR(signed char, char)
CAFFE_HOST_VECTOR(unsigned char, uchar)
CAFFE_HOST_VECTOR(short, short)
CAFFE_HOST_VECTOR(unsigned short, ushort)
CAFFE_HOST_VECTOR(int, int)
CAFFE_HOST_VECTOR(unsigned int, uint)
CAFFE_HOST_VECTOR(long, long)
CAFFE_HOST_VECTOR(unsigned long, ulong)
CAFFE_HOST_VECTOR(long long, longlong)
CAFFE_HOST_VECTOR(unsigned long long, ulonglong)
CAFFE_HOST_VECTOR(float, float)
CAFFE_HOST_VECTOR(double, double)
#undef CAFFE_HOST_VECTOR

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

// Set by the launcher (src/host/host_launch.cpp) before each call of a kernel's body. Hidden, because then the compiler asks
// once for the address of all.
#pragma GCC visibility push(hidden)
extern __thread uint3 threadIdx, blockIdx, blockDim, gridDim;
namespace cuda_host {
extern __thread unsigned int spins;
}
#pragma GCC visibility pop
constexpr int warpSize = 32;

namespace cuda_host {
// Let the other threads run, of this block and of others.
void spin();
// A thread may wait here for another one: at an atomic, and in a loop that reads volatile memory (tools/cuda/to_host.py).
#ifdef CAFFE_HOST_RACES  // in the launcher, whose accesses are not the kernel's
bool may_spin();
// Around the condition of a loop that waits.
bool may_wait();
bool waited(bool is);
#else
inline bool may_spin() {
  if (++spins % 1024 == 0) spin();
  return true;
}
inline bool may_wait() { return may_spin(); }
inline bool waited(bool is) { return is; }
#endif

// For the race finder. The atomics in the life of this object are for the threads of one block.
struct BlockScope {
#ifdef CAFFE_HOST_RACES
  BlockScope();
  ~BlockScope();
#else
  BlockScope() {}
#endif
};
#ifdef CAFFE_HOST_RACES
// A __constant__ variable, which kernels only read. tools/cuda/to_host.py writes this after its declaration.
struct Constant {
  Constant(const void* memory, size_t bytes);
};
#define CAFFE_HOST_CONSTANT(name) \
  static const ::cuda_host::Constant caffe_constant_##name(&name, sizeof(name));
#else
#define CAFFE_HOST_CONSTANT(name)
#endif
}  // namespace cuda_host
