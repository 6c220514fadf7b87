// Sigmoid: top = 1 / (1 + e^-bottom). bottom_diff = top_diff * top * (1 - top), which does not need bottom.
#include "caffe_cuda_macro.h"

// For large negative x, exp(-x) is infinite, and the quotient is 0, which is right. So no branch is needed.
template <typename Acc>
__device__ inline Acc sigmoid_of(Acc x) {
  return Acc(1) / (Acc(1) + exp(-x));
}

template <typename Dtype>
__global__ void sigmoid_forward_kernel(const int64_t count, const Dtype* bottom, Dtype* top) {
  using Acc = caffe::accumulate_t<Dtype>;
  CUDA_KERNEL_LOOP(i, count) {
    top[i] = sigmoid_of<Acc>(bottom[i]);
  }
}

template <typename Dtype>
__global__ void sigmoid_backward_kernel(const int64_t count, const Dtype* top_diff, const Dtype* top_data,
                                        Dtype* bottom_diff) {
  using Acc = caffe::accumulate_t<Dtype>;
  CUDA_KERNEL_LOOP(i, count) {
    const Acc y = top_data[i];
    bottom_diff[i] = top_diff[i] * y * (Acc(1) - y);
  }
}

extern "C" int sigmoid_forward(const void* bottom, void* top, int64_t count, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    sigmoid_forward_kernel<Dtype>
        <<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
            count, static_cast<const Dtype*>(bottom), static_cast<Dtype*>(top));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int sigmoid_backward(const void* top_diff, const void* top_data, void* bottom_diff, int64_t count,
                                int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    sigmoid_backward_kernel<Dtype>
        <<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
            count, static_cast<const Dtype*>(top_diff), static_cast<const Dtype*>(top_data),
            static_cast<Dtype*>(bottom_diff));
  });
  return CAFFE_LAUNCH_STATUS();
}
