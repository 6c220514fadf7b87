// Macros for kernels: the kernel loop, the block count, the launch check, atomics and dtype dispatch. nvcc and the
// host compiler both read this header.
//
//   template <typename Dtype>
//   __global__ void ReLUForward(const int n, const Dtype* in, Dtype* out) {
//     CUDA_KERNEL_LOOP(i, n) { out[i] = in[i] > 0 ? in[i] : Dtype(0); }
//   }
#ifndef CAFFE_CUDA_MACRO_H_
#define CAFFE_CUDA_MACRO_H_

#ifdef __CUDACC_RTC__
#include "caffe_device_std.h"
#else
// Sources rely on these headers.
#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <exception>
#include <limits>
#include <type_traits>
#include <utility>
#ifndef CAFFE_FEW_HEADERS  // a string that uses none of them (cuffi/loading/load_inline.py): nvcc takes half the time
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <tuple>
#endif
#endif

#ifdef __CUDACC_RTC__                                 // it has CUDA's own names
#elif defined(__CUDACC__) || defined(CUDART_VERSION)  // nvcc, or g++ for the CUDA library's .cpp files
#include <cuda_runtime.h>
#else
#include "host/cuda_runtime.h"
#endif

#include "caffe_half.h"
#include "caffe_old_warp.h"
#ifndef CAFFE_FFI_H_INCLUDED  // caffe_ffi.h has no guard, because cffi reads it, too
#define CAFFE_FFI_H_INCLUDED
extern "C" {
#include "caffe_ffi.h"
}
#endif

// ------------------------------------------------------------------------------ launch geometry

// Threads per block.
constexpr int CAFFE_CUDA_NUM_THREADS = 512;

// As many blocks as give each of `count` elements a thread. At least 1, because CUDA refuses a grid of 0 blocks.
// At most what a grid's x can hold.
__host__ __device__ inline int CAFFE_GET_BLOCKS(int64_t count) {
  const int64_t blocks = count / CAFFE_CUDA_NUM_THREADS + (count % CAFFE_CUDA_NUM_THREADS > 0);
  return static_cast<int>(blocks < 1 ? 1 : blocks > INT32_MAX ? INT32_MAX : blocks);
}

// The stream, which Python passes as an address.
#define CAFFE_STREAM(stream) static_cast<cudaStream_t>(stream)

// --------------------------------------------------------------------------------- kernel loops

#ifdef __CUDACC__
#define CAFFE_NO_UNROLL _Pragma("unroll 1")
#else
#define CAFFE_NO_UNROLL
#endif

// Names of the toolkit's own are in the namespace cuffi, because a fork may have any name in its namespace caffe: one
// that it declares there hides ours.
namespace cuffi {}
namespace caffe {
using namespace ::cuffi;
using ::CAFFE_CUDA_NUM_THREADS;
using ::CAFFE_GET_BLOCKS;
#ifndef CAFFE_UTIL_DEVICE_ALTERNATE_H_  // else a file means CUDA's half
using ::cuffi::types::accumulate_t;
using ::cuffi::types::bfloat16;
using ::cuffi::types::half;
#endif
}  // namespace caffe

namespace cuffi {
// A thread's position in a loop over the grid. It has 64 bits: with more than 2^30 elements the last step of a
// 32-bit position would overflow, and the body would write out of bounds. The body's index has the type of n.
struct KernelPosition {
  int64_t at, stride, end;
  __device__ __forceinline__ KernelPosition(int64_t first, int64_t step, int64_t n)
      : at(first), stride(step), end(n) {}
  __device__ __forceinline__ bool inside() const { return at < end; }
  __device__ __forceinline__ void next() { at += stride; }
  static __device__ __forceinline__ KernelPosition x(int64_t n, int64_t from = 0) {
    return KernelPosition(from + int64_t(blockIdx.x) * blockDim.x + threadIdx.x,
                          int64_t(gridDim.x) * blockDim.x, n);
  }
  static __device__ __forceinline__ KernelPosition y(int64_t n) {
    return KernelPosition(int64_t(blockIdx.y) * blockDim.y + threadIdx.y, int64_t(gridDim.y) * blockDim.y, n);
  }
};
}  // namespace cuffi

// Not unrolled: a grid of CAFFE_GET_BLOCKS blocks gives each thread one element, so copies of the body would never
// run, and cost registers.
#define CAFFE_KERNEL_LOOP_OVER(position, i, n)                                                            \
  CAFFE_NO_UNROLL for (::cuffi::KernelPosition i##_position = ::cuffi::KernelPosition::position;          \
                       i##_position.inside();                                                             \
                       i##_position.next()) if (auto i = static_cast<decltype((n) + 0)>(i##_position.at); \
                                                false) { /* `if` gives i its scope; */ }                  \
  else /* `else` keeps break, continue and a dangling else as they are in a plain for loop */

// Run the following statement for each i in [0, n), spread over the grid's x.
#define CUDA_KERNEL_LOOP(i, n) CAFFE_KERNEL_LOOP_OVER(x(n), i, n)

// The same over two indices: i in [0, n) along the grid's x, j in [0, m) along its y.
#define CUDA_2D_KERNEL_LOOP(i, n, j, m) CAFFE_KERNEL_LOOP_OVER(x(n), i, n) CAFFE_KERNEL_LOOP_OVER(y(m), j, m)

// --------------------------------------------------------------------------------------- errors

#ifdef __CUDACC_RTC__
#include "caffe_device_launch.h"
#else

namespace cuffi {

// Thrown by the checks below. The generated C wrapper catches it and returns a status, because no exception may
// reach Python's C code.
class Error : public std::exception {
 public:
  explicit Error(const char* text) { snprintf(text_, sizeof(text_), "%s", text); }
#ifndef CAFFE_FEW_HEADERS
  explicit Error(const std::string& text) : Error(text.c_str()) {}
#endif
  template <typename First, typename... Rest>  // as printf
  Error(const char* format, First first, Rest... rest) {
    snprintf(text_, sizeof(text_), format, first, rest...);
  }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[1536];
};

#ifdef __CUDA_ARCH_LIST__
#define CAFFE_STRINGIFY_(...) #__VA_ARGS__
#define CAFFE_STRINGIFY(...) CAFFE_STRINGIFY_(__VA_ARGS__)
// The architectures of this translation unit as nvcc lists them: "750,800" -> "sm_75 sm_80".
inline void built_architectures(char* text, size_t bytes) {
  size_t at = snprintf(text, bytes, "sm_");
  for (const char* c = CAFFE_STRINGIFY(__CUDA_ARCH_LIST__); *c && at + 5 < bytes; ++c) {
    if (*c == ',') at += snprintf(text + at, bytes - at, " sm_");
    if (*c >= '0' && *c <= '9' && !(*c == '0' && (c[1] == ',' || c[1] == '\0')))
      text[at++] = *c, text[at] = '\0';
  }
}
#endif

[[noreturn]] inline void throw_cuda_error(cudaError_t error, const char* what, const char* file, int line) {
  (void)cudaGetLastError();  // clear the error, or torch's next call would report it
  char more[512] = "";
#ifdef __CUDACC__
  // CUDA 13 says cudaErrorInvalidValue of 2,048 threads.
  const bool of_a_launch = error == cudaErrorInvalidValue && !strcmp(what, "kernel launch");
  if (error == cudaErrorInvalidConfiguration || of_a_launch) {
    int device = 0, threads = 0, bytes = 0, most = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, device);
    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlock, device);
#ifdef CUDART_VERSION
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
#endif
    snprintf(more, sizeof(more),
             ": a block of this GPU has at most %d threads and %d bytes of shared memory (%d after "
             "cudaFuncSetAttribute), a grid at most 2147483647 x 65535 x 65535 blocks",
             threads, bytes, most);
  }
#endif
#ifdef __CUDA_ARCH_LIST__
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
      error == cudaErrorUnsupportedPtxVersion) {
    int device = 0, major = 0, minor = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    char built[256];
    built_architectures(built, sizeof(built));
    const int wanted = major * 10 + minor;
    snprintf(more, sizeof(more), " (built for %s, this GPU is sm_%d: make ARCH=sm_%d)", built, wanted,
             wanted);
  }
#endif
  throw Error("%s:%d: %s: %s: %s%s", file, line, what, cudaGetErrorName(error), cudaGetErrorString(error),
              more);
}

}  // namespace cuffi

// Evaluate a CUDA call once; throw cuffi::Error with file and line if it failed.
#define CUDA_CHECK(condition)                                                  \
  do {                                                                         \
    const cudaError_t caffe_error_ = (condition);                              \
    if (caffe_error_ != cudaSuccess)                                           \
      ::cuffi::throw_cuda_error(caffe_error_, #condition, __FILE__, __LINE__); \
  } while (0)

// After a launch: did it succeed? Does not wait for the kernel.
#define CUDA_POST_KERNEL_CHECK CUDA_CHECK(cudaGetLastError())

namespace cuffi {
// A launch whose blocks may wait for each other, this_grid().sync(). The status is that of any launch.
template <typename... Parameters>
void launch_cooperative(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                        cudaStream_t stream, std::decay_t<Parameters>... values) {
  void* arguments[] = {(void*)&values..., nullptr};
  (void)cudaLaunchCooperativeKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

// Memory for an object that no constructor makes: a launcher fills its fields.
template <typename Type>
union Filled {
  Type value;
  unsigned char bytes[sizeof(Type)];
  Filled() : bytes{} {}
  ~Filled() {}
};
}  // namespace cuffi

// The return value of an exported launcher: 0. Throws if the launch failed.
#define CAFFE_LAUNCH_STATUS() ::cuffi::launch_status(__FILE__, __LINE__)

namespace cuffi {
inline int launch_status(const char* file, int line) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw_cuda_error(error, "kernel launch", file, line);
  return 0;
}
}  // namespace cuffi

#endif  // __CUDACC_RTC__

// -------------------------------------------------------------------------------------- atomics

// The value comes first. In this namespace, because layers declare and specialize it.
namespace caffe {
template <typename Dtype>
__device__ inline Dtype caffe_gpu_atomic_add(const Dtype value, Dtype* address) {
  return atomicAdd(address, value);
}
}  // namespace caffe
using caffe::caffe_gpu_atomic_add;

// ------------------------------------------------------------------------------- dtype dispatch

#define CAFFE_DISPATCH_CASE_(code, type, name, ...) \
  case code: {                                      \
    using name = type;                              \
    __VA_ARGS__                                     \
  } break;

#ifndef __CUDACC_RTC__
namespace cuffi {
[[noreturn]] inline void throw_dtype(int dtype, const char* known) {
  static const char* const names[] = {"float32", "float64", "float16", "bfloat16", "int32",  "int64", "int8",
                                      "uint8",   "int16",   "uint16",  "uint32",   "uint64", "bool"};
  if (dtype >= 0 && dtype < 13) throw Error("expected %s, got %s", known, names[dtype]);
  throw Error("expected %s, got a tensor of dtype code %d", known, dtype);
}
}  // namespace cuffi
#endif

#define CAFFE_DISPATCH_OTHERWISE_(dtype, known) \
  default:                                      \
    ::cuffi::throw_dtype(dtype, known)

// Run the block with `name` as the C++ type of the caffe_dtype `dtype`.
#define CAFFE_DISPATCH_FLOATING(dtype, name, ...)                                       \
  do {                                                                                  \
    switch (dtype) {                                                                    \
      CAFFE_DISPATCH_CASE_(CAFFE_FLOAT32, float, name, __VA_ARGS__)                     \
      CAFFE_DISPATCH_CASE_(CAFFE_FLOAT64, double, name, __VA_ARGS__)                    \
      CAFFE_DISPATCH_CASE_(CAFFE_FLOAT16, ::cuffi::types::half, name, __VA_ARGS__)      \
      CAFFE_DISPATCH_CASE_(CAFFE_BFLOAT16, ::cuffi::types::bfloat16, name, __VA_ARGS__) \
      CAFFE_DISPATCH_OTHERWISE_(dtype, "float32, float64, float16 or bfloat16");        \
    }                                                                                   \
  } while (0)

// The same for float and double only, for bodies that do not compile for the half types.
#define CAFFE_DISPATCH_FLOAT_DOUBLE(dtype, name, ...)                \
  do {                                                               \
    switch (dtype) {                                                 \
      CAFFE_DISPATCH_CASE_(CAFFE_FLOAT32, float, name, __VA_ARGS__)  \
      CAFFE_DISPATCH_CASE_(CAFFE_FLOAT64, double, name, __VA_ARGS__) \
      CAFFE_DISPATCH_OTHERWISE_(dtype, "float32 or float64");        \
    }                                                                \
  } while (0)

// The same for the whole numbers of a tensor of indices: int32_t or int64_t.
#define CAFFE_DISPATCH_INDEX(dtype, name, ...)                      \
  do {                                                              \
    switch (dtype) {                                                \
      CAFFE_DISPATCH_CASE_(CAFFE_INT32, int32_t, name, __VA_ARGS__) \
      CAFFE_DISPATCH_CASE_(CAFFE_INT64, int64_t, name, __VA_ARGS__) \
      CAFFE_DISPATCH_OTHERWISE_(dtype, "int32 or int64");           \
    }                                                               \
  } while (0)

#include "caffe_vector_loop.h"

#endif  // CAFFE_CUDA_MACRO_H_
