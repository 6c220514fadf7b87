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
  // Of packed sequences: [num, start_words()], the positions where one starts. NULL: a row is one sequence.
  const int32_t* starts;

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
  // Bit i % 32 of word i / 32 + 1 is position i's. The words before and behind them are 0, so that a window of
  // 32 positions is two words everywhere.
  __host__ __device__ int64_t start_words() const { return (width + 31) / 32 + 2; }
  __device__ __forceinline__ bool is_start(int64_t image, int64_t position) const {
    return starts[image * start_words() + position / 32 + 1] >> position % 32 & 1;
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

// What is done with a sum before it is stored. depthwise_conv.h has the same numbers.
enum Activation : int { kIdentity, kRelu, kRelu6, kSilu, kGelu };

// 2^x and 1 / x by one instruction of the GPU, to a unit or two in the last place. exp and / take five times as long,
// and a kernel at copy speed has no time for them.
__device__ __forceinline__ float power_of_2(float x) {
#ifdef __CUDA_ARCH__
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
#else
  return exp2f(x);
#endif
}
__device__ __forceinline__ float inverse(float x) {
#ifdef __CUDA_ARCH__
  asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(x));
  return x;
#else
  return 1 / x;
#endif
}

__device__ __forceinline__ float sigmoid_of(float x) { return inverse(1 + power_of_2(x * -1.44269504f)); }
__device__ __forceinline__ double sigmoid_of(double x) { return 1 / (1 + exp(-x)); }
// The normal distribution's share below x. For float by Abramowitz and Stegun's 7.1.26, to 2e-7.
__device__ __forceinline__ float normal_below(float x) {
  const float t = inverse(1 + 0.23164190f * fabsf(x));
  const float polynomial =
      t * (0.127414796f + t * (-0.142248368f + t * (0.710706871f + t * (-0.726576014f + t * 0.530702715f))));
  const float tail = polynomial * power_of_2(x * x * -0.72134752f);
  return x < 0 ? tail : 1 - tail;
}
__device__ __forceinline__ double normal_below(double x) { return 0.5 * (1 + erf(x * 0.7071067811865476)); }

// Replaces each value by the activation of it. NaN stays NaN. All threads take the same branch, mostly the first.
template <typename Value>
__device__ __forceinline__ void activate(Value* values, int64_t count, int activation) {
  if (__builtin_expect(activation == kIdentity, 1)) return;
  const auto each = [=](auto of) {
#pragma unroll
    for (int64_t i = 0; i < count; ++i) values[i] = of(values[i]);
  };
  if (activation == kRelu) each([](Value x) { return x < 0 ? Value(0) : x; });
  if (activation == kRelu6) each([](Value x) { return x < 0 ? Value(0) : x > 6 ? Value(6) : x; });
  if (activation == kSilu) each([](Value x) { return x * sigmoid_of(x); });
  if (activation == kGelu) each([](Value x) { return x * normal_below(x); });
}

// Its derivative, as torch has it where there are two.
template <typename Value>
__device__ __forceinline__ Value activation_slope(Value x, int activation) {
  if (activation == kRelu) return x <= 0 ? Value(0) : Value(1);
  if (activation == kRelu6) return x <= 0 || x >= 6 ? Value(0) : Value(1);
  if (activation == kSilu) {
    const Value s = sigmoid_of(x);
    return s * (1 + x * (1 - s));
  }
  return normal_below(x) + x * Value(0.3989422804014327) * exp(Value(-0.5) * x * x);
}

// How a forward begins a sum, and what it does with it at the end.
template <typename Dtype>
struct Epilogue {
  using Value = caffe::accumulate_t<Dtype>;
  Parameters<Dtype> bias;
  int activation;

  __device__ __forceinline__ Value start(int64_t channel) const {
    return bias ? Value(bias[channel]) : Value(0);
  }
  template <int N>
  __device__ __forceinline__ void finish(Value (&values)[N]) const {
    activate(values, N, activation);
  }
  template <int M, int N>
  __device__ __forceinline__ void finish(Value (&values)[M][N]) const {
    activate(values[0], M * N, activation);
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
