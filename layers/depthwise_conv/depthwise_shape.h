// Shared by all kernels of this layer: the shape of a call, packs of elements, and parameters.
#ifndef DEPTHWISE_SHAPE_H_
#define DEPTHWISE_SHAPE_H_

#include "caffe_cuda_macro.h"
#include "depthwise_backend.h"

namespace depthwise {

constexpr bool kFastKernels = DEPTHWISE_FAST_KERNELS;

struct Shape {
  int64_t num, channels, height, width, top_height, top_width;
  int kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;

  __host__ __device__ int taps() const { return kernel_h * kernel_w; }
  bool empty() const {
    return num <= 0 || channels <= 0 || height <= 0 || width <= 0 || top_height <= 0 || top_width <= 0;
  }
  // Fast kernels count threads and the elements of an image in 32 bits.
  bool fits_int() const {
    const int64_t limit = int64_t(1) << 30;
    if (std::max({num, channels, height, width, top_height, top_width, int64_t(dilation_h),
                  int64_t(dilation_w)}) >= 1 << 24)
      return false;
    if (pad_h >= 1 << 20 || pad_w >= 1 << 20 || num * channels >= limit) return false;
    const int64_t pixels = (height + 2 * pad_h) * (width + 2 * pad_w);  // top has no more
    return pixels < limit && pixels * channels < limit && channels * taps() < limit;
  }
  bool square(int kernel) const { return kernel_h == kernel && kernel_w == kernel; }
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// N elements that one instruction loads or stores.
template <typename Dtype, int N>
struct alignas(sizeof(Dtype) * N) Pack {
  Dtype v[N];
};

// A layer's weights, its biases, or the gradient of either. If Dtype is a half type, they may be float:
// autocast does not cast them, which saves time and loses no bits.
template <typename Dtype>
struct Parameters {
  using Value = caffe::accumulate_t<Dtype>;
  void* data;  // NULL: there are none
  bool is_float;

  __host__ __device__ explicit operator bool() const { return data != nullptr; }
  // Calls use(pointer of the right type), so that the type is tested once for all loads.
  template <typename Use>
  __device__ __forceinline__ auto with(Use use) const {
    if constexpr (sizeof(Dtype) == 2)
      if (is_float) return use(static_cast<float*>(data));
    return use(static_cast<Dtype*>(data));
  }
  __device__ __forceinline__ Value operator[](int64_t i) const {
    return with([i](const auto* from) { return Value(from[i]); });
  }
  __device__ __forceinline__ void set(int64_t i, Value value) const {
    with([=](auto* to) { to[i] = value; });
  }
  // The parameters from the i-th on.
  __device__ __forceinline__ Parameters operator+(int64_t i) const {
    const int64_t each = sizeof(Dtype) == 2 && is_float ? sizeof(float) : sizeof(Dtype);
    return {static_cast<char*>(data) + i * each, is_float};
  }
};

// dtype: the code of Dtype. own: the code of the parameters' type.
template <typename Dtype>
Parameters<Dtype> parameters(const void* data, int own, int dtype) {
  if (data && own != dtype && !(sizeof(Dtype) == 2 && own == CAFFE_FLOAT32))
    throw caffe::Error("depthwise_conv: weights are of the call's dtype, or float beside a half one");
  return {const_cast<void*>(data), own == CAFFE_FLOAT32};
}

inline bool aligned(const void* pointer, size_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

}  // namespace depthwise

#endif  // DEPTHWISE_SHAPE_H_
