// Forward, NHWC (channels_last), planes of any size:
//
//   top[n,y,x,c] = bias[c] + sum over ki,kj: weight[c,ki,kj] * bottom[n, y*stride_h - pad_h + ki*dilation_h,
//                                                                     x*S - pad_w + kj*dilation_w, c]
//
// A thread owns V neighbouring channels (a 16-byte load for V = 4 floats) of one output row and slides along
// it. Each step loads S columns of K pixels, adds them to all outputs that they belong to, and keeps those
// sums in registers. Neighbouring rows are computed by the same block at the same time, so that the K reads
// of a pixel meet in the cache. The weights of a block's channels are turned to [tap][channel] in shared
// memory once and live in registers then.
#ifndef DEPTHWISE_FORWARD_NHWC_CUH_
#define DEPTHWISE_FORWARD_NHWC_CUH_

#include "depthwise_shape.h"

namespace depthwise {

constexpr int kNhwcThreads = 128;

struct NhwcGeometry {
  int channels, height, width, top_height, top_width;
  int stride_h, pad_h, pad_w, dilation_h, dilation_w;
  int lanes;   // threads of a block side by side along the channels; a power of 2, at most 32
  int chunks;  // of `columns` output columns, dilation_w apart
  int columns;
  int items;  // (image, chunk, phase, output row): what one row of lanes does at a time
};

// As many lanes as divide the channels evenly, preferring 128 contiguous bytes and more.
inline int nhwc_lanes(int64_t packs) {
  for (int lanes = 32; lanes >= 8; lanes /= 2)
    if (packs % lanes == 0) return lanes;
  int lanes = 32;
  while (lanes > 1 && lanes / 2 >= packs) lanes /= 2;
  return lanes;
}

struct NhwcItem {
  int image, y, first, count;  // output columns first, first + dilation_w, ...
  __device__ __forceinline__ NhwcItem(const NhwcGeometry& g, int item) {
    y = item % g.top_height;
    item /= g.top_height;
    const int phase = item % g.dilation_w;
    item /= g.dilation_w;
    first = phase + item % g.chunks * g.columns * g.dilation_w;
    image = item / g.chunks;
    const int left = (g.top_width - first + g.dilation_w - 1) / g.dilation_w;
    count = left < g.columns ? left : g.columns;
  }
};

// The K pixels above each other that output row y looks at.
template <typename Dtype, int K, int V>
struct NhwcColumn {
  const Dtype* corner;  // bottom at channel c, column 0 and the first of the K rows
  int64_t row_pitch;
  unsigned rows;  // bit ki: that row exists

  __device__ __forceinline__ NhwcColumn(const NhwcGeometry& g, const Dtype* bottom, const NhwcItem& item,
                                        int channel) {
    const int iy = item.y * g.stride_h - g.pad_h;
    row_pitch = int64_t(g.dilation_h) * g.width * g.channels;
    corner = bottom + (int64_t(item.image) * g.height + iy) * g.width * g.channels + channel;
    rows = 0;
#pragma unroll
    for (int ki = 0; ki < K; ++ki)
      if (static_cast<unsigned>(iy + ki * g.dilation_h) < static_cast<unsigned>(g.height)) rows |= 1u << ki;
  }
  __device__ __forceinline__ void load(const NhwcGeometry& g, int ix, Pack<Dtype, V> (&pixels)[K]) const {
    const unsigned exists = static_cast<unsigned>(ix) < static_cast<unsigned>(g.width) ? rows : 0;
#pragma unroll
    for (int ki = 0; ki < K; ++ki) {
      pixels[ki] = Pack<Dtype, V>{};
      if (exists >> ki & 1)
        pixels[ki] = *reinterpret_cast<const Pack<Dtype, V>*>(corner + ki * row_pitch + ix * g.channels);
    }
  }
};

// The weights of the block's channels, turned to [tap][channel]; `turned` also by 180 degrees. All loads are
// under way before the first is stored.
template <int K, int V, typename Dtype>
__device__ __forceinline__ void load_tile_weights(float (&shared)[K * K][32 * V],
                                                  const Dtype* __restrict__ weight, int channels,
                                                  bool turned) {
  constexpr int kEach = (K * K * 32 * V + kNhwcThreads - 1) / kNhwcThreads;
  Dtype loaded[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = threadIdx.x + k * kNhwcThreads;
    if (i < channels * K * K) loaded[k] = weight[i];
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k) {
    const int i = threadIdx.x + k * kNhwcThreads, tap = i % (K * K);
    if (i < channels * K * K) shared[turned ? K * K - 1 - tap : tap][i / (K * K)] = loaded[k];
  }
  __syncthreads();
}

template <typename Dtype, int K, int S, int V>
__global__ void __launch_bounds__(kNhwcThreads)
    forward_nhwc_kernel(const NhwcGeometry g, const Dtype* __restrict__ bottom,
                        const Dtype* __restrict__ weight, const Dtype* __restrict__ bias,
                        Dtype* __restrict__ top, const bool turned) {
  __shared__ float shared_weight[K * K][32 * V];
  const int tile = blockIdx.x * g.lanes * V;  // the block's first channel
  const int tile_channels = min(g.lanes * V, g.channels - tile);
  load_tile_weights<K, V>(shared_weight, weight + int64_t(tile) * (K * K), tile_channels, turned);
  const int lane = threadIdx.x % g.lanes, row = threadIdx.x / g.lanes, rows = kNhwcThreads / g.lanes;
  const int channel = tile + lane * V;
  if (channel >= g.channels) return;
  float w[K][K][V], start[V];
#pragma unroll
  for (int i = 0; i < K * K * V; ++i) w[i / V / K][i / V % K][i % V] = shared_weight[i / V][lane * V + i % V];
#pragma unroll
  for (int v = 0; v < V; ++v) start[v] = bias ? float(bias[channel + v]) : 0.f;

  constexpr int kOpen = (K - 1) / S;  // outputs that have begun but not ended
  for (int i = blockIdx.y * rows + row; i < g.items; i += gridDim.y * rows) {
    const NhwcItem item(g, i);
    const NhwcColumn<Dtype, K, V> column(g, bottom, item, channel);
    Dtype* to = top +
                ((int64_t(item.image) * g.top_height + item.y) * g.top_width + item.first) * g.channels +
                channel;
    float sums[kOpen][V];
#pragma unroll
    for (int k = 0; k < kOpen * V; ++k) sums[k / V][k % V] = 0;
    int ix = item.first * S - g.pad_w + (K - S - kOpen * S) * g.dilation_w;
    Pack<Dtype, V> pixels[S][K], next[S][K];
#pragma unroll
    for (int j = 0; j < S; ++j, ix += g.dilation_w) column.load(g, ix, pixels[j]);
    for (int x = -kOpen; x < item.count; ++x) {
#pragma unroll
      for (int j = 0; j < S; ++j, ix += g.dilation_w) column.load(g, x + 1 < item.count ? ix : -1, next[j]);
      Pack<Dtype, V> out;
#pragma unroll
      for (int s = 0; s <= kOpen; ++s) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
          float sum = s < kOpen ? sums[s < kOpen ? s : 0][v] : start[v];
#pragma unroll
          for (int j = 0; j < S; ++j) {
            const int kj = K - S + j - S * s;
            if (kj < 0) continue;
#pragma unroll
            for (int ki = 0; ki < K; ++ki) sum += w[ki][kj][v] * float(pixels[j][ki].v[v]);
          }
          if (s == 0)
            out.v[v] = sum;
          else
            sums[s > 0 ? s - 1 : 0][v] = sum;
        }
      }
      if (x >= 0) *reinterpret_cast<Pack<Dtype, V>*>(to + x * g.dilation_w * g.channels) = out;
#pragma unroll
      for (int j = 0; j < S; ++j)
#pragma unroll
        for (int ki = 0; ki < K; ++ki) pixels[j][ki] = next[j][ki];
    }
  }
}

// The same for R output columns at a time, all loads before the first use: for K = 3, where bytes are the
// limit.
template <typename Dtype, int K, int S, int V, int R>
__global__ void __launch_bounds__(kNhwcThreads)
    forward_nhwc_patch_kernel(const NhwcGeometry g, const Dtype* __restrict__ bottom,
                              const Dtype* __restrict__ weight, const Dtype* __restrict__ bias,
                              Dtype* __restrict__ top, const bool turned) {
  __shared__ __align__(16) float shared_weight[K * K][32 * V];
  const int tile = blockIdx.x * g.lanes * V;
  const int tile_channels = min(g.lanes * V, g.channels - tile);
  load_tile_weights<K, V>(shared_weight, weight + int64_t(tile) * (K * K), tile_channels, turned);
  const int lane = threadIdx.x % g.lanes, row = threadIdx.x / g.lanes, rows = kNhwcThreads / g.lanes;
  const int channel = tile + lane * V;
  if (channel >= g.channels) return;
  constexpr int kColumns = (R - 1) * S + K;
  for (int i = blockIdx.y * rows + row; i < g.items; i += gridDim.y * rows) {
    const NhwcItem item(g, i);
    const NhwcColumn<Dtype, K, V> column(g, bottom, item, channel);
    Dtype* to = top +
                ((int64_t(item.image) * g.top_height + item.y) * g.top_width + item.first) * g.channels +
                channel;
    Pack<Dtype, V> pixels[kColumns][K];
    const int ix = item.first * S - g.pad_w;
#pragma unroll
    for (int j = 0; j < kColumns; ++j) column.load(g, ix + j * g.dilation_w, pixels[j]);
    float sums[R][V];
#pragma unroll
    for (int k = 0; k < R * V; ++k) sums[k / V][k % V] = bias ? float(bias[channel + k % V]) : 0.f;
#pragma unroll
    for (int ki = 0; ki < K; ++ki)
#pragma unroll
      for (int kj = 0; kj < K; ++kj) {
        const Pack<float, V> w =
            *reinterpret_cast<const Pack<float, V>*>(&shared_weight[ki * K + kj][lane * V]);
#pragma unroll
        for (int x = 0; x < R; ++x)
#pragma unroll
          for (int v = 0; v < V; ++v) sums[x][v] += w.v[v] * float(pixels[x * S + kj][ki].v[v]);
      }
#pragma unroll
    for (int x = 0; x < R; ++x) {
      Pack<Dtype, V> out;
#pragma unroll
      for (int v = 0; v < V; ++v) out.v[v] = sums[x][v];
      if (x < item.count) *reinterpret_cast<Pack<Dtype, V>*>(to + x * g.dilation_w * g.channels) = out;
    }
  }
}

inline NhwcGeometry nhwc_geometry(const Shape& shape, int vector, int64_t most_columns = 32) {
  NhwcGeometry g;
  g.channels = static_cast<int>(shape.channels);
  g.height = static_cast<int>(shape.height);
  g.width = static_cast<int>(shape.width);
  g.top_height = static_cast<int>(shape.top_height);
  g.top_width = static_cast<int>(shape.top_width);
  g.stride_h = shape.stride_h;
  g.pad_h = shape.pad_h;
  g.pad_w = shape.pad_w;
  g.dilation_h = shape.dilation_h;
  g.dilation_w = shape.dilation_w;
  g.lanes = nhwc_lanes(shape.channels / vector);
  const int64_t row = ceil_div(shape.top_width, shape.dilation_w);
  g.columns = static_cast<int>(ceil_div(row, ceil_div(row, most_columns)));
  g.chunks = static_cast<int>(ceil_div(row, g.columns));
  const int64_t items = shape.num * g.chunks * g.dilation_w * shape.top_height;
  g.items = items < int64_t(1) << 30 ? static_cast<int>(items) : -1;
  return g;
}

template <typename Dtype, int K, int S, int V>
bool launch_forward_nhwc(const Shape& shape, const Dtype* bottom, const Dtype* weight, const Dtype* bias,
                         Dtype* top, bool turned, cudaStream_t stream) {
  constexpr int kPatchColumns = S == 1 ? 7 : 4;  // as many as registers can hold
  const NhwcGeometry g = nhwc_geometry(shape, V, K == 3 ? kPatchColumns : 32);
  if (g.items < 0) return false;
  const int64_t tiles = ceil_div(g.channels, g.lanes * V);
  const int64_t rows = kNhwcThreads / g.lanes;
  // Enough blocks to balance a large GPU, few enough that loading the weights does not show.
  const int64_t blocks = std::min<int64_t>({ceil_div(g.items, rows), ceil_div(2048, tiles), 65535});
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(blocks));
  if constexpr (K == 3)
    forward_nhwc_patch_kernel<Dtype, K, S, V, kPatchColumns>
        <<<grid, kNhwcThreads, 0, stream>>>(g, bottom, weight, bias, top, turned);
  else
    forward_nhwc_kernel<Dtype, K, S, V>
        <<<grid, kNhwcThreads, 0, stream>>>(g, bottom, weight, bias, top, turned);
  return true;
}

template <typename Dtype, int K, int S>
bool choose_forward_nhwc(const Shape& shape, const Dtype* bottom, const Dtype* weight, const Dtype* bias,
                         Dtype* top, bool turned, cudaStream_t stream) {
  const auto allows = [&](int n) {
    return shape.channels % n == 0 && aligned(bottom, n * sizeof(Dtype)) && aligned(top, n * sizeof(Dtype));
  };
  constexpr int V = K == 3 ? 4 : 2;  // K * K * V weights have to stay in registers
  if (allows(V)) return launch_forward_nhwc<Dtype, K, S, V>(shape, bottom, weight, bias, top, turned, stream);
  return launch_forward_nhwc<Dtype, K, S, 1>(shape, bottom, weight, bias, top, turned, stream);
}

template <typename Dtype>
bool forward_nhwc(const Shape& shape, const Dtype* bottom, const Dtype* weight, const Dtype* bias, Dtype* top,
                  bool turned, cudaStream_t stream) {
  const int s = shape.stride_w;
  if (s != 1 && shape.dilation_w != 1) return false;
#define DEPTHWISE_TRY(K, S)      \
  if (shape.square(K) && s == S) \
    return choose_forward_nhwc<Dtype, K, S>(shape, bottom, weight, bias, top, turned, stream);
  DEPTHWISE_TRY(3, 1)
  DEPTHWISE_TRY(3, 2)
  DEPTHWISE_TRY(5, 1)
  DEPTHWISE_TRY(5, 2)
  DEPTHWISE_TRY(7, 1)
  DEPTHWISE_TRY(7, 2)
#undef DEPTHWISE_TRY
  return false;
}

}  // namespace depthwise

#endif  // DEPTHWISE_FORWARD_NHWC_CUH_
