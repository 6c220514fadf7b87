#include <vector>

#include "caffe/layers/blend_layer.hpp"
#include "caffe/util/blend_kernels.cuh"

namespace caffe {

template <typename Dtype>
__global__ void BlendForward(const int n, const Dtype share, const Dtype* a, const Dtype* b, Dtype* out) {
  CUDA_KERNEL_LOOP(i, n) { out[i] = share * a[i] + (1 - share) * b[i]; }
}

#define BLEND_LAUNCH(kernel, n, ...) \
  kernel<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, __VA_ARGS__)

template <typename Dtype>
void BlendLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int count = top[0]->count();
  // NOLINT_NEXT_LINE(whitespace/operators)
  BlendForward<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS>>>(
      count, share_, bottom[0]->gpu_data(), bottom[1]->gpu_data(), top[0]->mutable_gpu_data());
  BlendSum << < dim3(4, 2), 64, 64 * sizeof(Dtype) >> > (count, top[0]->gpu_data(), sum_.mutable_gpu_data());
  BLEND_LAUNCH(BlendForward, count, share_, sum_.gpu_data(), sum_.gpu_data(), sum_.mutable_gpu_diff());
  BlendSum<Dtype><<<1, 64, 0, mine_>>>(count, top[0]->gpu_data(), sum_.mutable_gpu_data());
  CUDA_POST_KERNEL_CHECK;
}

template <typename Dtype>
void BlendLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                     const vector<Blob<Dtype>*>& bottom) {
  blend_backward(top[0]->count(), top[0]->gpu_diff(), bottom[0]->mutable_gpu_diff());
}

INSTANTIATE_LAYER_GPU_FUNCS(BlendLayer);

}  // namespace caffe
