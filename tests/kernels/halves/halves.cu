#include "caffe_cuda_macro.h"

template <typename From, typename To>
__global__ void convert_kernel(const int64_t n, const From* bottom, To* top) {
  CUDA_KERNEL_LOOP(i, n) {
    top[i] = bottom[i];
  }
}

extern "C" int halves_decode(const void* bottom, float* top, int64_t count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    convert_kernel<Dtype, float>
        <<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
            count, static_cast<const Dtype*>(bottom), top);
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int halves_encode(const float* bottom, void* top, int64_t count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    convert_kernel<float, Dtype>
        <<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
            count, bottom, static_cast<Dtype*>(top));
  });
  return CAFFE_LAUNCH_STATUS();
}

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <device_launch_parameters.h>
#include <driver_types.h>
#include <vector_types.h>

// By CUDA's own half types, each result rounded: x + y, x - y, x * y, x / y, fma(x, y, x), the larger, x < y; and the
// same sum and fma in pairs.
template <typename Half, typename Pair>
__device__ void half_arithmetic(Half x, Half y, Half* top, Pair pair) {
  top[0] = x + y;
  top[1] = __hsub(x, y);
  top[2] = x * y;
  top[3] = __hdiv(x, y);
  top[4] = __hfma(x, y, x);
  top[5] = __hmax(x, y);
  top[6] = __hlt(x, y) ? x : y;
  Pair sum = __hadd2(pair, pair), fused = __hfma2(pair, pair, pair);
  top[7] = sum.y;
  top[8] = fused.x;
}
__global__ void half_kernel(const int64_t n, const __half* x, const __half* y, __half* top) {
  CUDA_KERNEL_LOOP(i, n) {
    half_arithmetic(x[i], y[i], top + 9 * i, __halves2half2(x[i], y[i]));
  }
}
__global__ void bfloat16_kernel(const int64_t n, const __nv_bfloat16* x, const __nv_bfloat16* y,
                                __nv_bfloat16* top) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  CUDA_KERNEL_LOOP(i, n) {
    half_arithmetic(x[i], y[i], top + 9 * i, __halves2bfloat162(x[i], y[i]));
  }
#endif
}
extern "C" int halves_cuda(const void* x, const void* y, void* top, int64_t count, int dtype, void* stream) {
  const int blocks = CAFFE_GET_BLOCKS(count);
  if (dtype == CAFFE_FLOAT16)
    half_kernel<<<blocks, CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const __half*>(x), static_cast<const __half*>(y), static_cast<__half*>(top));
  else
    bfloat16_kernel<<<blocks, CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const __nv_bfloat16*>(x), static_cast<const __nv_bfloat16*>(y),
        static_cast<__nv_bfloat16*>(top));
  return CAFFE_LAUNCH_STATUS();
}
