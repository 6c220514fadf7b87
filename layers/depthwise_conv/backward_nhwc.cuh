// Both gradients, NHWC (channels_last), in one pass over top_diff:
//
//   bottom_diff[n,iy,ix,c] = sum over ki,kj: weight[c,ki,kj] * top_diff[n,y,x,c]
//   weight_diff[c,ki,kj]   = sum over n,iy,ix: bottom[n,iy,ix,c] * top_diff[n,y,x,c]
//   bias_diff[c]           = sum over n,y,x: top_diff[n,y,x,c]
//   y*S + ki*dilation_h = iy + pad_h,  x*S + kj*dilation_w = ix + pad_w
//
// Both gradients need the same pixels of top_diff for a pixel of bottom, so its thread loads them once. The
// threads keep their sums of weight_diff in registers while they go from chunk to chunk. Then each block adds
// up its threads' sums, and writes them to workspace [channels, K*K + 1, parts]; the last sum is bias_diff's.
// Without atomics, so each run gives the same bits.
#ifndef DEPTHWISE_BACKWARD_NHWC_CUH_
#define DEPTHWISE_BACKWARD_NHWC_CUH_

#include "depthwise_fast.h"
#include "nhwc.cuh"

namespace depthwise {

template <typename Dtype>
struct BackwardNhwc {
  NhwcGeometry g;
  int parts;  // blocks that share the items of one tile
  // As in Backward. Without a workspace there are no sums, and bottom is not read.
  const Dtype *bottom, *top_diff;
  Parameters<Dtype> weight;
  Dtype* bottom_diff;
  float* workspace;
  bool bias_wanted;
};

// Shared memory: first the loaded pixels, and after their last use the sums of as many taps as fit.
template <typename Ring>
union NhwcRoom {
  static constexpr int kFloats = sizeof(Ring) / sizeof(float);
  Ring ring;
  float sums[kFloats];
};

// Adds up the sums of a block's threads, and writes them as one part of the workspace.
template <int N, int V, typename Room>
__device__ __forceinline__ void add_nhwc_block(const float (&sums)[N][V], Room& room, const NhwcThread& t,
                                               const NhwcGeometry& g, float* __restrict__ workspace,
                                               int parts, int part) {
  // Few batches, because the loop is unrolled, and its body takes most of ptxas's time.
  constexpr int kBatch = Room::kFloats / (kNhwcThreads * V);
  const int lanes = g.lanes * V;
#pragma unroll
  for (int first = 0; first < N; first += kBatch) {
    __syncthreads();
    if (t.in_block < t.per_block)
#pragma unroll
      for (int i = first; i < N && i < first + kBatch; ++i)
#pragma unroll
        for (int v = 0; v < V; ++v)
          room.sums[((i - first) * t.per_block + t.in_block) * lanes + t.lane * V + v] = sums[i][v];
    __syncthreads();
    const int taps = N - first < kBatch ? N - first : kBatch;
#pragma unroll 1
    for (int k = threadIdx.x; k < taps * lanes; k += kNhwcThreads) {
      const int tap = k / lanes, channel = k % lanes;
      float sum = 0;
#pragma unroll 1
      for (int r = 0; r < t.per_block; ++r) sum += room.sums[(tap * t.per_block + r) * lanes + channel];
      if (t.tile + channel < g.channels)
        workspace[(int64_t(t.tile + channel) * N + first + tap) * parts + part] = sum;
    }
  }
}

// Stride 1. A row of top_diff adds to K rows of bottom_diff, whose sums stay in registers until they are
// complete. It is multiplied by the same K rows of bottom.
template <typename Dtype, int K, int V, int R, int B>
__global__ void __launch_bounds__(kNhwcThreads, B) backward_nhwc_kernel(const BackwardNhwc<Dtype> call) {
  const NhwcGeometry& g = call.g;
  __shared__ NhwcWeights<K, V> shared;
  const NhwcThread t(g, blockIdx.x % g.tiles, V);
  const int part = blockIdx.x / g.tiles;
  shared.load(call.weight + int64_t(t.tile) * (K * K), min(g.lanes * V, g.channels - t.tile), false);
  float sums[K * K + 1][V] = {};
  constexpr int kColumns = R + K - 1;  // columns of top_diff that R columns of bottom need
  const int step = g.dilation_h, pixel = g.dilation_w * g.channels;
  const int extent = max(g.height, g.top_height);
  const int pitch = g.width * g.channels, top_pitch = g.top_width * g.channels;
  const int own = K - 1 - g.pad_w / g.dilation_w;  // the first of these columns that the thread owns
  const auto inside = [&](int row) {
    return static_cast<unsigned>(row) < static_cast<unsigned>(g.top_height);
  };
  using Ring = NhwcRing<Dtype, V, kColumns + R>;
  __shared__ NhwcRoom<Ring> room;
  Ring& ring = room.ring;
  const int items = t.inside ? g.items : 0;
  for (int index = part * t.per_block + t.in_block; index < items; index += call.parts * t.per_block) {
    const NhwcItem item(g, index, R);
    const int end = min(item.end, extent);
    int y = item.y - (K - 1) * step;
    const int tx = item.x + g.pad_w - (K - 1) * g.dilation_w;
    const unsigned top_columns = columns_inside<kColumns>(tx, g.dilation_w, g.top_width);
    const unsigned columns = columns_inside<R>(item.x, g.dilation_w, g.width);
    const Dtype* top_row = call.top_diff + (int64_t(item.image) * g.top_height + y + g.pad_h) * top_pitch +
                           int64_t(tx) * g.channels + t.channel;
    const int64_t first =
        (int64_t(item.image) * g.height + y) * pitch + int64_t(item.x) * g.channels + t.channel;
    const Dtype* row = call.bottom + first + int64_t(K - 1) * step * pitch;  // bottom's row, K - 1 rows ahead
    Dtype* to = call.bottom_diff + first;

    float open[K - 1][R][V] = {};  // open[s]: the row of bottom_diff s + 1 steps below y
    float seen[K][R][V] = {};      // seen[s]: the row of bottom s steps below y
    int ahead = y;
    const auto start_rows = [&](int slot) {
      const int below = ahead + (K - 1) * step;
      // Do not start loads that nobody reads: they could arrive late, and overwrite the next item's pixels in
      // the same slot.
      if (ahead < end) {
        ring.template start<kColumns>(slot, 0, top_row, pixel, inside(ahead + g.pad_h) ? top_columns : 0);
        ring.template start<R>(slot, kColumns, row, pixel,
                               call.workspace && below < end && below < g.height ? columns : 0);
      }
      end_of_copies();
      ahead += step, top_row += int64_t(step) * top_pitch, row += int64_t(step) * pitch;
    };
#pragma unroll
    for (int slot = 0; slot < Ring::kDepth - 1; ++slot) start_rows(slot);
    int slot = 0, free_slot = Ring::kDepth - 1;
    for (; y < end; y += step, to += int64_t(step) * pitch) {
      start_rows(free_slot);
      wait_for_copies<Ring::kDepth - 1>();
      float diffs[kColumns][V], done[R][V];
      ring.template read<kColumns>(slot, 0, diffs);
      ring.template read<R>(slot, kColumns, seen[K - 1]);
      free_slot = slot;
      slot = Ring::after(slot);
      const int ty = y + g.pad_h;
#pragma unroll
      for (int s = 0; s < K; ++s) {
        float (&into)[R][V] = s == 0 ? done : open[s > 0 ? s - 1 : 0];
#pragma unroll
        for (int i = 0; i < R * V; ++i)
          into[i / V][i % V] = s < K - 1 ? open[s < K - 1 ? s : 0][i / V][i % V] : 0.f;
        // For large kernels the multiply-adds are the limit. Skip rows that do not exist or that other
        // threads own.
        if (K > 3 && !(inside(ty) && y + s * step >= item.y && y + s * step < end)) continue;
#pragma unroll
        for (int i = 0; i < K; ++i) {  // in the forward kernel's order, for the same bits
          const int kj = K - 1 - i;
          const Pack<float, V> w = shared.taps[s * K + kj][t.lane];
#pragma unroll
          for (int x = 0; x < R; ++x)
#pragma unroll
            for (int v = 0; v < V; ++v) {
              const float diff = diffs[x + i][v];
              into[x][v] += w.v[v] * diff;
              sums[s * K + kj][v] += seen[s][x][v] * diff;
            }
        }
      }
      if (call.bias_wanted && ty >= item.y && ty < end) {
#pragma unroll
        for (int i = 0; i < kColumns; ++i)
          if (static_cast<unsigned>(i - own) < static_cast<unsigned>(R))
#pragma unroll
            for (int v = 0; v < V; ++v) sums[K * K][v] += diffs[i][v];
      }
      if (call.bottom_diff && y >= item.y && y < g.height) {
#pragma unroll
        for (int x = 0; x < R; ++x)
          if (columns >> x & 1) store_pixel<Dtype, V>(to + x * pixel, done[x]);
      }
#pragma unroll
      for (int s = 0; s < K - 1; ++s)
#pragma unroll
        for (int i = 0; i < R * V; ++i) seen[s][i / V][i % V] = seen[s + 1][i / V][i % V];
    }
  }
  if (call.workspace) add_nhwc_block<K * K + 1, V>(sums, room, t, g, call.workspace, call.parts, part);
}

// Stride 2. Column x of top_diff owns the padded columns 2x and 2x + 1 of bottom, and row y the padded rows
// 2y and 2y + 1. The taps that reach a pixel depend on whether its row and column are even, which is known at
// compile time.
template <typename Dtype, int K, int V, int R, int B>
__global__ void __launch_bounds__(kNhwcThreads, B)
    backward_nhwc_stride2_kernel(const BackwardNhwc<Dtype> call) {
  const NhwcGeometry& g = call.g;
  __shared__ NhwcWeights<K, V> shared;
  const NhwcThread t(g, blockIdx.x % g.tiles, V);
  const int part = blockIdx.x / g.tiles;
  shared.load(call.weight + int64_t(t.tile) * (K * K), min(g.lanes * V, g.channels - t.tile), false);
  float sums[K * K + 1][V] = {};
  constexpr int kTaps = (K + 1) / 2;       // the most taps that reach one pixel along one axis
  constexpr int kColumns = R + kTaps - 1;  // columns of top_diff that the thread's columns of bottom need
  const int extent = max(g.top_height, (g.height + g.pad_h + 1) / 2);
  const int pitch = g.width * g.channels, top_pitch = g.top_width * g.channels;
  const auto inside = [&](int row) { return static_cast<unsigned>(row) < static_cast<unsigned>(g.height); };
  using Ring = NhwcRing<Dtype, V, kColumns + 4 * R>;
  __shared__ NhwcRoom<Ring> room;
  Ring& ring = room.ring;
  const int items = t.inside ? g.items : 0;
  for (int index = part * t.per_block + t.in_block; index < items; index += call.parts * t.per_block) {
    const NhwcItem item(g, index, R);
    const int end = min(item.end, extent);
    int y = item.y - (kTaps - 1);
    const int tx = item.x - (kTaps - 1), ix = 2 * item.x - g.pad_w;
    const unsigned top_columns = columns_inside<kColumns>(tx, 1, g.top_width);
    const unsigned columns = columns_inside<2 * R>(ix, 1, g.width);
    const Dtype* top_row = call.top_diff + (int64_t(item.image) * g.top_height + y) * top_pitch +
                           int64_t(tx) * g.channels + t.channel;
    int64_t at =
        (int64_t(item.image) * g.height + 2 * y - g.pad_h) * pitch + int64_t(ix) * g.channels + t.channel;
    float diffs[kTaps][kColumns][V] = {};  // diffs[b]: row y - b of top_diff
    int ahead = y;
    const Dtype* row = call.bottom + at;
    const auto start_rows = [&](int slot) {
      const bool exists = static_cast<unsigned>(ahead) < static_cast<unsigned>(g.top_height);
      if (ahead < end) {  // as above
        ring.template start<kColumns>(slot, 0, top_row, g.channels, exists ? top_columns : 0);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const bool there = call.workspace && ahead >= item.y && inside(2 * ahead - g.pad_h + e);
          ring.template start<2 * R>(slot, kColumns + e * 2 * R, row + int64_t(e) * pitch, g.channels,
                                     there ? columns : 0);
        }
      }
      end_of_copies();
      ++ahead, top_row += top_pitch, row += 2 * int64_t(pitch);
    };
#pragma unroll
    for (int slot = 0; slot < Ring::kDepth - 1; ++slot) start_rows(slot);
    int slot = 0, free_slot = Ring::kDepth - 1;
    for (; y < end; ++y, at += 2 * int64_t(pitch)) {
      start_rows(free_slot);
      wait_for_copies<Ring::kDepth - 1>();
#pragma unroll
      for (int b = kTaps - 1; b > 0; --b)
#pragma unroll
        for (int i = 0; i < kColumns * V; ++i) diffs[b][i / V][i % V] = diffs[b - 1][i / V][i % V];
      ring.template read<kColumns>(slot, 0, diffs[0]);
      const int full = slot;
      free_slot = slot;
      slot = Ring::after(slot);
      if (y < item.y) continue;
      Dtype* to = call.bottom_diff + at;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const bool stored = call.bottom_diff && inside(2 * y - g.pad_h + e);
        float pixels[2 * R][V];
        ring.template read<2 * R>(full, kColumns + e * 2 * R, pixels);
#pragma unroll
        for (int f = 0; f < 2; ++f) {
          float done[R][V] = {};
#pragma unroll
          for (int b = 0; 2 * b + e < K; ++b)
#pragma unroll
            for (int a = 0; 2 * a + f < K; ++a) {
              const int tap = (2 * b + e) * K + 2 * a + f;
              const Pack<float, V> w = shared.taps[tap][t.lane];
#pragma unroll
              for (int x = 0; x < R; ++x)
#pragma unroll
                for (int v = 0; v < V; ++v) {
                  const float diff = diffs[b][x + kTaps - 1 - a][v];
                  done[x][v] += w.v[v] * diff;
                  sums[tap][v] += pixels[2 * x + f][v] * diff;
                }
            }
#pragma unroll
          for (int x = 0; x < R; ++x)
            if (stored && columns >> (2 * x + f) & 1)
              store_pixel<Dtype, V>(to + int64_t(e) * pitch + (2 * x + f) * g.channels, done[x]);
        }
      }
      if (call.bias_wanted) {
#pragma unroll
        for (int x = 0; x < R; ++x)
#pragma unroll
          for (int v = 0; v < V; ++v) sums[K * K][v] += diffs[0][x + kTaps - 1][v];
      }
    }
  }
  if (call.workspace) add_nhwc_block<K * K + 1, V>(sums, room, t, g, call.workspace, call.parts, part);
}

// How the work is divided. It depends only on the shape, because callers ask for the workspace's size before
// the call.
template <typename Dtype, int K, int S, int V, int R, int B>
BackwardNhwc<Dtype> backward_nhwc_geometry(const Shape& s) {
  constexpr int64_t kSlots = 132 * B;  // the blocks that a large GPU runs at once
  BackwardNhwc<Dtype> call = {};
  const int64_t row =
      S == 1 ? std::max(s.width, s.top_width) : std::max(s.top_width, (s.width + s.pad_w + 1) / 2);
  const int64_t column =
      S == 1 ? std::max(s.height, s.top_height) : std::max(s.top_height, (s.height + s.pad_h + 1) / 2);
  call.g = nhwc_geometry(s, V, sizeof(Dtype), R, row, column, K == 3 ? 32 : 64, kSlots * kNhwcThreads);
  if (call.g.items < 0) return call;
  const int64_t blocks =
      ceil_div(call.g.items, kNhwcThreads / call.g.lanes);  // for one tile, if each did one item
  const int64_t rounds = ceil_div(blocks * call.g.tiles, kSlots);
  call.parts = static_cast<int>(ceil_div(blocks, rounds));
  return call;
}

template <typename Dtype, int K, int S>
int64_t choose_backward_nhwc(const Shape& s, const Backward<Dtype>* call, cudaStream_t stream) {
  // The fastest on an H200. B: a multiprocessor must have registers for so many blocks.
  constexpr int V = 2, R = S == 1 && K == 3 && sizeof(Dtype) == 2 ? 4 : 2, B = K == 3 ? 4 : K == 5 ? 3 : 2;
  BackwardNhwc<Dtype> wide = backward_nhwc_geometry<Dtype, K, S, V, R, B>(s),
                      narrow = backward_nhwc_geometry<Dtype, K, S, 1, R, B>(s);
  if (wide.g.items < 0 || narrow.g.items < 0 || int64_t(wide.parts) * narrow.g.tiles >= 1 << 30) return 0;
  // The number of parts must not depend on alignment, which is unknown when callers ask for
  // the workspace's size.
  const int parts = s.channels % V == 0 ? wide.parts : narrow.parts;
  if (!call) return parts;
  const auto fits = [&](const void* pointer) { return aligned(pointer, V * sizeof(Dtype)); };
  const bool use_wide =
      s.channels % V == 0 && fits(call->bottom) && fits(call->top_diff) && fits(call->bottom_diff);
  BackwardNhwc<Dtype>& chosen = use_wide ? wide : narrow;
  chosen.parts = parts;
  chosen.bottom = call->bottom;
  chosen.top_diff = call->top_diff;
  chosen.weight = call->weight;
  chosen.bottom_diff = call->bottom_diff;
  chosen.workspace = call->weight_wanted() ? call->workspace : nullptr;
  chosen.bias_wanted = bool(call->bias_diff);
  const unsigned blocks = static_cast<unsigned>(parts * chosen.g.tiles);
  if constexpr (S == 1) {
    if (use_wide)
      backward_nhwc_kernel<Dtype, K, V, R, B><<<blocks, kNhwcThreads, 0, stream>>>(chosen);
    else
      backward_nhwc_kernel<Dtype, K, 1, R, B><<<blocks, kNhwcThreads, 0, stream>>>(chosen);
  } else {
    if (use_wide)
      backward_nhwc_stride2_kernel<Dtype, K, V, R, B><<<blocks, kNhwcThreads, 0, stream>>>(chosen);
    else
      backward_nhwc_stride2_kernel<Dtype, K, 1, R, B><<<blocks, kNhwcThreads, 0, stream>>>(chosen);
  }
  return parts;
}

// Returns the number of parts, or 0 if no kernel takes this shape. Launches the kernel if `call` is given.
template <typename Dtype>
int64_t backward_nhwc(const Shape& s, const Backward<Dtype>* call, cudaStream_t stream) {
  const int stride = s.stride_w;
  if (stride != s.stride_h) return 0;
  if (stride == 2 && (s.dilation_h != 1 || s.dilation_w != 1)) return 0;
  // For bias_diff each pixel of top_diff must belong to a thread.
  if (s.pad_h % s.dilation_h || s.pad_w % s.dilation_w || s.pad_h > (s.kernel_h - 1) * s.dilation_h ||
      s.pad_w > (s.kernel_w - 1) * s.dilation_w)
    return 0;
#define DEPTHWISE_TRY(K, S) \
  if (s.square(K) && stride == S) return choose_backward_nhwc<Dtype, K, S>(s, call, stream);
  DEPTHWISE_TRY(3, 1)
  DEPTHWISE_TRY(3, 2)
  DEPTHWISE_TRY(5, 1)
  DEPTHWISE_TRY(5, 2)
  DEPTHWISE_TRY(7, 1)
#undef DEPTHWISE_TRY
  return 0;
}

}  // namespace depthwise

#endif  // DEPTHWISE_BACKWARD_NHWC_CUH_
