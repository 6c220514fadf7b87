#include <cmath>
#include <vector>

#include "caffe/layers/psroi_pooling_bin.hpp"
#include "caffe/layers/psroi_pooling_layer.hpp"
#include "caffe/util/math_functions.hpp"

namespace caffe {

// The number of threads that share an output. A memory access fetches 8 neighbouring floats anyway, and each
// output reads another score map.
const int kPSROITeam = 8;
const int kPSROITeams = CAFFE_CUDA_NUM_THREADS / kPSROITeam;  // outputs of a block

template <typename Dtype>
__global__ void PSROIPoolingForward(const int n, const Dtype* scores, const int num_images,
                                    const Dtype* regions, const double spatial_scale, const int channels,
                                    const int height, const int width, const int group_size, Dtype* top) {
  __shared__ Dtype shared[CAFFE_CUDA_NUM_THREADS];
  const int output = blockIdx.x * kPSROITeams + threadIdx.x / kPSROITeam;
  const int lane = threadIdx.x % kPSROITeam;
  Dtype sum = 0;
  int pixels = 0;
  if (output < n) {
    const int c = output % channels;
    const Dtype* region = regions + output / channels * 5;
    const PSROISpan y(region[2], region[4], spatial_scale, c / group_size % group_size, group_size, height);
    const PSROISpan x(region[1], region[3], spatial_scale, c % group_size, group_size, width);
    const int image = PSROIImage(region);
    if (image >= 0 && image < num_images) {
      const Dtype* plane = scores + (image * channels + c) * height * width;
      for (int h = y.begin; h < y.end; ++h) {
        for (int w = x.begin + lane; w < x.end; w += kPSROITeam) sum += plane[h * width + w];
      }
    } else {
      sum = NAN;  // a kernel cannot raise an error, and must not read outside
    }
    pixels = (y.end - y.begin) * (x.end - x.begin);
  }
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (lane == 0 && output < n) {
    for (int i = 1; i < kPSROITeam; ++i) sum += shared[threadIdx.x + i];
    top[output] = pixels > 0 ? sum / pixels : Dtype(0);
  }
}

template <typename Dtype>
void PSROIPoolingLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom,
                                           const vector<Blob<Dtype>*>& top) {
  const int count = top[0]->count();
  if (count == 0) return;
  // NOLINT_NEXT_LINE(whitespace/operators)
  PSROIPoolingForward<Dtype><<<(count + kPSROITeams - 1) / kPSROITeams, CAFFE_CUDA_NUM_THREADS>>>(
      count, bottom[0]->gpu_data(), bottom[0]->shape(0), bottom[1]->gpu_data(), spatial_scale_, channels_,
      height_, width_, group_size_, top[0]->mutable_gpu_data());
  CUDA_POST_KERNEL_CHECK;
}

struct __align__(16) PSROIBin {
  int row, column, rows, columns;

  __device__ inline bool covers(int h, int w) const {
    return static_cast<unsigned>(h - row) < static_cast<unsigned>(rows) &&
           static_cast<unsigned>(w - column) < static_cast<unsigned>(columns);
  }
};

// Only one bin of each region reads a score map. So a pixel's thread goes through all regions, and tests
// whether the bin covers the pixel. This needs no atomics: the sum has a fixed order, and each pixel is
// written once. A block computes each region's bin once, for as many regions at a time as it has threads.
template <typename Dtype>
__global__ void PSROIPoolingBackward(const int blocks_per_map, const int num_regions, const Dtype* regions,
                                     const double spatial_scale, const int channels, const int height,
                                     const int width, const int group_size, const Dtype* top_diff,
                                     Dtype* scores_diff) {
  __shared__ PSROIBin bins[CAFFE_CUDA_NUM_THREADS];
  __shared__ Dtype shares[CAFFE_CUDA_NUM_THREADS];
  const int map = blockIdx.x / blocks_per_map;
  const int pixel = blockIdx.x % blocks_per_map * blockDim.x + threadIdx.x;
  const int image = map / channels, c = map % channels;
  const int h = pixel / width, w = pixel % width;
  Dtype sum = 0;
  for (int first = 0; first < num_regions; first += blockDim.x) {
    const int r = first + threadIdx.x;
    PSROIBin bin = {0, 0, 0, 0};
    if (r < num_regions && PSROIImage(regions + r * 5) == image) {
      const Dtype* region = regions + r * 5;
      const PSROISpan y(region[2], region[4], spatial_scale, c / group_size % group_size, group_size, height);
      const PSROISpan x(region[1], region[3], spatial_scale, c % group_size, group_size, width);
      bin.row = y.begin;
      bin.column = x.begin;
      bin.rows = y.end - y.begin;
      bin.columns = x.end - x.begin;
      shares[threadIdx.x] = top_diff[r * channels + c] / (bin.rows * bin.columns);
    }
    bins[threadIdx.x] = bin;
    __syncthreads();
    const int here = min(static_cast<int>(blockDim.x), num_regions - first);
    for (int i = 0; i < here; ++i) {
      if (bins[i].covers(h, w)) sum += shares[i];
    }
    __syncthreads();
  }
  if (pixel < height * width) scores_diff[map * height * width + pixel] = sum;
}

template <typename Dtype>
void PSROIPoolingLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top,
                                            const vector<bool>& propagate_down,
                                            const vector<Blob<Dtype>*>& bottom) {
  if (propagate_down[1]) caffe_gpu_set(bottom[1]->count(), Dtype(0), bottom[1]->mutable_gpu_diff());
  if (!propagate_down[0] || bottom[0]->count() == 0) return;
  const int blocks_per_map = (height_ * width_ + CAFFE_CUDA_NUM_THREADS - 1) / CAFFE_CUDA_NUM_THREADS;
  // NOLINT_NEXT_LINE(whitespace/operators)
  PSROIPoolingBackward<Dtype><<<bottom[0]->shape(0) * channels_ * blocks_per_map, CAFFE_CUDA_NUM_THREADS>>>(
      blocks_per_map, bottom[1]->shape(0), bottom[1]->gpu_data(), spatial_scale_, channels_, height_, width_,
      group_size_, top[0]->gpu_diff(), bottom[0]->mutable_gpu_diff());
  CUDA_POST_KERNEL_CHECK;
}

INSTANTIATE_LAYER_GPU_FUNCS(PSROIPoolingLayer);

}  // namespace caffe
