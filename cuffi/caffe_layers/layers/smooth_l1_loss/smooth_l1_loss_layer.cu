#include <algorithm>
#include <vector>

#include "caffe/layers/smooth_l1_loss_layer.hpp"

namespace caffe {

template <typename Dtype>
__device__ inline Dtype SmoothL1(const Dtype x, const Dtype sigma2) {
  const Dtype size = fabs(x);
  return size * sigma2 < 1 ? Dtype(0.5) * sigma2 * x * x : size - Dtype(0.5) / sigma2;
}

template <typename Dtype>
__device__ inline Dtype SmoothL1Slope(const Dtype x, const Dtype sigma2) {
  return fabs(x) * sigma2 < 1 ? sigma2 * x : Dtype((x > 0) - (x < 0));
}

// The sum of the block's values for thread 0, and 0 for the others, for whom it may not be ready.
template <typename Dtype>
__device__ inline Dtype SmoothL1BlockSum(const Dtype value, Dtype* shared) {
  shared[threadIdx.x] = value;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  return threadIdx.x == 0 ? shared[0] : Dtype(0);
}

template <typename Dtype>
__global__ void SmoothL1LossBlockSums(const int n, const Dtype* prediction, const Dtype* target,
                                      const Dtype* inside, const Dtype* outside, const Dtype sigma2,
                                      Dtype* block_sums) {
  __shared__ Dtype shared[CAFFE_CUDA_NUM_THREADS];
  Dtype sum = 0;
  CUDA_KERNEL_LOOP(i, n) {
    const Dtype difference = prediction[i] - target[i];
    const Dtype loss = SmoothL1(inside ? inside[i] * difference : difference, sigma2);
    sum += outside ? outside[i] * loss : loss;
  }
  sum = SmoothL1BlockSum(sum, shared);
  if (threadIdx.x == 0) block_sums[blockIdx.x] = sum;
}

template <typename Dtype>
__global__ void SmoothL1LossMean(const int blocks, const Dtype* block_sums, const int num, Dtype* loss) {
  __shared__ Dtype shared[CAFFE_CUDA_NUM_THREADS];
  Dtype sum = 0;
  CUDA_KERNEL_LOOP(i, blocks) {
    sum += block_sums[i];
  }
  sum = SmoothL1BlockSum(sum, shared);
  if (threadIdx.x == 0) loss[0] = sum / num;
}

template <typename Dtype>
void SmoothL1LossLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom,
                                           const vector<Blob<Dtype>*>& top) {
  const int count = bottom[0]->count();
  const int blocks = std::max(1, std::min(CAFFE_GET_BLOCKS(count), 512));
  block_sums_.Reshape(vector<int>(1, blocks));
  // NOLINT_NEXT_LINE(whitespace/operators)
  SmoothL1LossBlockSums<Dtype><<<blocks, CAFFE_CUDA_NUM_THREADS>>>(
      count, bottom[0]->gpu_data(), bottom[1]->gpu_data(), bottom.size() > 2 ? bottom[2]->gpu_data() : NULL,
      bottom.size() > 3 ? bottom[3]->gpu_data() : NULL, sigma2_, block_sums_.mutable_gpu_data());
  CUDA_POST_KERNEL_CHECK;
  // NOLINT_NEXT_LINE(whitespace/operators)
  SmoothL1LossMean<Dtype><<<1, CAFFE_CUDA_NUM_THREADS>>>(blocks, block_sums_.gpu_data(), bottom[0]->shape(0),
                                                         top[0]->mutable_gpu_data());
  CUDA_POST_KERNEL_CHECK;
}

// Reads top_diff on the device, because reading it on the host would wait for all earlier work.
template <typename Dtype>
__global__ void SmoothL1LossBackward(const int n, const Dtype* prediction, const Dtype* target,
                                     const Dtype* inside, const Dtype* outside, const Dtype sigma2,
                                     const Dtype* top_diff, const int num, Dtype* prediction_diff,
                                     Dtype* target_diff, Dtype* inside_diff, Dtype* outside_diff) {
  const Dtype scale = top_diff[0] / num;
  CUDA_KERNEL_LOOP(i, n) {
    const Dtype difference = prediction[i] - target[i];
    const Dtype x = inside ? inside[i] * difference : difference;
    const Dtype slope = scale * (outside ? outside[i] : Dtype(1)) * SmoothL1Slope(x, sigma2);
    const Dtype diff = inside ? inside[i] * slope : slope;
    if (prediction_diff) prediction_diff[i] = diff;
    if (target_diff) target_diff[i] = -diff;
    if (inside_diff) inside_diff[i] = difference * slope;
    if (outside_diff) outside_diff[i] = scale * SmoothL1(x, sigma2);
  }
}

template <typename Dtype>
void SmoothL1LossLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top,
                                            const vector<bool>& propagate_down,
                                            const vector<Blob<Dtype>*>& bottom) {
  const int count = bottom[0]->count();
  if (count == 0) return;
  Dtype* diffs[4];
  for (int i = 0; i < 4; ++i) {
    diffs[i] = i < bottom.size() && propagate_down[i] ? bottom[i]->mutable_gpu_diff() : NULL;
  }
  // NOLINT_NEXT_LINE(whitespace/operators)
  SmoothL1LossBackward<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS>>>(
      count, bottom[0]->gpu_data(), bottom[1]->gpu_data(), bottom.size() > 2 ? bottom[2]->gpu_data() : NULL,
      bottom.size() > 3 ? bottom[3]->gpu_data() : NULL, sigma2_, top[0]->gpu_diff(), bottom[0]->shape(0),
      diffs[0], diffs[1], diffs[2], diffs[3]);
  CUDA_POST_KERNEL_CHECK;
}

INSTANTIATE_LAYER_GPU_FUNCS(SmoothL1LossLayer);

}  // namespace caffe
