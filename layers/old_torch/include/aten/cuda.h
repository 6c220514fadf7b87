// at::cuda and c10::cuda: the current stream, guards and checks.
#pragma once

#include <cuda_runtime.h>

#include "functions.h"
#include "host_more.h"

#define C10_CUDA_CHECK(call)                                     \
  do {                                                           \
    const cudaError_t at_error = (call);                         \
    if (at_error != cudaSuccess)                                 \
      ::c10::fail(::c10::kRuntimeError, __FILE__, __LINE__, "",  \
                  "CUDA error: ", cudaGetErrorString(at_error)); \
  } while (0)
#define AT_CUDA_CHECK C10_CUDA_CHECK
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define C10_CUDA_CHECK_WARN C10_CUDA_CHECK
#define C10_CUDA_ERROR_HANDLED(call) (call)

namespace c10 {
namespace cuda {
class CUDAStream {
  cudaStream_t stream_;
  int device_;

 public:
  CUDAStream(cudaStream_t stream, int device) : stream_(stream), device_(device) {}
  cudaStream_t stream() const { return stream_; }
  operator cudaStream_t() const { return stream_; }
  DeviceIndex device_index() const { return static_cast<DeviceIndex>(device_); }
  void synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(stream_)); }
};
inline int current_device() {
  int device = 0;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  return device;
}
inline int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}
inline void set_device(int device) { C10_CUDA_CHECK(cudaSetDevice(device)); }
inline void MaybeSetDevice(int device) { set_device(device); }
inline void device_synchronize() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }
inline CUDAStream getCurrentCUDAStream(int device = -1) {
  if (device < 0) device = current_device();
  return CUDAStream(static_cast<cudaStream_t>(aten::stream_of(device)), device);
}
inline CUDAStream getDefaultCUDAStream(int device = -1) { return CUDAStream(nullptr, device); }
// torch's current stream is another one until the end of its scope.
class CUDAStreamGuard {
  const CUDAStream before_;

 public:
  explicit CUDAStreamGuard(const CUDAStream& stream) : before_(getCurrentCUDAStream(stream.device_index())) {
    reset_stream(stream);
  }
  CUDAStreamGuard(const CUDAStreamGuard&) = delete;
  ~CUDAStreamGuard() { reset_stream(before_); }
  void reset_stream(const CUDAStream& stream) {
    if (stream.stream() == getCurrentCUDAStream(stream.device_index()).stream()) return;
    aten::call("set_stream", reinterpret_cast<int64_t>(stream.stream()), stream.device_index());
  }
};
}  // namespace cuda
}  // namespace c10

namespace at {
namespace cuda {
using namespace c10::cuda;
inline cudaDeviceProp* getDeviceProperties(int device) {
  static std::map<int, cudaDeviceProp> known;
  if (!known.count(device)) C10_CUDA_CHECK(cudaGetDeviceProperties(&known[device], device));
  return &known[device];
}
inline cudaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(current_device()); }
inline int warp_size() { return 32; }
inline bool is_available() { return true; }
template <typename T>
inline T ATenCeilDiv(T a, T b) {
  return (a + b - 1) / b;
}
constexpr uint32_t AT_APPLY_THREADS_PER_BLOCK = 512;
constexpr uint32_t AT_APPLY_BLOCKS_PER_SM = 4;
inline dim3 getApplyBlock() { return dim3(AT_APPLY_THREADS_PER_BLOCK); }
inline bool getApplyGrid(uint64_t n, dim3& grid, int64_t, int = 512) {
  grid = dim3(static_cast<unsigned>(std::min<uint64_t>(
      (n + 511) / 512,
      uint64_t{4} * static_cast<uint64_t>(getCurrentDeviceProperties()->multiProcessorCount))));
  return true;
}
namespace detail {
inline bool canUse32BitIndexMath(const Tensor& t, int64_t most = INT32_MAX) { return t.numel() < most; }
}  // namespace detail
}  // namespace cuda
}  // namespace at
namespace torch {
namespace cuda {
inline bool is_available() { return true; }
inline int device_count() { return c10::cuda::device_count(); }
}  // namespace cuda
}  // namespace torch

#define CUDA_KERNEL_LOOP_TYPE(i, n, index_type) \
  for (index_type i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
#ifndef CUDA_KERNEL_LOOP
#define CUDA_KERNEL_LOOP(i, n) CUDA_KERNEL_LOOP_TYPE(i, n, int)
#endif
