// One in, one out, as a Caffe layer has it: `const int n`, one element per turn of the loop.
#include "caffe_cuda_macro.h"

template <typename Dtype>
__global__ void ReLUKernel(const int n, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(index, n) {
    out[index] = in[index] > Dtype(0) ? in[index] : Dtype(0);
  }
}

extern "C" int relu_forward(const void* in, void* out, int64_t count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    ReLUKernel<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        static_cast<int>(count), static_cast<const Dtype*>(in), static_cast<Dtype*>(out));
  });
  return CAFFE_LAUNCH_STATUS();
}
