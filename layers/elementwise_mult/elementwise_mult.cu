// Elementwise product: top = a * b. Its gradients, top_diff * b and top_diff * a, are products, too, so this
// kernel computes forward, backward and all higher derivatives.
#include "caffe_cuda_macro.h"

template <typename Dtype>
__global__ void elementwise_mult_kernel(const int64_t count, const Dtype* a, const Dtype* b, Dtype* top) {
  CUDA_KERNEL_LOOP(i, count) {
    top[i] = a[i] * b[i];
  }
}

extern "C" int elementwise_mult_forward(const void* a, const void* b, void* top, int64_t count, int dtype,
                                        void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    elementwise_mult_kernel<Dtype>
        <<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
            count, static_cast<const Dtype*>(a), static_cast<const Dtype*>(b), static_cast<Dtype*>(top));
  });
  return CAFFE_LAUNCH_STATUS();
}
