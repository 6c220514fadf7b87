#include <algorithm>
#include <vector>

#include "caffe/layers/correlation_layer.hpp"

namespace caffe {

// A block has 32 x 8 threads. Each row is a warp, along x in memory. A thread computes 4 results, 8 rows
// apart, so that it uses each value from shared memory for 4 products.
const int kCorrelationColumns = 32;
const int kCorrelationRows = 8;
const int kCorrelationEach = 4;
const int kCorrelationResults = kCorrelationRows * kCorrelationEach;

// A block's shared memory: the usual size, and the most, which every GPU has.
const int kCorrelationUsualBytes = 16 << 10;
const int kCorrelationMostBytes = 48 << 10;

static inline int CorrelationDivideUp(int a, int b) { return (a + b - 1) / b; }

// A warp copies `count` values of a row to shared memory. Values outside the plane are 0.
template <typename Dtype>
__device__ inline void CorrelationLoadRow(const Dtype* plane, int y, int x, int height, int width, int count,
                                          Dtype* row) {
  const bool inside = y >= 0 && y < height;
  for (int i = threadIdx.x; i < count; i += kCorrelationColumns) {
    row[i] = inside && x + i >= 0 && x + i < width ? plane[y * width + x + i] : Dtype(0);
  }
}

// ---------------------------------------------------------------------------------- forward

// A block has 32 neighbouring patches of one line, and up to 32 displacements that differ only along x. In
// each step it loads `lines` lines of patches, of one channel each, from both images.
template <typename Dtype, bool subtract>
__global__ void CorrelationForward(const CorrelationSizes s, const int tiles, const int groups,
                                   const int lines, const int first_width, const int second_width,
                                   const Dtype* first, const Dtype* second, Dtype* top) {
  extern __shared__ double correlation_shared[];
  Dtype* first_lines = reinterpret_cast<Dtype*>(correlation_shared);
  Dtype* second_lines = first_lines + lines * first_width;

  int block = blockIdx.x;
  const int group = block % groups * kCorrelationResults;
  block /= groups;
  const int tile = block % tiles * kCorrelationColumns;
  block /= tiles;
  const int i = block % s.side;
  block /= s.side;
  const int y = block % s.top_height;
  const int n = block / s.top_height;

  const int row = s.max_displacement - s.pad + y * s.stride_1;
  const int column = s.max_displacement - s.pad + tile * s.stride_1;
  const int second_row = row + (i - s.radius) * s.stride_2;
  const int second_column = column + (group - s.radius) * s.stride_2;
  const int all_lines = s.channels * s.kernel_size;

  Dtype sums[kCorrelationEach] = {0};
  for (int begin = 0; begin < all_lines; begin += lines) {
    const int here = min(lines, all_lines - begin);
    for (int line = threadIdx.y; line < here; line += kCorrelationRows) {
      const int plane = (n * s.channels + (begin + line) / s.kernel_size) * s.height * s.width;
      const int k = (begin + line) % s.kernel_size;
      CorrelationLoadRow(first + plane, row + k, column, s.height, s.width, first_width,
                         first_lines + line * first_width);
      CorrelationLoadRow(second + plane, second_row + k, second_column, s.height, s.width, second_width,
                         second_lines + line * second_width);
    }
    __syncthreads();
    for (int line = 0; line < here; ++line) {
      const Dtype* a = first_lines + line * first_width + threadIdx.x * s.stride_1;
      const Dtype* b = second_lines + line * second_width + threadIdx.x * s.stride_1;
      for (int k = 0; k < s.kernel_size; ++k) {
#pragma unroll
        for (int e = 0; e < kCorrelationEach; ++e) {
          const Dtype other = b[k + (threadIdx.y + e * kCorrelationRows) * s.stride_2];
          sums[e] += subtract ? Dtype(fabs(a[k] - other)) : a[k] * other;
        }
      }
    }
    __syncthreads();
  }

  const int x = tile + threadIdx.x;
  for (int e = 0; e < kCorrelationEach; ++e) {
    const int j = group + threadIdx.y + e * kCorrelationRows;
    if (x < s.top_width && j < s.side) {
      top[((n * s.side * s.side + i * s.side + j) * s.top_height + y) * s.top_width + x] =
          sums[e] / s.patch_count;
    }
  }
}

template <typename Dtype>
void CorrelationLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom,
                                          const vector<Blob<Dtype>*>& top) {
  if (top[0]->count() == 0) return;
  const CorrelationSizes& s = sizes_;
  const int first_width = (kCorrelationColumns - 1) * s.stride_1 + s.kernel_size;
  const int second_width = first_width + (kCorrelationResults - 1) * s.stride_2;
  const int line_bytes = (first_width + second_width) * sizeof(Dtype);
  CHECK_LE(line_bytes, kCorrelationMostBytes) << "bytes of shared memory: the strides are too large";
  const int lines = std::max(1, std::min(kCorrelationUsualBytes / line_bytes, s.channels * s.kernel_size));
  const int tiles = CorrelationDivideUp(s.top_width, kCorrelationColumns);
  const int groups = CorrelationDivideUp(s.side, kCorrelationResults);
  const int blocks = s.num * s.top_height * s.side * tiles * groups;
  const dim3 threads(kCorrelationColumns, kCorrelationRows);
  const Dtype* first = bottom[0]->gpu_data();
  const Dtype* second = bottom[1]->gpu_data();
  Dtype* top_data = top[0]->mutable_gpu_data();
  if (subtract_) {
    // NOLINT_NEXT_LINE(whitespace/operators)
    CorrelationForward<Dtype, true><<<blocks, threads, lines * line_bytes>>>(
        s, tiles, groups, lines, first_width, second_width, first, second, top_data);
  } else {
    // NOLINT_NEXT_LINE(whitespace/operators)
    CorrelationForward<Dtype, false><<<blocks, threads, lines * line_bytes>>>(
        s, tiles, groups, lines, first_width, second_width, first, second, top_data);
  }
  CUDA_POST_KERNEL_CHECK;
}

// --------------------------------------------------------------------------------- backward

// top's diff at each pixel that patches cover: the sum over these patches.
template <typename Dtype>
__global__ void CorrelationSpread(const int n, const CorrelationSizes s, const Dtype* top_diff,
                                  Dtype* spread) {
  CUDA_KERNEL_LOOP(index, n) {
    const int x = index % s.reach_width;
    const int y = index / s.reach_width % s.reach_height;
    const Dtype* plane = top_diff + index / s.reach_width / s.reach_height * s.top_height * s.top_width;
    Dtype sum = 0;
    for (int ky = y % s.stride_1; ky < s.kernel_size && ky <= y; ky += s.stride_1) {
      const int ty = (y - ky) / s.stride_1;
      if (ty >= s.top_height) continue;
      for (int kx = x % s.stride_1; kx < s.kernel_size && kx <= x; kx += s.stride_1) {
        const int tx = (x - kx) / s.stride_1;
        if (tx < s.top_width) sum += plane[ty * s.top_width + tx];
      }
    }
    spread[index] = sum;
  }
}

// The gradient of one image, `own`. At each displacement d, pixel p of `own` was multiplied by pixel p + way
// * d of `other`. way is 1 for the first image, and -1 for the second, which counts the displacements down.
//
//   own_diff[p] = mean over displacements d of spread[d] * other[p + way * d]
//
// To subtract, the sign of own[p] - other[p + way * d] replaces other[p + way * d]. spread[d] is taken at the
// first image's pixel: at p, or for the second image at p - d.
//
// A block has 32 neighbouring pixels and 32 channels. For each line of displacements it loads spread and
// other, for up to `chunk` displacements at a time.
template <typename Dtype, bool subtract>
__global__ void CorrelationBackward(const CorrelationSizes s, const int way, const int tiles,
                                    const int groups, const int chunk, const Dtype* spread, const Dtype* own,
                                    const Dtype* other, Dtype* own_diff) {
  extern __shared__ double correlation_shared[];
  Dtype* spread_lines = reinterpret_cast<Dtype*>(correlation_shared);
  Dtype* other_lines = spread_lines + chunk * kCorrelationColumns;
  const int other_width = kCorrelationColumns + (chunk - 1) * s.stride_2;

  int block = blockIdx.x;
  const int tile = block % tiles * kCorrelationColumns;
  block /= tiles;
  const int y = block % s.height;
  block /= s.height;
  const int group = block % groups * kCorrelationResults;
  const int n = block / groups;
  const int x = tile + threadIdx.x;
  const int displacements = s.side * s.side;
  const int to_reach = s.pad - s.max_displacement;  // from an image's coordinates to those of spread

  Dtype owns[kCorrelationEach] = {0}, sums[kCorrelationEach] = {0};
  if (subtract) {
    for (int e = 0; e < kCorrelationEach; ++e) {
      const int c = group + threadIdx.y + e * kCorrelationRows;
      if (c < s.channels && x < s.width) owns[e] = own[((n * s.channels + c) * s.height + y) * s.width + x];
    }
  }
  for (int i = 0; i < s.side; ++i) {
    const int dy = (i - s.radius) * s.stride_2;
    const int spread_y = y + to_reach + (way < 0 ? dy : 0);
    if (spread_y < 0 || spread_y >= s.reach_height) continue;       // for all threads of the block
    if (!subtract && (y + dy < 0 || y + dy >= s.height)) continue;  // the products are 0
    for (int begin = 0; begin < s.side; begin += chunk) {
      const int here = min(chunk, s.side - begin);
      const int dx = (begin - s.radius) * s.stride_2;
      for (int j = threadIdx.y; j < here; j += kCorrelationRows) {
        const int d = i * s.side + begin + j;
        const int plane = n * displacements + (way < 0 ? displacements - 1 - d : d);
        CorrelationLoadRow(spread + plane * s.reach_height * s.reach_width, spread_y,
                           tile + to_reach + (way < 0 ? dx + j * s.stride_2 : 0), s.reach_height,
                           s.reach_width, kCorrelationColumns, spread_lines + j * kCorrelationColumns);
      }
      for (int c = threadIdx.y; c < kCorrelationResults; c += kCorrelationRows) {
        const int rows = group + c < s.channels ? s.height : 0;  // zeros for the channels that there are not
        CorrelationLoadRow(other + (n * s.channels + group + c) * s.height * s.width, y + dy, tile + dx, rows,
                           s.width, kCorrelationColumns + (here - 1) * s.stride_2,
                           other_lines + c * other_width);
      }
      __syncthreads();
      for (int j = 0; j < here; ++j) {
        const Dtype diff = spread_lines[j * kCorrelationColumns + threadIdx.x];
        const Dtype* met = other_lines + threadIdx.y * other_width + threadIdx.x + j * s.stride_2;
#pragma unroll
        for (int e = 0; e < kCorrelationEach; ++e) {
          const Dtype value = met[e * kCorrelationRows * other_width];
          sums[e] += diff * (subtract ? Dtype((owns[e] > value) - (owns[e] < value)) : value);
        }
      }
      __syncthreads();
    }
  }
  for (int e = 0; e < kCorrelationEach; ++e) {
    const int c = group + threadIdx.y + e * kCorrelationRows;
    if (c < s.channels && x < s.width) {
      own_diff[((n * s.channels + c) * s.height + y) * s.width + x] = sums[e] / s.patch_count;
    }
  }
}

template <typename Dtype>
void CorrelationLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top,
                                           const vector<bool>& propagate_down,
                                           const vector<Blob<Dtype>*>& bottom) {
  if (bottom[0]->count() == 0) return;
  const CorrelationSizes& s = sizes_;
  const Dtype* spread = top[0]->gpu_diff();
  if (s.kernel_size > 1 || s.stride_1 > 1) {  // otherwise spread is top's diff: one patch per pixel
    spread_.Reshape(s.num, s.side * s.side, s.reach_height, s.reach_width);
    // NOLINT_NEXT_LINE(whitespace/operators)
    CorrelationSpread<Dtype><<<CAFFE_GET_BLOCKS(spread_.count()), CAFFE_CUDA_NUM_THREADS>>>(
        spread_.count(), s, spread, spread_.mutable_gpu_data());
    CUDA_POST_KERNEL_CHECK;
    spread = spread_.gpu_data();
  }
  // Shared memory for 32 values per displacement, and for the pixels that 32 pixels reach, in 32 channels.
  const int channels_bytes = kCorrelationResults * sizeof(Dtype);
  const int spread_bytes = kCorrelationColumns * sizeof(Dtype);
  const int most = 1 + (kCorrelationMostBytes - kCorrelationColumns * channels_bytes - spread_bytes) /
                           (spread_bytes + s.stride_2 * channels_bytes);
  const int chunk = std::min(s.side, most);
  const int bytes = chunk * spread_bytes + (kCorrelationColumns + (chunk - 1) * s.stride_2) * channels_bytes;
  const int tiles = CorrelationDivideUp(s.width, kCorrelationColumns);
  const int groups = CorrelationDivideUp(s.channels, kCorrelationResults);
  const int blocks = s.num * groups * s.height * tiles;
  const dim3 threads(kCorrelationColumns, kCorrelationRows);
  for (int i = 0; i < 2; ++i) {
    if (!propagate_down[i]) continue;
    const Dtype* own = bottom[i]->gpu_data();
    const Dtype* other = bottom[1 - i]->gpu_data();
    if (subtract_) {
      // NOLINT_NEXT_LINE(whitespace/operators)
      CorrelationBackward<Dtype, true><<<blocks, threads, bytes>>>(
          s, i == 0 ? 1 : -1, tiles, groups, chunk, spread, own, other, bottom[i]->mutable_gpu_diff());
    } else {
      // NOLINT_NEXT_LINE(whitespace/operators)
      CorrelationBackward<Dtype, false><<<blocks, threads, bytes>>>(
          s, i == 0 ? 1 : -1, tiles, groups, chunk, spread, own, other, bottom[i]->mutable_gpu_diff());
    }
    CUDA_POST_KERNEL_CHECK;
  }
}

INSTANTIATE_LAYER_GPU_FUNCS(CorrelationLayer);

}  // namespace caffe
