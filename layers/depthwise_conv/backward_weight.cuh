// The gradient to weight and bias, NCHW:
//
//   weight_diff[c,ki,kj] = sum over n,y,x: top_diff[n,c,y,x] * bottom[n,c,iy,ix]
//   bias_diff[c]         = sum over n,y,x: top_diff[n,c,y,x]
//   iy = y*stride_h - pad_h + ki*dilation_h,  ix = x*stride_w - pad_w + kj*dilation_w
//
// There are two stages and no atomics, so that the sums are the same on every run. Stage one divides the
// positions (n,y,x) among `parts` groups of threads. A group slides over the planes, reads bottom and
// top_diff once, and keeps its K*K + 1 sums in registers. It writes them to workspace [channels, K*K + 1,
// parts]. Stage two adds the parts.
#ifndef DEPTHWISE_BACKWARD_WEIGHT_CUH_
#define DEPTHWISE_BACKWARD_WEIGHT_CUH_

#include "backward_nchw_planes.cuh"
#include "depthwise_fast.h"
#include "forward_nchw_rows.cuh"

namespace depthwise {

constexpr int kWeightThreads = 128;

constexpr int weight_patch_rows(int stride) { return stride == 1 ? 4 : 2; }  // as many as registers can hold

struct WeightNchwGeometry {
  RowsGeometry rows;
  int items;  // (image, phase, chunk, group) of one channel
  int items_per_part;
  int parts;
};

// V neighbours in a row of top_diff. Only the first `left` exist.
template <typename Dtype, int V, int L>
struct DiffRow {
  Pack<Dtype, V> pack;
  __device__ __forceinline__ void load(const Dtype* row, bool exists, int left) {
    pack = Pack<Dtype, V>{};
    if (L > 1) {
      if (exists) pack = *reinterpret_cast<const Pack<Dtype, V>*>(row);
    } else {
#pragma unroll
      for (int v = 0; v < V; ++v)
        if (exists && v < left) pack.v[v] = row[v];
    }
  }
  __device__ __forceinline__ float at(int v) const { return pack.v[v]; }
};

// Adds up the sums of a block's threads, and writes them as part blockIdx.y of channel blockIdx.x
// to the workspace.
template <int K>
__device__ __forceinline__ void add_block(const float (&sums)[K * K + 1], float* __restrict__ workspace,
                                          int parts) {
  __shared__ float warp_sums[kWeightThreads / 32][K * K + 1];
#pragma unroll
  for (int i = 0; i <= K * K; ++i) {
    float sum = sums[i];
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32][i] = sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i <= K * K; i += kWeightThreads) {
    float sum = 0;
    for (int warp = 0; warp < kWeightThreads / 32; ++warp) sum += warp_sums[warp][i];
    workspace[(int64_t(blockIdx.x) * (K * K + 1) + i) * parts + blockIdx.y] = sum;
  }
}

// A block adds up one part of one channel. It works in strips that are V outputs wide,
// as in forward_nchw_rows.cuh.
template <typename Dtype, int K, int S, int D, int V, int L>
__global__ void __launch_bounds__(kWeightThreads)
    backward_weight_nchw_strip_kernel(const WeightNchwGeometry geometry, const Dtype* __restrict__ bottom,
                                      const Dtype* __restrict__ top_diff, float* __restrict__ workspace) {
  const RowsGeometry& g = geometry.rows;
  const int channel = blockIdx.x, part = blockIdx.y;
  constexpr int kOpen = (K - 1) / S;
  float sums[K * K + 1] = {};  // the last one is bias_diff
  const int end = min(geometry.items, (part + 1) * geometry.items_per_part);
  for (int item = part * geometry.items_per_part + threadIdx.x; item < end; item += kWeightThreads) {
    const int x = item % g.groups * V;
    int rest = item / g.groups;
    const int chunk = rest % g.chunks;
    rest /= g.chunks;
    const int phase = rest % g.dilation_h;
    const int64_t plane = int64_t(rest / g.dilation_h) * g.channels + channel;
    const Dtype* in = bottom + plane * g.height * g.width;
    const Dtype* out = top_diff + plane * g.top_height * g.top_width + x;
    const int step = g.dilation_h;
    const int first = phase + chunk * g.rows * step, last = min(g.top_height, first + g.rows * step);

    // diffs[s]: the row of top_diff s steps above y. The first S rows of bottom for y are multiplied by all
    // of them.
    float diffs[kOpen + 1][V] = {};
    using Row = Window<Dtype, K, S, D, V, L>;
    const int column = Row::first_column(x, g.pad_w);
    int iy = first * S - g.pad_h;
    for (int y = first; y < last + kOpen * step; y += step) {
      Row rows[S];
      DiffRow<Dtype, V, L> diff;
#pragma unroll
      for (int i = 0; i < S; ++i, iy += step)
        rows[i].load(in + iy * g.width, static_cast<unsigned>(iy) < static_cast<unsigned>(g.height), column,
                     g.width);
      diff.load(out + y * g.top_width, y < last, g.top_width - x);
#pragma unroll
      for (int s = kOpen; s > 0; --s)
#pragma unroll
        for (int v = 0; v < V; ++v) diffs[s][v] = diffs[s - 1][v];
#pragma unroll
      for (int v = 0; v < V; ++v) diffs[0][v] = diff.at(v);
#pragma unroll
      for (int v = 0; v < V; ++v) sums[K * K] += diffs[0][v];
      add_products<K, S, D, V>(sums, diffs, rows);
    }
  }

  add_block<K>(sums, workspace, geometry.parts);
}

// The same for patches of R rows of top_diff, with all loads before the first use. For K = 3,
// as in forward_nchw_rows.cuh.
template <typename Dtype, int K, int S, int D, int V, int L, int R>
__global__ void __launch_bounds__(kWeightThreads)
    backward_weight_nchw_patch_kernel(const WeightNchwGeometry geometry, const Dtype* __restrict__ bottom,
                                      const Dtype* __restrict__ top_diff, float* __restrict__ workspace) {
  const RowsGeometry& g = geometry.rows;
  const int channel = blockIdx.x, part = blockIdx.y;
  float sums[K * K + 1] = {};
  const int end = min(geometry.items, (part + 1) * geometry.items_per_part);
  for (int item = part * geometry.items_per_part + threadIdx.x; item < end; item += kWeightThreads) {
    const int x = item % g.groups * V;
    int rest = item / g.groups;
    const int chunk = rest % g.chunks;
    rest /= g.chunks;
    const int phase = rest % g.dilation_h, step = g.dilation_h;
    const int64_t plane = int64_t(rest / g.dilation_h) * g.channels + channel;
    const int first = phase + chunk * R * step;
    const Dtype* in = bottom + plane * g.height * g.width;
    const Dtype* out = top_diff + plane * g.top_height * g.top_width + x;
    using Row = Window<Dtype, K, S, D, V, L>;
    const int column = Row::first_column(x, g.pad_w);
    constexpr int kRows = (R - 1) * S + K;
    Row rows[kRows];
    DiffRow<Dtype, V, L> diffs[R];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int iy = first * S - g.pad_h + i * step;
      rows[i].load(in + iy * g.width, static_cast<unsigned>(iy) < static_cast<unsigned>(g.height), column,
                   g.width);
    }
#pragma unroll
    for (int t = 0; t < R; ++t) {
      const int y = first + t * step;
      diffs[t].load(out + y * g.top_width, y < g.top_height, g.top_width - x);
    }
#pragma unroll
    for (int t = 0; t < R; ++t)
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const float diff = diffs[t].at(v);
        sums[K * K] += diff;
#pragma unroll
        for (int ki = 0; ki < K; ++ki)
#pragma unroll
          for (int kj = 0; kj < K; ++kj) sums[ki * K + kj] += diff * rows[t * S + ki].at(v * S + kj * D);
      }
  }
  add_block<K>(sums, workspace, geometry.parts);
}

// How the work is divided. It depends only on the shape, because callers ask for the workspace's size before
// the call.
template <int K, int S>
WeightNchwGeometry weight_nchw_geometry(const Shape& shape, int vector) {
  WeightNchwGeometry geometry;
  RowsGeometry& g = geometry.rows;
  g = rows_geometry(
      shape, vector,
      K == 3 ? weight_patch_rows(S) : strip_rows(shape, K, ceil_div(shape.top_width, vector), 80000));
  const int64_t items = shape.num * g.dilation_h * g.chunks * g.groups;
  geometry.items = items < int64_t(1) << 30 ? static_cast<int>(items) : -1;
  const int64_t most = ceil_div(items, (K == 3 ? 8 : 2) * kWeightThreads);  // or the end sums cost too much
  const int64_t wanted = ceil_div(4096, shape.channels);                    // blocks enough for a large GPU
  const int64_t parts = std::max<int64_t>(1, std::min<int64_t>({most, wanted, 65535}));
  geometry.items_per_part = static_cast<int>(ceil_div(items, parts));
  geometry.parts = static_cast<int>(ceil_div(items, geometry.items_per_part));
  return geometry;
}

// ------------------------------------------------------------------------------- choice and stage two

// One warp adds the parts of one sum.
template <typename Dtype>
__global__ void __launch_bounds__(128)
    add_parts_kernel(const float* __restrict__ workspace, const int sums, const int taps, const int parts,
                     const Parameters<Dtype> weight_diff, const Parameters<Dtype> bias_diff) {
  const int index = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (index >= sums) return;
  float sum = 0;
  for (int part = lane; part < parts; part += 32) sum += workspace[int64_t(index) * parts + part];
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  if (lane != 0) return;
  const int channel = index / (taps + 1), tap = index % (taps + 1);
  if (tap < taps) {
    if (weight_diff) weight_diff.set(channel * taps + tap, sum);
  } else {
    if (bias_diff) bias_diff.set(channel, sum);
  }
}

// Returns the number of parts, or 0 if no fast kernel takes this shape. Launches stage one if
// `call` is given.
template <typename Dtype, int K, int S, int D>
int weight_nchw(const Shape& shape, const Backward<Dtype>* call, cudaStream_t stream) {
  // The number of parts must not depend on pointers, which are unknown when callers ask for
  // the workspace's size.
  const bool same = shape.pad_w == (K - 1) * D / 2;
  const auto rows_allow = [&](int n) { return same && shape.width % n == 0 && shape.top_width % n == 0; };
  constexpr int kWidest = sizeof(Dtype) == 2 && K == 3 && S == 1 && D == 1 ? 8 : 4;
  const WeightNchwGeometry planned = weight_nchw_geometry<K, S>(shape, rows_allow(kWidest) ? kWidest : 4);
  if (planned.items < 0) return 0;
  if (!call) return planned.parts;
  const dim3 grid(static_cast<unsigned>(shape.channels), static_cast<unsigned>(planned.parts));
  const auto launch = [&](auto outputs, auto pack) {
    constexpr int V = decltype(outputs)::value, L = decltype(pack)::value;
    WeightNchwGeometry geometry = weight_nchw_geometry<K, S>(shape, V);
    geometry.parts = planned.parts;
    geometry.items_per_part = static_cast<int>(ceil_div(geometry.items, geometry.parts));
    if constexpr (K == 3)
      backward_weight_nchw_patch_kernel<Dtype, K, S, D, V, L, weight_patch_rows(S)>
          <<<grid, kWeightThreads, 0, stream>>>(geometry, call->bottom, call->top_diff, call->workspace);
    else
      backward_weight_nchw_strip_kernel<Dtype, K, S, D, V, L>
          <<<grid, kWeightThreads, 0, stream>>>(geometry, call->bottom, call->top_diff, call->workspace);
  };
  const auto allows = [&](int n) {
    return rows_allow(n) && aligned(call->bottom, n * sizeof(Dtype)) &&
           aligned(call->top_diff, n * sizeof(Dtype));
  };
  using std::integral_constant;
  if (allows(kWidest))
    launch(integral_constant<int, kWidest>(), integral_constant<int, kWidest>());
  else if (kWidest > 4 && allows(4))
    launch(integral_constant<int, 4>(), integral_constant<int, 4>());
  else
    launch(integral_constant<int, 4>(), integral_constant<int, 1>());
  return planned.parts;
}

// Stage one. Some kernels compute bottom_diff, too.
template <typename Dtype>
Parts backward_nchw(const Shape& shape, const Backward<Dtype>* call, cudaStream_t stream) {
  const int s = shape.stride_w, d = shape.dilation_w;
  if (shape.stride_h != s || (s != 1 && shape.dilation_h != 1)) return {};
  Parts parts = {};
  if (shape.square(3) && s == 1) parts = backward_nchw_planes<Dtype, 3, 1>(shape, call, stream);
  if (shape.square(3) && s == 2) parts = backward_nchw_planes<Dtype, 3, 2>(shape, call, stream);
  if (shape.square(5) && s == 1) parts = backward_nchw_planes<Dtype, 5, 1>(shape, call, stream);
  if (parts.count > 0) return parts;
#define DEPTHWISE_TRY(K, S, D) \
  if (shape.square(K) && s == S && d == D) return {weight_nchw<Dtype, K, S, D>(shape, call, stream), false};
  DEPTHWISE_TRY(3, 1, 1)
  DEPTHWISE_TRY(3, 2, 1)
  DEPTHWISE_TRY(3, 1, 2)
  DEPTHWISE_TRY(5, 1, 1)
  DEPTHWISE_TRY(5, 2, 1)
  DEPTHWISE_TRY(5, 1, 2)
  DEPTHWISE_TRY(7, 1, 1)
#undef DEPTHWISE_TRY
  return {};
}

template <typename Dtype>
void add_parts(const Shape& shape, int64_t parts, const float* workspace, Parameters<Dtype> weight_diff,
               Parameters<Dtype> bias_diff, cudaStream_t stream) {
  const int sums = static_cast<int>(shape.channels * (shape.taps() + 1));
  add_parts_kernel<Dtype><<<static_cast<unsigned>(ceil_div(sums, 4)), 128, 0, stream>>>(
      workspace, sums, shape.taps(), static_cast<int>(parts), weight_diff, bias_diff);
}

}  // namespace depthwise

#endif  // DEPTHWISE_BACKWARD_WEIGHT_CUH_
