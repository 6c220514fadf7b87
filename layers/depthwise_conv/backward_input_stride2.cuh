// The gradient to bottom, NCHW, for stride 2 (for stride 1 it is a forward with turned weights):
//
//   bottom_diff[n,c,iy,ix] = sum over ki,kj,y,x with 2*y + ki = iy + pad_h, 2*x + kj = ix + pad_w:
//                            weight[c,ki,kj] * top_diff[n,c,y,x]
//
// Along each axis only every second tap reaches a given pixel: the even or the odd ones, depending on the
// pixel's row and column. This kernel knows them at compile time, so it needs no test and no division.
#ifndef DEPTHWISE_BACKWARD_INPUT_STRIDE2_CUH_
#define DEPTHWISE_BACKWARD_INPUT_STRIDE2_CUH_

#include "forward_nchw_rows.cuh"

namespace depthwise {

// A thread owns V columns of bottom_diff, and slides down the plane. Each row of top_diff adds to K rows of
// bottom_diff, and completes two of them.
template <typename Dtype, int K, int V>
__global__ void __launch_bounds__(128)
    backward_input_nchw_stride2_kernel(const RowsGeometry g, const Dtype* __restrict__ top_diff,
                                       const Parameters<Dtype> weight, Dtype* __restrict__ bottom_diff) {
  constexpr int kPad = (K - 1) / 2, kOpen = K - 2;
  // The columns of top_diff, relative to x / 2, that the V columns from x on read.
  constexpr int kFirst = -((K - 1 - kPad) / 2), kLast = (V - 1 + kPad) / 2;
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= g.threads) return;
  const int x = thread % g.groups * V;
  const int rest = thread / g.groups;
  const int chunk = rest % g.chunks, plane = rest / g.chunks;
  const Dtype* from = top_diff + int64_t(plane) * g.top_height * g.top_width + x / 2;
  Dtype* to = bottom_diff + int64_t(plane) * g.height * g.width + x;

  float w[K][K], sums[kOpen][V] = {};  // sums[r]: padded row 2 * y + r so far, from earlier rows of top_diff
  load_weights<K>(w, weight + plane % g.channels * (K * K), false);
  // Pairs of padded rows: this chunk completes the rows 2 * first ... 2 * last - 1.
  const int first = chunk * g.rows;
  const int last = min(first + g.rows, (g.height + g.pad_h + 1) / 2);
  for (int y = first - (K - 1) / 2; y < last; ++y) {
    float window[kLast - kFirst + 1];
#pragma unroll
    for (int i = 0; i <= kLast - kFirst; ++i) {
      window[i] = 0;
      if (static_cast<unsigned>(y) < static_cast<unsigned>(g.top_height) &&
          static_cast<unsigned>(x / 2 + kFirst + i) < static_cast<unsigned>(g.top_width))
        window[i] = from[y * g.top_width + kFirst + i];
    }
#pragma unroll
    for (int r = 0; r < K; ++r) {
      float sum[V];
#pragma unroll
      for (int v = 0; v < V; ++v) {
        sum[v] = r < kOpen ? sums[r < kOpen ? r : 0][v] : 0.f;
#pragma unroll
        for (int kj = (v + kPad) % 2; kj < K; kj += 2)
          sum[v] += w[r][kj] * window[(v + kPad - kj + 2 * K) / 2 - K - kFirst];
      }
      const int iy = 2 * y + r - g.pad_h;
      if (r < 2) {
        if (y >= first && static_cast<unsigned>(iy) < static_cast<unsigned>(g.height)) {
          Pack<Dtype, V> out;
#pragma unroll
          for (int v = 0; v < V; ++v) out.v[v] = sum[v];
          *reinterpret_cast<Pack<Dtype, V>*>(to + iy * g.width) = out;
        }
      } else {
#pragma unroll
        for (int v = 0; v < V; ++v) sums[r >= 2 ? r - 2 : 0][v] = sum[v];
      }
    }
  }
}

template <typename Dtype, int K, int V>
bool launch_backward_input_nchw_stride2(const Shape& shape, const Dtype* top_diff, Parameters<Dtype> weight,
                                        Dtype* bottom_diff, cudaStream_t stream) {
  RowsGeometry g = {};
  g.channels = static_cast<int>(shape.channels);
  g.height = static_cast<int>(shape.height);
  g.width = static_cast<int>(shape.width);
  g.top_height = static_cast<int>(shape.top_height);
  g.top_width = static_cast<int>(shape.top_width);
  g.pad_h = shape.pad_h;
  g.groups = g.width / V;
  const int64_t pairs = ceil_div(g.height + g.pad_h, 2);
  g.rows = static_cast<int>(std::min<int64_t>(pairs, 14));
  g.chunks = static_cast<int>(ceil_div(pairs, g.rows));
  const int64_t threads = shape.num * shape.channels * g.chunks * g.groups;
  if (threads >= int64_t(1) << 31) return false;
  g.threads = static_cast<int>(threads);
  backward_input_nchw_stride2_kernel<Dtype, K, V>
      <<<static_cast<unsigned>(ceil_div(threads, 128)), 128, 0, stream>>>(g, top_diff, weight, bottom_diff);
  return true;
}

template <typename Dtype, int K>
bool choose_backward_input_nchw_stride2(const Shape& shape, const Dtype* top_diff, Parameters<Dtype> weight,
                                        Dtype* bottom_diff, cudaStream_t stream) {
  constexpr int kWide = 16 / sizeof(Dtype);
  if (shape.pad_w != (K - 1) / 2) return false;
  if (shape.width % kWide == 0 && aligned(bottom_diff, 16))
    return launch_backward_input_nchw_stride2<Dtype, K, kWide>(shape, top_diff, weight, bottom_diff, stream);
  if (shape.width % 2 == 0 && aligned(bottom_diff, 2 * sizeof(Dtype)))
    return launch_backward_input_nchw_stride2<Dtype, K, 2>(shape, top_diff, weight, bottom_diff, stream);
  return false;
}

template <typename Dtype>
bool backward_input_stride2(const Shape& shape, const Dtype* top_diff, Parameters<Dtype> weight,
                            Dtype* bottom_diff, cudaStream_t stream) {
  if (shape.stride_h != 2 || shape.stride_w != 2 || shape.dilation_h != 1 || shape.dilation_w != 1)
    return false;
  if (shape.square(3))
    return choose_backward_input_nchw_stride2<Dtype, 3>(shape, top_diff, weight, bottom_diff, stream);
  if (shape.square(5))
    return choose_backward_input_nchw_stride2<Dtype, 5>(shape, top_diff, weight, bottom_diff, stream);
  return false;
}

}  // namespace depthwise

#endif  // DEPTHWISE_BACKWARD_INPUT_STRIDE2_CUH_
