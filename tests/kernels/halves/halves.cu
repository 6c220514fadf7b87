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
