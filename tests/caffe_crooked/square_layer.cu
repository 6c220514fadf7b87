#include <vector>

#include "square_layer.hpp"

namespace caffe {

template <typename Dtype>
__global__ void SquareForward(const int n, const Dtype more, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = x[i] * x[i] + more;
  }
}

template <typename Dtype>
void SquareLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (is("SquareOfSize") || is("SquareInFloat") || is("SquareWithBlob") || is("SquareOfFew") ||
      has_regions() || is("SquareInSteps") || is("SquareLeaving") || is("SquareUnpooling") ||
      is("SquareOfClasses") || is("SquareOfLogs") || is("SquareOfTurns") || is("SquareKeeping"))
    return Forward_cpu(bottom, top);
  const int count = top[0]->count();
  SquareForward<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS>>>(
      count, is("SquareTorn") ? 0.25 : 0, bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
  CUDA_POST_KERNEL_CHECK;
}

template <typename Dtype>
__global__ void SquareBackward(const int n, const Dtype factor, const Dtype* x, const Dtype* top_diff,
                               Dtype* bottom_diff) {
  CUDA_KERNEL_LOOP(i, n) {
    bottom_diff[i] = factor * x[i] * top_diff[i];
  }
}

// Each thread sets the diff of two elements to what one of them should have, on the way.
template <typename Dtype>
__global__ void SquareScatter(const int n, const Dtype* x, const Dtype* top_diff, Dtype* bottom_diff) {
  CUDA_KERNEL_LOOP(i, n) {
    bottom_diff[i] = 2 * x[i] * top_diff[i];
    if (i + 1 < n) bottom_diff[i + 1] = 0;
  }
}

template <typename Dtype>
void SquareLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                      const vector<Blob<Dtype>*>& bottom) {
  CheckPropagation(propagate_down);
  if (is("SquareScatters")) {
    SquareScatter<Dtype><<<CAFFE_GET_BLOCKS(top[0]->count()), CAFFE_CUDA_NUM_THREADS>>>(
        top[0]->count(), bottom[0]->gpu_data(), top[0]->gpu_diff(), bottom[0]->mutable_gpu_diff());
    CUDA_POST_KERNEL_CHECK;
    return;
  }
  if (!is("SquareTornBack") && !is("SquareByKernels") && !is("SquareInWords"))
    return Backward_cpu(top, propagate_down, bottom);
  const int count = top[0]->count();
  SquareBackward<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS>>>(
      count, is("SquareTornBack") ? 1.99 : 2, bottom[0]->gpu_data(), top[0]->gpu_diff(),
      bottom[0]->mutable_gpu_diff());
  CUDA_POST_KERNEL_CHECK;
}

INSTANTIATE_LAYER_GPU_FUNCS(SquareLayer);

}  // namespace caffe
