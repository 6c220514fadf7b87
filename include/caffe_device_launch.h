// For launchers that NVRTC compiles: instead of a launch they write what it would be (caffe_launch.h). cuffi/loading/ptx.py
// reads them; no GPU runs them.
#ifndef CAFFE_DEVICE_LAUNCH_H_
#define CAFFE_DEVICE_LAUNCH_H_

#include "caffe_launch.h"

#define CUDA_CHECK(condition) (void)(condition)
#define CUDA_POST_KERNEL_CHECK

namespace cuffi {

__device__ __forceinline__ caffe_launch& launch_of() {
  return *reinterpret_cast<caffe_launch*>(CAFFE_LAUNCH_AT);
}

__device__ __forceinline__ void cannot_launch(unsigned problem, const char* text, long long value = 0) {
  launch_of().problem = problem;
  launch_of().text = reinterpret_cast<unsigned long long>(text);
  launch_of().value = value;
}

__device__ __forceinline__ void throw_dtype(int dtype, const char* known) {
  cannot_launch(CAFFE_NO_DTYPE, known, dtype);
}

template <typename Kernel>
struct Packed;
template <typename... Parameter>
struct Packed<void (*)(Parameter...)> {
  template <typename... Value>
  static __device__ __forceinline__ void launch(unsigned kernel, bool is_cooperative, dim3 grid, dim3 block,
                                                unsigned long long shared, const Value&... values) {
    static_assert(sizeof...(Parameter) == sizeof...(Value), "as many values as parameters");
    caffe_launch& out = launch_of();
    out.kernel = kernel;
    out.is_cooperative = is_cooperative;
    out.grid[0] = grid.x, out.grid[1] = grid.y, out.grid[2] = grid.z;
    out.block[0] = block.x, out.block[1] = block.y, out.block[2] = block.z;
    out.shared = shared;
    char* const to = reinterpret_cast<char*>(out.arguments);
    unsigned at = 0, count = 0;
    ((at = (at + alignof(Parameter) - 1) / alignof(Parameter) * alignof(Parameter),
      *reinterpret_cast<std::remove_const_t<Parameter>*>(to + at) = values, out.offsets[count++] = at,
      at += sizeof(Parameter)),
     ...);
    out.count = count;
    static_assert((0 + ... + (sizeof(Parameter) + alignof(Parameter))) <= sizeof(out.arguments),
                  "too many arguments");
  }
};

// A variable of the kernels gets its values before the launch.
enum { kFromHost, kFromDevice };
template <typename Symbol>
__device__ __forceinline__ int upload(const Symbol& symbol, const void* from, size_t bytes, size_t, int kind,
                                      int = 0) {
  caffe_launch_upload& one = launch_of().upload[launch_of().uploads++];
  one.symbol = reinterpret_cast<unsigned long long>(&symbol);
  one.bytes = bytes;
  one.is_value = kind == kFromHost;
  one.from = kind == kFromHost ? *reinterpret_cast<const unsigned long long*>(from)
                               : reinterpret_cast<unsigned long long>(from);
  return 0;
}
}  // namespace cuffi

#endif  // CAFFE_DEVICE_LAUNCH_H_
