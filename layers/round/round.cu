// Differentiable round: top = 1 where bottom >= 0.5, else 0. Its gradient is top_diff unchanged
// (straight-through), so backward computes nothing.
#include "caffe_cuda_macro.h"

template <typename Dtype>
__global__ void round_forward_kernel(const int64_t count, const Dtype* bottom, Dtype* top) {
  CUDA_KERNEL_LOOP(i, count) {
    top[i] = bottom[i] >= Dtype(0.5) ? Dtype(1) : Dtype(0);
  }
}

extern "C" int round_forward(const void* bottom, void* top, int64_t count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    round_forward_kernel<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(bottom), static_cast<Dtype*>(top));
  });
  return CAFFE_LAUNCH_STATUS();
}
