// at::cuda and c10::cuda: the current stream, guards and checks.
#pragma once

#include <cuda_runtime.h>

#include <mutex>

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
C10_HOST_DEVICE inline T ATenCeilDiv(T a, T b) {
  return (a + b - 1) / b;
}
// A place in a stream's work.
class CUDAEvent {
  cudaEvent_t event_ = nullptr;

 public:
  explicit CUDAEvent(unsigned flags = cudaEventDisableTiming) {
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags));
  }
  CUDAEvent(const CUDAEvent&) = delete;
  CUDAEvent(CUDAEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  ~CUDAEvent() {
    if (event_) (void)cudaEventDestroy(event_);
  }
  cudaEvent_t event() const { return event_; }
  operator cudaEvent_t() const { return event_; }
  void record() { record(getCurrentCUDAStream()); }
  void record(const CUDAStream& stream) { C10_CUDA_CHECK(cudaEventRecord(event_, stream.stream())); }
  void recordOnce(const CUDAStream& stream) { record(stream); }
  void synchronize() const { C10_CUDA_CHECK(cudaEventSynchronize(event_)); }
  float elapsed_time(const CUDAEvent& later) const {
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, event_, later.event_));
    return milliseconds;
  }
};
constexpr uint32_t AT_APPLY_THREADS_PER_BLOCK = 512;
constexpr uint32_t AT_APPLY_BLOCKS_PER_SM = 4;
inline dim3 getApplyBlock() { return dim3(AT_APPLY_THREADS_PER_BLOCK); }
inline bool getApplyGrid(uint64_t n, dim3& grid, int64_t, int = 512) {
  grid = dim3(static_cast<unsigned>(std::min<uint64_t>(
      (n + 511) / 512,
      uint64_t{4} * static_cast<uint64_t>(getCurrentDeviceProperties()->multiProcessorCount))));
  return true;
}
// Random numbers of kernels: torch's generator gives each launch a seed and a place in its sequence.
struct PhiloxState {
  uint64_t seed, offset;
};
namespace philox {
C10_HOST_DEVICE inline std::tuple<uint64_t, uint64_t> unpack(PhiloxState state) {
  return std::make_tuple(state.seed, state.offset);
}
}  // namespace philox
namespace detail {
constexpr int CUDA_NUM_THREADS = 1024;
inline int GET_BLOCKS(int64_t n, int64_t threads = CUDA_NUM_THREADS) {
  TORCH_CHECK(n > 0, "CUDA kernel launch blocks must be positive, but got N=", n);
  const int64_t blocks = (n - 1) / threads + 1;
  TORCH_CHECK(blocks <= INT32_MAX, "Can't schedule too many blocks on CUDA device");
  return static_cast<int>(blocks);
}
inline Generator getDefaultCUDAGenerator(int = -1) { return {}; }
// A tensor's memory, sizes and strides for a kernel, and the place of its element of a number.
template <typename T, typename Index>
struct TensorInfo {
  static constexpr int kMostAxes = 25;
  T* data = nullptr;
  Index sizes[kMostAxes] = {}, strides[kMostAxes] = {};
  int dims = 0;
};
template <typename T, typename Index>
inline TensorInfo<T, Index> getTensorInfo(const Tensor& t) {
  constexpr int most = TensorInfo<T, Index>::kMostAxes;
  TORCH_CHECK(t.dim() <= most, "a tensor of ", t.dim(), " dims, more than ", most);
  TensorInfo<T, Index> info;
  info.data = t.data_ptr<T>(), info.dims = static_cast<int>(t.dim());
  for (int i = 0; i < info.dims; ++i)
    info.sizes[i] = static_cast<Index>(t.size(i)), info.strides[i] = static_cast<Index>(t.stride(i));
  return info;
}
template <typename T, typename Index, int Dims>
struct IndexToOffset {
  C10_HOST_DEVICE static Index get(Index number, const TensorInfo<T, Index>& info) {
    Index offset = 0;
    for (int i = info.dims - 1; i > 0; --i) {
      offset += number % info.sizes[i] * info.strides[i];
      number /= info.sizes[i];
    }
    return info.dims ? offset + number * info.strides[0] : 0;
  }
};
inline bool canUse32BitIndexMath(const Tensor& t, int64_t most = INT32_MAX) { return t.numel() < most; }
}  // namespace detail
}  // namespace cuda
using PhiloxCudaState = cuda::PhiloxState;
struct CUDAGeneratorImpl {
  std::mutex mutex_;
  // A place before `count` random numbers of each thread.
  PhiloxCudaState philox_cuda_state(uint64_t count) {
    const auto [seed, offset] =
        aten::call<std::tuple<int64_t, int64_t>>("philox", count, c10::Device(c10::kCUDA));
    return {static_cast<uint64_t>(seed), static_cast<uint64_t>(offset)};
  }
  std::pair<uint64_t, uint64_t> philox_engine_inputs(uint64_t count) {
    const PhiloxCudaState state = philox_cuda_state(count);
    return {state.seed, state.offset};
  }
};
template <typename T>
inline T* check_generator(const optional<Generator>&) {
  static T only;
  return &only;
}
template <typename T>
inline T* get_generator_or_default(const optional<Generator>& g, const Generator&) {
  return check_generator<T>(g);
}
}  // namespace at
// Memory of torch's allocator, until raw_delete.
namespace aten {
inline std::unordered_map<void*, at::Tensor>& blocks() {
  static std::unordered_map<void*, at::Tensor> all;
  return all;
}
inline void* allocate(size_t bytes) {
  const at::Tensor t = call<at::Tensor>("bytes", bytes, c10::Device(c10::kCUDA));
  return blocks()[t.data_ptr()] = t, t.data_ptr();
}
inline void release(void* pointer) { blocks().erase(pointer); }
}  // namespace aten
namespace c10 {
namespace cuda {
namespace CUDACachingAllocator {
inline void* raw_alloc(size_t bytes) { return aten::allocate(bytes); }
inline void* raw_alloc_with_stream(size_t bytes, cudaStream_t) { return aten::allocate(bytes); }
inline void raw_delete(void* pointer) { aten::release(pointer); }
inline void emptyCache() {}
}  // namespace CUDACachingAllocator
}  // namespace cuda
}  // namespace c10

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
