// Forward, NHWC (channels_last), planes of any size:
//
//   top[n,y,x,c] = bias[c] + sum over ki,kj: weight[c,ki,kj] * bottom[n, y*S - pad_h + ki*dilation_h,
//                                                                     x*S - pad_w + kj*dilation_w, c]
//
// A thread reads each row of bottom once, and adds it to all rows of top that need it. Their sums stay in
// registers until they are complete.
#ifndef DEPTHWISE_FORWARD_NHWC_CUH_
#define DEPTHWISE_FORWARD_NHWC_CUH_

#include "nhwc.cuh"

namespace depthwise {

template <typename Dtype, int K, int S, int V, int R, int B>
__global__ void __launch_bounds__(kNhwcThreads, B)
    forward_nhwc_kernel(const NhwcGeometry g, const Dtype* __restrict__ bottom,
                        const Parameters<Dtype> weight, const Epilogue<Dtype> after, Dtype* __restrict__ top,
                        const bool turned) {
  __shared__ NhwcWeights<K, V> shared;
  const NhwcThread t(g, blockIdx.x % g.tiles, V);
  const int index = blockIdx.x / g.tiles * t.per_block + t.in_block, channel = t.channel;
  const bool works = t.inside && index < g.items;

  constexpr int kOpen = (K - 1) / S;         // incomplete rows of top
  constexpr int kColumns = (R - 1) * S + K;  // columns of bottom that R outputs need
  using Ring = NhwcRing<Dtype, V, S * kColumns>;
  __shared__ Ring ring;
  const NhwcItem item(g, index, R);
  const int step = g.dilation_h, end = min(item.end, g.top_height);
  const int ix = item.x * S - g.pad_w, pixel = g.dilation_w * g.channels;
  const unsigned columns = columns_inside<kColumns>(ix, g.dilation_w, g.width);
  int y = item.y - kOpen * step, iy = y * S - g.pad_h + (K - S) * step, ahead = iy;
  const int pitch = g.width * g.channels;  // elements; an image has fewer than 2^30
  const Dtype* from =
      bottom + (int64_t(item.image) * g.height + iy) * pitch + int64_t(ix) * g.channels + channel;
  Dtype* to = top + (int64_t(item.image) * g.top_height + y) * g.top_width * g.channels +
              int64_t(item.x) * g.channels + channel;
  const int64_t down = int64_t(step) * pitch, top_down = int64_t(step) * g.top_width * g.channels;
  const auto inside = [&](int row) { return static_cast<unsigned>(row) < static_cast<unsigned>(g.height); };
  // Start to load the last S rows of bottom that output row y needs.
  const auto start_rows = [&](int slot) {
#pragma unroll
    for (int i = 0; i < S; ++i, ahead += step, from += down)
      ring.template start<kColumns>(slot, i * kColumns, from, pixel, inside(ahead) ? columns : 0);
    end_of_copies();
  };
  // Start to load the first rows before the weights, so that both overlap.
  if (works) {
#pragma unroll
    for (int slot = 0; slot < Ring::kDepth - 1; ++slot) start_rows(slot);
  }
  shared.load(weight + int64_t(t.tile) * (K * K), min(g.lanes * V, g.channels - t.tile), turned);
  if (!works) return;
  float start[V];
#pragma unroll
  for (int v = 0; v < V; ++v) start[v] = after.start(channel + v);

  float sums[kOpen][R][V];  // sums[s]: the row of top s + 1 steps further down
#pragma unroll
  for (int i = 0; i < kOpen * R * V; ++i) sums[i / V / R][i / V % R][i % V] = 0;
  int slot = 0, free_slot = Ring::kDepth - 1;
  for (; y < end; y += step, iy += S * step, to += top_down) {
    start_rows(free_slot);
    wait_for_copies<Ring::kDepth - 1>();
    float rows[S][kColumns][V];
#pragma unroll
    for (int i = 0; i < S; ++i) ring.template read<kColumns>(slot, i * kColumns, rows[i]);
    free_slot = slot;
    slot = Ring::after(slot);
    const bool exist = inside(iy) || (S == 2 && inside(iy + step));
    float done[R][V];
#pragma unroll
    for (int s = 0; s <= kOpen; ++s) {
      float (&into)[R][V] = s == 0 ? done : sums[s > 0 ? s - 1 : 0];
#pragma unroll
      for (int i = 0; i < R * V; ++i)
        into[i / V][i % V] = s < kOpen ? sums[s < kOpen ? s : 0][i / V][i % V] : start[i % V];
      // For large kernels the multiply-adds are the limit. Skip rows that do not exist or that
      // other threads own.
      if (K > 3 && !(exist && y + s * step >= item.y && y + s * step < end)) continue;
#pragma unroll
      for (int i = 0; i < S; ++i) {
        const int ki = K - S + i - S * s;
        if (ki < 0) continue;
#pragma unroll
        for (int kj = 0; kj < K; ++kj) {
          const Pack<float, V> w = shared.taps[ki * K + kj][t.lane];
#pragma unroll
          for (int x = 0; x < R; ++x)
#pragma unroll
            for (int v = 0; v < V; ++v) into[x][v] += w.v[v] * rows[i][x * S + kj][v];
        }
      }
    }
    if (y >= item.y) {
      if (after.activation) after.finish(done);
#pragma unroll
      for (int x = 0; x < R; ++x)
        if (item.x + x * g.dilation_w < g.top_width) store_pixel<Dtype, V>(to + x * pixel, done[x]);
    }
  }
}

template <typename Dtype, int K, int S, int V, int R, int B = 1>
bool launch_forward_nhwc(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight,
                         Epilogue<Dtype> after, Dtype* top, bool turned, cudaStream_t stream) {
  // A large GPU can run twice as many threads, but longer chunks gain more.
  const NhwcGeometry g = nhwc_geometry(shape, V, sizeof(Dtype), R, shape.top_width, shape.top_height, 32,
                                       K == 3 ? 35000 : 70000);
  const int64_t blocks = ceil_div(g.items, kNhwcThreads / g.lanes) * g.tiles;
  if (g.items < 0 || blocks >= 1 << 30) return false;
  forward_nhwc_kernel<Dtype, K, S, V, R, B>
      <<<static_cast<unsigned>(blocks), kNhwcThreads, 0, stream>>>(g, bottom, weight, after, top, turned);
  return true;
}

// K = 3 without dilation. A thread owns one patch of R x R outputs, and starts all of its loads first. For
// small planes, where a kernel takes little longer than one load, and for stride 2 in float, where even
// patches read most of bottom only once.
template <typename Dtype, int S, int V, int R, int B>
__global__ void __launch_bounds__(kNhwcThreads, B)
    forward_nhwc_patch_kernel(const NhwcGeometry g, const Dtype* __restrict__ bottom,
                              const Parameters<Dtype> weight, const Epilogue<Dtype> after,
                              Dtype* __restrict__ top, const bool turned) {
  constexpr int K = 3, kInputs = (R - 1) * S + K;  // rows and columns of bottom that R outputs need
  __shared__ NhwcWeights<K, V> shared;
  const NhwcThread t(g, blockIdx.x % g.tiles, V);
  const int index = blockIdx.x / g.tiles * t.per_block + t.in_block, channel = t.channel;
  const bool works = t.inside && index < g.items;
  const NhwcItem item(g, index, R);
  const int iy = item.y * S - g.pad_h, ix = item.x * S - g.pad_w, pitch = g.width * g.channels;
  const unsigned rows = works ? columns_inside<kInputs>(iy, 1, g.height) : 0;
  const unsigned columns = columns_inside<kInputs>(ix, 1, g.width);
  const Dtype* from =
      bottom + (int64_t(item.image) * g.height + iy) * pitch + int64_t(ix) * g.channels + channel;
  Pack<Dtype, V> inputs[kInputs][kInputs];
#pragma unroll
  for (int i = 0; i < kInputs; ++i)
#pragma unroll
    for (int j = 0; j < kInputs; ++j) {
      inputs[i][j] = Pack<Dtype, V>{};
      if (rows >> i & columns >> j & 1)
        inputs[i][j] = *reinterpret_cast<const Pack<Dtype, V>*>(from + i * pitch + j * g.channels);
    }
  shared.load(weight + int64_t(t.tile) * (K * K), min(g.lanes * V, g.channels - t.tile), turned);
  if (!works) return;
  float sums[R][R][V];
#pragma unroll
  for (int i = 0; i < R * R * V; ++i) sums[i / V / R][i / V % R][i % V] = after.start(channel + i % V);
#pragma unroll
  for (int tap = 0; tap < K * K; ++tap) {
    const Pack<float, V> w = shared.taps[tap][t.lane];
#pragma unroll
    for (int i = 0; i < R * R * V; ++i) {
      const int y = i / V / R, x = i / V % R, v = i % V;
      sums[y][x][v] += w.v[v] * float(inputs[y * S + tap / K][x * S + tap % K].v[v]);
    }
  }
  activate(sums[0][0], R * R * V, after.activation);
  Dtype* to =
      top + ((int64_t(item.image) * g.top_height + item.y) * g.top_width + item.x) * g.channels + channel;
#pragma unroll
  for (int i = 0; i < R * R; ++i)
    if (item.y + i / R < g.top_height && item.x + i % R < g.top_width)
      store_pixel<Dtype, V>(to + (i / R * g.top_width + i % R) * g.channels, sums[i / R][i % R]);
}

template <typename Dtype, int S, int V>
bool launch_forward_nhwc_patch(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight,
                               Epilogue<Dtype> after, Dtype* top, bool turned, cudaStream_t stream) {
  constexpr int R = 2, kBlocksAtOnce = 7;
  const NhwcGeometry g =
      nhwc_geometry(shape, V, sizeof(Dtype), R, shape.top_width, shape.top_height, R, 1, R);
  const int64_t blocks = ceil_div(g.items, kNhwcThreads / g.lanes) * g.tiles;
  if (g.items < 0 || blocks >= 1 << 30) return false;
  forward_nhwc_patch_kernel<Dtype, S, V, R, kBlocksAtOnce>
      <<<static_cast<unsigned>(blocks), kNhwcThreads, 0, stream>>>(g, bottom, weight, after, top, turned);
  return true;
}

template <typename Dtype, int K, int S>
bool choose_forward_nhwc(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight,
                         Epilogue<Dtype> after, Dtype* top, bool turned, cudaStream_t stream) {
  // The fastest on an H200. With stride 2 a large kernel needs twice the shared memory.
  constexpr bool kTwoBytes = sizeof(Dtype) == 2;
  constexpr int V = K == 7 || (S == 2 && !(K == 3 && kTwoBytes)) || (K == 3 && !kTwoBytes) ? 2 : 4;
  constexpr int R = S == 2 ? (V == 4 ? 1 : 2) : K == 7 ? 7 : 4;
  const bool packed =
      shape.channels % V == 0 && aligned(bottom, V * sizeof(Dtype)) && aligned(top, V * sizeof(Dtype));
  constexpr bool kPatchesOnly = K == 3 && S == 2 && !kTwoBytes;
  if constexpr (K == 3 && (S == 1 || kPatchesOnly)) {
    const int64_t patches =
        shape.num * shape.channels / V * ceil_div(shape.top_height, 2) * ceil_div(shape.top_width, 2);
    if (packed && shape.dilation_h == 1 && shape.dilation_w == 1 && (kPatchesOnly || patches < 1 << 16))
      return launch_forward_nhwc_patch<Dtype, S, V>(shape, bottom, weight, after, top, turned, stream);
  }
  if constexpr (!kPatchesOnly)
    if (packed)
      return launch_forward_nhwc < Dtype, K, S, V, R,
             K == 3 && S == 2 ? 8 : 1 > (shape, bottom, weight, after, top, turned, stream);
  if constexpr (S == 1 || K == 3)
    return launch_forward_nhwc<Dtype, K, S, 1, R>(shape, bottom, weight, after, top, turned, stream);
  return false;
}

template <typename Dtype>
bool forward_nhwc(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight, Epilogue<Dtype> after,
                  Dtype* top, bool turned, cudaStream_t stream) {
  const int s = shape.stride_w;
  if (shape.stride_h != s || (s != 1 && (shape.dilation_h != 1 || shape.dilation_w != 1))) return false;
#define DEPTHWISE_TRY(K, S)      \
  if (shape.square(K) && s == S) \
    return choose_forward_nhwc<Dtype, K, S>(shape, bottom, weight, after, top, turned, stream);
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
