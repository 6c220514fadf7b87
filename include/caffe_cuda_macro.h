// The macros of Caffe's kernels: the kernel loop, the block count, the launch check and atomics. Dtype dispatch
// is ours. nvcc and the host compiler both read this header.
//
//   template <typename Dtype>
//   __global__ void ReLUForward(const int n, const Dtype* in, Dtype* out) {
//     CUDA_KERNEL_LOOP(i, n) { out[i] = in[i] > 0 ? in[i] : Dtype(0); }
//   }
#ifndef CAFFE_CUDA_MACRO_H_
#define CAFFE_CUDA_MACRO_H_

// Caffe layers rely on these headers, which Caffe's own headers include.
#include <assert.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#if defined(__CUDACC__) || defined(CUDART_VERSION)  // nvcc, or g++ for the CUDA library's .cpp files
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

// Threads per block, as in Caffe.
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
#ifndef CAFFE_UTIL_DEVICE_ALTERNATE_H_  // a native layer: Caffe's files mean CUDA's half
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

// The same over two indices: i in [0, n) along the grid's x, j in [0, m) along its y (Caffe2's name).
#define CUDA_2D_KERNEL_LOOP(i, n, j, m) CAFFE_KERNEL_LOOP_OVER(x(n), i, n) CAFFE_KERNEL_LOOP_OVER(y(m), j, m)

// --------------------------------------------------------------------------------------- errors

namespace cuffi {

// Thrown by the checks below. The generated C wrapper catches it and returns a status, because no exception may
// reach Python's C code.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

#ifdef __CUDA_ARCH_LIST__
#define CAFFE_STRINGIFY_(...) #__VA_ARGS__
#define CAFFE_STRINGIFY(...) CAFFE_STRINGIFY_(__VA_ARGS__)
// The architectures of this translation unit as nvcc lists them: "750,800" -> "sm_75 sm_80".
inline std::string built_architectures() {
  std::string text = "sm_";
  for (const char* c = CAFFE_STRINGIFY(__CUDA_ARCH_LIST__); *c; ++c) {
    if (*c == ',') text += " sm_";
    if (*c >= '0' && *c <= '9' && !(*c == '0' && (c[1] == ',' || c[1] == '\0'))) text += *c;
  }
  return text;
}
#endif

[[noreturn]] inline void throw_cuda_error(cudaError_t error, const char* what, const char* file, int line) {
  (void)cudaGetLastError();  // clear the error, or torch's next call would report it
  std::string text = std::string(file) + ":" + std::to_string(line) + ": " + what + ": " +
                     cudaGetErrorName(error) + ": " + cudaGetErrorString(error);
#ifdef __CUDACC__
  if (error == cudaErrorInvalidConfiguration) {
    int device = 0, threads = 0, bytes = 0, most = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, device);
    cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlock, device);
#ifdef CUDART_VERSION
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
#endif
    text += ": a block of this GPU has at most " + std::to_string(threads) + " threads and " +
            std::to_string(bytes) + " bytes of shared memory (" + std::to_string(most) +
            " after cudaFuncSetAttribute), a grid at most 2147483647 x 65535 x 65535 blocks";
  }
#endif
#ifdef __CUDA_ARCH_LIST__
  if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
      error == cudaErrorUnsupportedPtxVersion) {
    int device = 0, major = 0, minor = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    const std::string wanted = "sm_" + std::to_string(major * 10 + minor);
    text +=
        " (built for " + built_architectures() + ", this GPU is " + wanted + ": make ARCH=" + wanted + ")";
  }
#endif
  throw Error(text);
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
template <typename... Parameters, size_t... I>
void launch_cooperative_of(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                           cudaStream_t stream, std::tuple<std::decay_t<Parameters>...> values,
                           std::index_sequence<I...>) {
  void* arguments[] = {(void*)&std::get<I>(values)..., nullptr};
  (void)cudaLaunchCooperativeKernel(kernel, grid, block, arguments, shared_bytes, stream);
}
// A launch whose blocks may wait for each other, this_grid().sync(). The status is that of any launch.
template <typename... Parameters, typename... Arguments>
void launch_cooperative(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                        cudaStream_t stream, Arguments... arguments) {
  launch_cooperative_of(kernel, grid, block, shared_bytes, stream,
                        std::tuple<std::decay_t<Parameters>...>(arguments...),
                        std::index_sequence_for<Parameters...>());
}
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

// -------------------------------------------------------------------------------------- atomics

// The value comes first, as in Caffe. In Caffe's namespace, because layers declare and specialize it.
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

namespace cuffi {
// torch's name of a dtype, for messages.
inline std::string dtype_name(int dtype) {
  static const char* const names[] = {"float32", "float64", "float16", "bfloat16", "int32",  "int64", "int8",
                                      "uint8",   "int16",   "uint16",  "uint32",   "uint64", "bool"};
  return dtype >= 0 && dtype < 13 ? names[dtype] : "a tensor of dtype code " + std::to_string(dtype);
}
}  // namespace cuffi

#define CAFFE_DISPATCH_OTHERWISE_(dtype, known) \
  default:                                      \
    throw ::cuffi::Error(std::string("expected ") + known + ", got " + ::cuffi::dtype_name(dtype))

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
