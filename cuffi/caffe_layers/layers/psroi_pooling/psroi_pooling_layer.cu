#include <cmath>
#include <vector>

#include "caffe/layers/psroi_pooling_bin.hpp"
#include "caffe/layers/psroi_pooling_layer.hpp"
#include "caffe/util/math_functions.hpp"

namespace caffe {

// A block of the forward has a few channels of many regions: its threads read few score maps, which stay in the cache.
const int kPSROIChannels = 4;
const int kPSROIRegions = 64;

template <typename Dtype>
__global__ void PSROIPoolingForward(const int channel_blocks, const int num_regions, const Dtype* scores,
                                    const int num_images, const Dtype* regions, const double spatial_scale,
                                    const int channels, const int height, const int width,
                                    const int group_size, Dtype* top) {
  const int c = blockIdx.x % channel_blocks * kPSROIChannels + threadIdx.x % kPSROIChannels;
  const int r = blockIdx.x / channel_blocks * kPSROIRegions + threadIdx.x / kPSROIChannels;
  if (c >= channels || r >= num_regions) return;
  const Dtype* region = regions + r * 5;
  const PSROISpan y(region[2], region[4], spatial_scale, c / group_size % group_size, group_size, height);
  const PSROISpan x(region[1], region[3], spatial_scale, c % group_size, group_size, width);
  const int image = PSROIImage(region);
  Dtype sum = 0;
  if (image >= 0 && image < num_images) {
    const Dtype* plane = scores + (image * channels + c) * height * width;
    for (int h = y.begin; h < y.end; ++h) {
      for (int w = x.begin; w < x.end; ++w) sum += plane[h * width + w];
    }
  } else {
    sum = NAN;  // a kernel cannot raise an error, and must not read outside
  }
  const int pixels = (y.end - y.begin) * (x.end - x.begin);
  top[r * channels + c] = pixels > 0 ? sum / pixels : Dtype(0);
}

template <typename Dtype>
void PSROIPoolingLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom,
                                           const vector<Blob<Dtype>*>& top) {
  if (top[0]->count() == 0) return;
  const int num_regions = bottom[1]->shape(0);
  const int channel_blocks = (channels_ + kPSROIChannels - 1) / kPSROIChannels;
  const int blocks = channel_blocks * ((num_regions + kPSROIRegions - 1) / kPSROIRegions);
  // NOLINT_NEXT_LINE(whitespace/operators)
  PSROIPoolingForward<Dtype><<<blocks, kPSROIChannels * kPSROIRegions>>>(
      channel_blocks, num_regions, bottom[0]->gpu_data(), bottom[0]->shape(0), bottom[1]->gpu_data(),
      spatial_scale_, channels_, height_, width_, group_size_, top[0]->mutable_gpu_data());
  CUDA_POST_KERNEL_CHECK;
}

// A block of the backward computes a tile of a score map, at most 64 x 64 pixels, in shared memory. Four threads
// share a row: each of them has every fourth pixel.
const int kPSROITile = 64;
const int kPSROILanes = 4;
const int kPSROIThreads = kPSROITile * kPSROILanes;
const int kPSROIPitch = kPSROITile + kPSROILanes;  // so that the rows of a warp are in different banks
const int kPSROIStaged = 512;                      // regions whose bins are in shared memory at a time
const int kPSROIBits = 32;                         // regions that a word of marks has

// The tile's pixels in a region's bin.
struct PSROIBin {
  int first_row, end_row, begin, end;
};

template <typename Dtype>
__device__ inline PSROIBin PSROIBinOf(const Dtype* region, const double spatial_scale, const int c,
                                      const int height, const int width, const int group_size,
                                      const int first_row, const int first_column, int* pixels) {
  const PSROISpan y(region[2], region[4], spatial_scale, c / group_size % group_size, group_size, height);
  const PSROISpan x(region[1], region[3], spatial_scale, c % group_size, group_size, width);
  *pixels = (y.end - y.begin) * (x.end - x.begin);
  const PSROIBin bin = {max(y.begin - first_row, 0), min(y.end - first_row, kPSROITile),
                        max(x.begin - first_column, 0), min(x.end - first_column, kPSROITile)};
  return bin;
}

// Only one bin of each region reads a score map. A block computes each region's bin once, and marks it at the rows that
// it has. A row's threads go through the regions that are marked there, and add a bin's share to their pixels of the
// row. Each pixel belongs to one thread: its sum has the regions' order, and it is written to memory once.
template <typename Dtype>
__global__ void PSROIPoolingBackward(const int tiles_down, const int tiles_across, const int num_regions,
                                     const Dtype* regions, const double spatial_scale, const int channels,
                                     const int height, const int width, const int group_size,
                                     const Dtype* top_diff, Dtype* scores_diff) {
  __shared__ int begins[kPSROIStaged], ends[kPSROIStaged];
  __shared__ Dtype shares[kPSROIStaged];
  __shared__ unsigned int marks[kPSROIStaged / kPSROIBits * kPSROITile];
  __shared__ Dtype sums[kPSROITile * kPSROIPitch];
  const int map = blockIdx.x / (tiles_down * tiles_across);
  const int first_row = blockIdx.x / tiles_across % tiles_down * kPSROITile;
  const int first_column = blockIdx.x % tiles_across * kPSROITile;
  const int image = map / channels, c = map % channels;
  const int row = threadIdx.x / kPSROILanes, lane = threadIdx.x % kPSROILanes;
  const bool has_row = first_row + row < height;
  Dtype* own = sums + row * kPSROIPitch;
  for (int w = lane; w < kPSROITile; w += kPSROILanes) own[w] = 0;
  for (int first = 0; first < num_regions; first += kPSROIStaged) {
    const int here = min(kPSROIStaged, num_regions - first);
    const int words = (here + kPSROIBits - 1) / kPSROIBits;
    for (int i = threadIdx.x; i < words * kPSROITile; i += kPSROIThreads) marks[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < here; i += kPSROIThreads) {
      const Dtype* region = regions + (first + i) * 5;
      if (PSROIImage(region) != image) continue;
      int pixels;
      const PSROIBin bin =
          PSROIBinOf(region, spatial_scale, c, height, width, group_size, first_row, first_column, &pixels);
      if (bin.begin >= bin.end) continue;
      begins[i] = bin.begin, ends[i] = bin.end;
      shares[i] = top_diff[(first + i) * channels + c] / pixels;
      for (int r = bin.first_row; r < bin.end_row; ++r)
        atomicOr(marks + i / kPSROIBits * kPSROITile + r, 1u << i % kPSROIBits);
    }
    __syncthreads();
    for (int word = 0; has_row && word < words; ++word) {
      for (unsigned int left = marks[word * kPSROITile + row]; left != 0; left &= left - 1) {
        const int i = word * kPSROIBits + __ffs(left) - 1, begin = begins[i], end = ends[i];
        // The first of this thread's pixels that is not before the bin.
        const int from = begin + ((lane - begin) & (kPSROILanes - 1));
        for (int w = from; w < end; w += kPSROILanes) own[w] += shares[i];
      }
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < kPSROITile * kPSROITile; i += kPSROIThreads) {
    const int h = first_row + i / kPSROITile, w = first_column + i % kPSROITile;
    if (h < height && w < width)
      scores_diff[(map * height + h) * width + w] = sums[i / kPSROITile * kPSROIPitch + i % kPSROITile];
  }
}

template <typename Dtype>
void PSROIPoolingLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top,
                                            const vector<bool>& propagate_down,
                                            const vector<Blob<Dtype>*>& bottom) {
  if (propagate_down[1]) caffe_gpu_set(bottom[1]->count(), Dtype(0), bottom[1]->mutable_gpu_diff());
  if (!propagate_down[0] || bottom[0]->count() == 0) return;
  const int tiles_down = (height_ + kPSROITile - 1) / kPSROITile;
  const int tiles_across = (width_ + kPSROITile - 1) / kPSROITile;
  const int blocks = bottom[0]->shape(0) * channels_ * tiles_down * tiles_across;
  // NOLINT_NEXT_LINE(whitespace/operators)
  PSROIPoolingBackward<Dtype><<<blocks, kPSROIThreads>>>(
      tiles_down, tiles_across, bottom[1]->shape(0), bottom[1]->gpu_data(), spatial_scale_, channels_,
      height_, width_, group_size_, top[0]->gpu_diff(), bottom[0]->mutable_gpu_diff());
  CUDA_POST_KERNEL_CHECK;
}

INSTANTIATE_LAYER_GPU_FUNCS(PSROIPoolingLayer);

}  // namespace caffe
