// Leaky ReLU: top = bottom where bottom > 0, else slope * bottom.
#include "caffe_cuda_macro.h"

template <typename Dtype>
__global__ void leaky_forward_kernel(const int64_t count, const Dtype* bottom, Dtype* top,
                                     const caffe::accumulate_t<Dtype> slope) {
  using Acc = caffe::accumulate_t<Dtype>;
  CUDA_KERNEL_LOOP(i, count) {
    const Acc x = bottom[i];
    top[i] = x > 0 ? x : slope * x;
  }
}

template <typename Dtype>
__global__ void leaky_backward_kernel(const int64_t count, const Dtype* bottom, const Dtype* top_diff,
                                      Dtype* bottom_diff, const caffe::accumulate_t<Dtype> slope) {
  using Acc = caffe::accumulate_t<Dtype>;
  CUDA_KERNEL_LOOP(i, count) {
    const Acc diff = top_diff[i];
    bottom_diff[i] = Acc(bottom[i]) > 0 ? diff : slope * diff;
  }
}

extern "C" int leaky_forward(const void* bottom, void* top, int64_t count, double slope, int dtype,
                             void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    leaky_forward_kernel<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
        count, static_cast<const Dtype*>(bottom), static_cast<Dtype*>(top), slope);
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int leaky_backward(const void* bottom, const void* top_diff, void* bottom_diff, int64_t count,
                              double slope, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    leaky_backward_kernel<Dtype>
        <<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
            count, static_cast<const Dtype*>(bottom), static_cast<const Dtype*>(top_diff),
            static_cast<Dtype*>(bottom_diff), slope);
  });
  return CAFFE_LAUNCH_STATUS();
}
