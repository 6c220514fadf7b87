// Two in, one out, as a Caffe layer has it.
#include "caffe_cuda_macro.h"

template <typename Dtype>
__global__ void MultKernel(const int n, const Dtype* a, const Dtype* b, Dtype* out) {
  CUDA_KERNEL_LOOP(index, n) {
    out[index] = a[index] * b[index];
  }
}

extern "C" int mult_forward(const void* a, const void* b, void* out, int64_t count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    MultKernel<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        static_cast<int>(count), static_cast<const Dtype*>(a), static_cast<const Dtype*>(b),
        static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}
