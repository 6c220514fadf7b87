#include <algorithm>
#include <vector>

#include "caffe/layers/normalize_layer.hpp"

namespace caffe {

// A block's threads are columns of positions and rows of channels. So a warp reads neighbours, and even an
// image of few positions has enough warps to hide the waits for memory.
const int kNormalizeColumns = 32;
const int kNormalizeRows = 16;

// Adds up `value` over the rows of a block. Each thread gets the sum of its column.
template <typename Dtype>
__device__ inline Dtype NormalizeColumnSum(const Dtype value, Dtype* shared) {
  const int at = threadIdx.y * kNormalizeColumns + threadIdx.x;
  __syncthreads();  // all threads have read the previous sum
  shared[at] = value;
  for (int half = kNormalizeRows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half) shared[at] += shared[at + half * kNormalizeColumns];
  }
  __syncthreads();
  return shared[threadIdx.x];
}

// The same over a whole block: one row of CAFFE_CUDA_NUM_THREADS threads.
template <typename Dtype>
__device__ inline Dtype NormalizeBlockSum(const Dtype value, Dtype* shared) {
  __syncthreads();
  shared[threadIdx.x] = value;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  __syncthreads();
  return shared[0];
}

// -------------------------------------------------------------------------- a norm per position

// A block takes 32 positions. positions = num * spatial.
template <typename Dtype>
__global__ void NormalizePositions(const int positions, const int channels, const int spatial,
                                   const bool channel_shared, const Dtype eps, const Dtype* scale,
                                   const Dtype* x, const Dtype* top_diff, Dtype* inverse_norm, Dtype* dot) {
  __shared__ Dtype shared[kNormalizeColumns * kNormalizeRows];
  const int position = blockIdx.x * kNormalizeColumns + threadIdx.x;
  Dtype squares = 0, products = 0;
  if (position < positions) {
    const int first = position / spatial * channels * spatial + position % spatial;
    for (int c = threadIdx.y; c < channels; c += kNormalizeRows) {
      const Dtype value = x[first + c * spatial];
      squares += value * value;
      if (top_diff) products += scale[channel_shared ? 0 : c] * top_diff[first + c * spatial] * value;
    }
  }
  squares = NormalizeColumnSum(squares, shared);
  products = NormalizeColumnSum(products, shared);
  if (position < positions && threadIdx.y == 0) {
    inverse_norm[position] = 1 / sqrt(squares + eps);
    if (top_diff) dot[position] = products;
  }
}

// ----------------------------------------------------------------------------- a norm per image

// A block takes one chunk of an image. dim = channels * spatial.
template <typename Dtype>
__global__ void NormalizeChunks(const int dim, const int chunks, const int spatial, const bool channel_shared,
                                const Dtype* scale, const Dtype* x, const Dtype* top_diff,
                                Dtype* chunk_squares, Dtype* chunk_dots) {
  __shared__ Dtype shared[CAFFE_CUDA_NUM_THREADS];
  const int first = blockIdx.x / chunks * dim;
  Dtype squares = 0, products = 0;
  for (int i = blockIdx.x % chunks * blockDim.x + threadIdx.x; i < dim; i += chunks * blockDim.x) {
    const Dtype value = x[first + i];
    squares += value * value;
    if (top_diff) products += scale[channel_shared ? 0 : i / spatial] * top_diff[first + i] * value;
  }
  squares = NormalizeBlockSum(squares, shared);
  products = NormalizeBlockSum(products, shared);
  if (threadIdx.x == 0) {
    chunk_squares[blockIdx.x] = squares;
    if (top_diff) chunk_dots[blockIdx.x] = products;
  }
}

// A block takes an image.
template <typename Dtype>
__global__ void NormalizeImages(const int chunks, const Dtype eps, const Dtype* chunk_squares,
                                const Dtype* chunk_dots, Dtype* inverse_norm, Dtype* dot) {
  __shared__ Dtype shared[CAFFE_CUDA_NUM_THREADS];
  Dtype squares = 0, products = 0;
  for (int i = threadIdx.x; i < chunks; i += blockDim.x) {
    squares += chunk_squares[blockIdx.x * chunks + i];
    if (chunk_dots) products += chunk_dots[blockIdx.x * chunks + i];
  }
  squares = NormalizeBlockSum(squares, shared);
  products = NormalizeBlockSum(products, shared);
  if (threadIdx.x == 0) {
    inverse_norm[blockIdx.x] = 1 / sqrt(squares + eps);
    if (chunk_dots) dot[blockIdx.x] = products;
  }
}

template <typename Dtype>
void NormalizeLayer<Dtype>::Reduce_gpu(const Dtype* bottom, const Dtype* top_diff) {
  const Dtype* scale = this->blobs_[0]->gpu_data();
  Dtype* inverse_norm = inverse_norm_.mutable_gpu_data();
  Dtype* dot = top_diff ? dot_.mutable_gpu_data() : NULL;
  if (across_spatial_) {
    // NOLINT_NEXT_LINE(whitespace/operators)
    NormalizeChunks<Dtype><<<num_ * chunks_, CAFFE_CUDA_NUM_THREADS>>>(
        channels_ * spatial_, chunks_, spatial_, channel_shared_, scale, bottom, top_diff,
        chunk_squares_.mutable_gpu_data(), top_diff ? chunk_dots_.mutable_gpu_data() : NULL);
    CUDA_POST_KERNEL_CHECK;
    // NOLINT_NEXT_LINE(whitespace/operators)
    NormalizeImages<Dtype><<<num_, CAFFE_CUDA_NUM_THREADS>>>(chunks_, eps_, chunk_squares_.gpu_data(),
                                                             top_diff ? chunk_dots_.gpu_data() : NULL,
                                                             inverse_norm, dot);
  } else {
    const int positions = num_ * spatial_;
    // NOLINT_NEXT_LINE(whitespace/operators)
    NormalizePositions<Dtype><<<(positions + kNormalizeColumns - 1) / kNormalizeColumns,
                                dim3(kNormalizeColumns, kNormalizeRows)>>>(
        positions, channels_, spatial_, channel_shared_, eps_, scale, bottom, top_diff, inverse_norm, dot);
  }
  CUDA_POST_KERNEL_CHECK;
}

// ---------------------------------------------------------------------------------- forward

template <typename Dtype>
__global__ void NormalizeForward(const int n, const int channels, const int spatial,
                                 const bool across_spatial, const bool channel_shared, const Dtype* scale,
                                 const Dtype* x, const Dtype* inverse_norm, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    const int image = i / spatial / channels;
    const int group = across_spatial ? image : image * spatial + i % spatial;
    y[i] = scale[channel_shared ? 0 : i / spatial % channels] * x[i] * inverse_norm[group];
  }
}

template <typename Dtype>
void NormalizeLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int count = bottom[0]->count();
  if (count == 0) return;
  Reduce_gpu(bottom[0]->gpu_data(), NULL);
  // NOLINT_NEXT_LINE(whitespace/operators)
  NormalizeForward<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS>>>(
      count, channels_, spatial_, across_spatial_, channel_shared_, this->blobs_[0]->gpu_data(),
      bottom[0]->gpu_data(), inverse_norm_.gpu_data(), top[0]->mutable_gpu_data());
  CUDA_POST_KERNEL_CHECK;
}

// --------------------------------------------------------------------------------- backward

template <typename Dtype>
__global__ void NormalizeBackward(const int n, const int channels, const int spatial,
                                  const bool across_spatial, const bool channel_shared, const Dtype* scale,
                                  const Dtype* x, const Dtype* top_diff, const Dtype* inverse_norm,
                                  const Dtype* dot, Dtype* x_diff) {
  CUDA_KERNEL_LOOP(i, n) {
    const int image = i / spatial / channels;
    const int group = across_spatial ? image : image * spatial + i % spatial;
    const Dtype inverse = inverse_norm[group];
    const Dtype channel_scale = scale[channel_shared ? 0 : i / spatial % channels];
    x_diff[i] = inverse * (channel_scale * top_diff[i] - x[i] * inverse * dot[group] * inverse);
  }
}

// A block takes a channel, and adds up top_diff * x / norm over all images.
template <typename Dtype>
__global__ void NormalizeChannelDiff(const int num, const int channels, const int spatial,
                                     const bool across_spatial, const Dtype* x, const Dtype* top_diff,
                                     const Dtype* inverse_norm, Dtype* channel_diff) {
  __shared__ Dtype shared[CAFFE_CUDA_NUM_THREADS];
  Dtype sum = 0;
  for (int i = threadIdx.x; i < num * spatial; i += blockDim.x) {
    const int image = i / spatial;
    const int at = (image * channels + blockIdx.x) * spatial + i % spatial;
    sum += top_diff[at] * x[at] * inverse_norm[across_spatial ? image : i];
  }
  sum = NormalizeBlockSum(sum, shared);
  if (threadIdx.x == 0) channel_diff[blockIdx.x] = sum;
}

// Adds to the parameter's diff, as Caffe does for all parameters.
template <typename Dtype>
__global__ void NormalizeAddChannelDiffs(const int channels, const Dtype* channel_diff, Dtype* scale_diff) {
  CUDA_KERNEL_LOOP(c, channels) {
    scale_diff[c] += channel_diff[c];
  }
}

template <typename Dtype>
__global__ void NormalizeAddSharedDiff(const int channels, const Dtype* channel_diff, Dtype* scale_diff) {
  __shared__ Dtype shared[CAFFE_CUDA_NUM_THREADS];
  Dtype sum = 0;
  for (int c = threadIdx.x; c < channels; c += blockDim.x) sum += channel_diff[c];
  sum = NormalizeBlockSum(sum, shared);
  if (threadIdx.x == 0) scale_diff[0] += sum;
}

template <typename Dtype>
void NormalizeLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                         const vector<Blob<Dtype>*>& bottom) {
  const int count = bottom[0]->count();
  if (count == 0) return;
  const Dtype* x = bottom[0]->gpu_data();
  const Dtype* top_diff = top[0]->gpu_diff();
  Reduce_gpu(x, top_diff);
  if (propagate_down[0]) {
    // NOLINT_NEXT_LINE(whitespace/operators)
    NormalizeBackward<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS>>>(
        count, channels_, spatial_, across_spatial_, channel_shared_, this->blobs_[0]->gpu_data(), x,
        top_diff, inverse_norm_.gpu_data(), dot_.gpu_data(), bottom[0]->mutable_gpu_diff());
    CUDA_POST_KERNEL_CHECK;
  }
  if (this->param_propagate_down_[0]) {
    Dtype* channel_diff = channel_diff_.mutable_gpu_data();
    Dtype* scale_diff = this->blobs_[0]->mutable_gpu_diff();
    // NOLINT_NEXT_LINE(whitespace/operators)
    NormalizeChannelDiff<Dtype><<<channels_, CAFFE_CUDA_NUM_THREADS>>>(
        num_, channels_, spatial_, across_spatial_, x, top_diff, inverse_norm_.gpu_data(), channel_diff);
    CUDA_POST_KERNEL_CHECK;
    if (channel_shared_) {
      // NOLINT_NEXT_LINE(whitespace/operators)
      NormalizeAddSharedDiff<Dtype><<<1, CAFFE_CUDA_NUM_THREADS>>>(channels_, channel_diff, scale_diff);
    } else {
      // NOLINT_NEXT_LINE(whitespace/operators)
      NormalizeAddChannelDiffs<Dtype>
          <<<CAFFE_GET_BLOCKS(channels_), CAFFE_CUDA_NUM_THREADS>>>(channels_, channel_diff, scale_diff);
    }
    CUDA_POST_KERNEL_CHECK;
  }
}

INSTANTIATE_LAYER_GPU_FUNCS(NormalizeLayer);

}  // namespace caffe
