// Forward, NCHW, planes of any size:
//
//   top[n,c,y,x] = bias[c] + sum over ki,kj: weight[c,ki,kj] * bottom[n,c,iy,ix]
//   iy = y*S - pad + ki*dilation,  ix = x*S - pad + kj*D
//
// A thread owns V neighbouring outputs, and goes down the plane. It reads each row of bottom once, adds it to
// all output rows that need it, and keeps their sums in registers. There are two kernels:
//
//   patch   R output rows, with all loads before the first use. For K = 3, where memory is the limit: many
//           loads should be in flight, and rows that neighbours also read come from the cache.
//   strip   any number of rows, each loaded one step ahead. For K = 5 and 7, where the multiply-adds are the
//           limit: many short patches would repeat too many rows at their ends.
//
// With a dilation, neighbouring output rows share no rows of bottom: they are in separate patches and strips.
//
// With stride 1 the gradient to bottom is the same function of top_diff, with the weights turned
// by 180 degrees.
#ifndef DEPTHWISE_FORWARD_NCHW_ROWS_CUH_
#define DEPTHWISE_FORWARD_NCHW_ROWS_CUH_

#include "depthwise_shape.h"

namespace depthwise {

// The part of a row of bottom that V neighbouring outputs need. L > 1: it is loaded as aligned packs of L.
// Each pack is wholly inside or outside the row, which requires width % L == 0, V % L == 0 and a padding that
// keeps the size. If at most one more element is needed at each end, it is loaded alone. L == 1: one element
// at a time, for any width and padding.
template <typename Dtype, int K, int S, int D, int V, int L>
struct Window {
  static constexpr int kElements = (V - 1) * S + (K - 1) * D + 1;
  static constexpr int kPad = L == 1 ? 0 : (K - 1) * D / 2;
  static constexpr bool kSingles = L > 1 && kPad == 1;
  static constexpr int kBefore =
      kSingles ? 0 : (kPad + L - 1) / L;  // packs left of the first output's own column
  static constexpr int kPacks = kSingles ? V * S / L : kBefore + (kElements - kPad - 1) / L + 1;
  static constexpr bool kRight = kSingles && kElements - kPad > V* S;
  Pack<Dtype, L> packs[kPacks];
  Dtype left, right;

  static __device__ __forceinline__ int first_column(int x, int pad) {
    return x * S - (L == 1 ? pad : kBefore * L);
  }

  __device__ __forceinline__ void load(const Dtype* row, bool row_exists, int column, int width) {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int at = column + i * L;
      packs[i] = Pack<Dtype, L>{};
      if (row_exists && static_cast<unsigned>(at) < static_cast<unsigned>(width))
        packs[i] = *reinterpret_cast<const Pack<Dtype, L>*>(row + at);
    }
    if (kSingles) {
      left = right = Dtype(0);
      if (row_exists && column > 0 && column <= width) left = row[column - 1];
      if (kRight && row_exists && column + V * S < width) right = row[column + V * S];
    }
  }

  __device__ __forceinline__ float at(int element) const {
    const int i = element - kPad + kBefore * L;
    if (kSingles && i < 0) return left;
    if (kSingles && i >= V * S) return right;
    return packs[i < 0 || i >= kPacks * L ? 0 : i / L].v[i < 0 ? 0 : i % L];
  }
};

// The K x K weights of one channel, turned by 180 degrees if `turned`.
template <int K, typename Dtype>
__device__ __forceinline__ void load_weights(float (&w)[K][K], Parameters<Dtype> source, bool turned) {
  source.with([&](const auto* from) {
#pragma unroll
    for (int i = 0; i < K * K; ++i) w[i / K][i % K] = from[turned ? K * K - 1 - i : i];
  });
}

// The sums of the incomplete output rows. A step takes S rows of bottom, and they complete one output row.
// sums[s] belongs to the output row s + 1 rows further down.
template <int K, int S, int D, int V>
struct RowSums {
  static constexpr int kOpen = (K - 1) / S;
  float w[K][K];
  float bias;
  float sums[kOpen][V];

  template <typename Rows>
  __device__ __forceinline__ void step(const Rows (&rows)[S], float (&done)[V]) {
#pragma unroll
    for (int s = 0; s <= kOpen; ++s) {
#pragma unroll
      for (int x = 0; x < V; ++x) {
        float sum = s < kOpen ? sums[s < kOpen ? s : 0][x] : bias;
#pragma unroll
        for (int i = 0; i < S; ++i) {
          const int ki = K - S + i - S * s;
          if (ki < 0) continue;
#pragma unroll
          for (int kj = 0; kj < K; ++kj) sum += w[ki][kj] * rows[i].at(x * S + kj * D);
        }
        if (s == 0)
          done[x] = sum;
        else
          sums[s > 0 ? s - 1 : 0][x] = sum;
      }
    }
  }
};

// Stores V neighbouring outputs. The first `left` of them are inside the row (all, if L > 1).
template <typename Dtype, int V, int L>
__device__ __forceinline__ void store_row(Dtype* to, const float (&done)[V], int left) {
  if (L > 1) {
    Pack<Dtype, V> out;
#pragma unroll
    for (int i = 0; i < V; ++i) out.v[i] = done[i];
    *reinterpret_cast<Pack<Dtype, V>*>(to) = out;
  } else {
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (i < left) to[i] = done[i];
  }
}

struct RowsGeometry {
  int channels, height, width, top_height, top_width, pad_h, pad_w, dilation_h;
  int groups;  // of V outputs in a row
  int chunks;  // of `rows` output rows, `dilation_h` apart
  int rows;
  int threads;
};

template <typename Dtype, int K, int S, int D, int V, int L>
__global__ void __launch_bounds__(128)
    forward_nchw_strip_kernel(const RowsGeometry g, const Dtype* __restrict__ bottom,
                              const Parameters<Dtype> weight, const Epilogue<Dtype> after,
                              Dtype* __restrict__ top, const bool turned) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= g.threads) return;
  const int x = thread % g.groups * V;
  int rest = thread / g.groups;
  const int chunk = rest % g.chunks;
  rest /= g.chunks;
  const int phase = rest % g.dilation_h, plane = rest / g.dilation_h;

  const Dtype* from = bottom + int64_t(plane) * g.height * g.width;
  Dtype* to = top + int64_t(plane) * g.top_height * g.top_width + x;
  const int step = g.dilation_h;  // between this thread's output rows, and between its input rows
  const int first = phase + chunk * g.rows * step, last = min(g.top_height, first + g.rows * step);

  RowSums<K, S, D, V> sums;
  constexpr int kOpen = RowSums<K, S, D, V>::kOpen;
  load_weights<K>(sums.w, weight + plane % g.channels * (K * K), turned);
  sums.bias = after.start(plane % g.channels);
#pragma unroll
  for (int i = 0; i < kOpen * V; ++i) sums.sums[i / V][i % V] = 0;

  using Row = Window<Dtype, K, S, D, V, L>;
  const int column = Row::first_column(x, g.pad_w);
  // iy: the last S of the K rows that output row y needs. The first kOpen steps complete no output row.
  int y = first - kOpen * step, iy = y * S - g.pad_h + (K - S) * step;
  Row rows[S], next[S];
#pragma unroll
  for (int i = 0; i < S; ++i, iy += step)
    rows[i].load(from + int64_t(iy) * g.width, static_cast<unsigned>(iy) < static_cast<unsigned>(g.height),
                 column, g.width);
  for (; y < last; y += step) {
#pragma unroll
    for (int i = 0; i < S; ++i, iy += step) {  // load ahead, so that the multiply-adds hide the wait
      const bool exists = static_cast<unsigned>(iy) < static_cast<unsigned>(g.height) && y + step < last;
      next[i].load(from + iy * g.width, exists, column, g.width);
    }
    float done[V];
    sums.step(rows, done);
    // Two stores, so that the one that mostly runs needs no branch.
    if (y >= first && !after.activation) store_row<Dtype, V, L>(to + y * g.top_width, done, g.top_width - x);
    if (y >= first && after.activation) {
      after.finish(done);
      store_row<Dtype, V, L>(to + y * g.top_width, done, g.top_width - x);
    }
#pragma unroll
    for (int i = 0; i < S; ++i) rows[i] = next[i];
  }
}

template <typename Dtype, int K, int S, int D, int V, int L, int R>
__global__ void __launch_bounds__(128)
    forward_nchw_patch_kernel(const RowsGeometry g, const Dtype* __restrict__ bottom,
                              const Parameters<Dtype> weight, const Epilogue<Dtype> after,
                              Dtype* __restrict__ top, const bool turned) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= g.threads) return;
  const int x = thread % g.groups * V;
  int rest = thread / g.groups;
  const int chunk = rest % g.chunks;
  rest /= g.chunks;
  const int phase = rest % g.dilation_h, plane = rest / g.dilation_h;
  const Dtype* from = bottom + int64_t(plane) * g.height * g.width;
  Dtype* to = top + int64_t(plane) * g.top_height * g.top_width + x;
  const int step = g.dilation_h, first = phase + chunk * R * step;

  RowSums<K, S, D, V> sums;
  constexpr int kOpen = RowSums<K, S, D, V>::kOpen;
  using Row = Window<Dtype, K, S, D, V, L>;
  const int column = Row::first_column(x, g.pad_w);
  Row rows[R + kOpen][S];
  int iy = (first - kOpen * step) * S - g.pad_h + (K - S) * step;
#pragma unroll
  for (int t = 0; t < R + kOpen; ++t)
#pragma unroll
    for (int i = 0; i < S; ++i, iy += step)
      rows[t][i].load(from + iy * g.width, static_cast<unsigned>(iy) < static_cast<unsigned>(g.height),
                      column, g.width);
  load_weights<K>(sums.w, weight + plane % g.channels * (K * K), turned);
  sums.bias = after.start(plane % g.channels);
#pragma unroll
  for (int i = 0; i < kOpen * V; ++i) sums.sums[i / V][i % V] = 0;
#pragma unroll
  for (int t = 0; t < R + kOpen; ++t) {
    float done[V];
    sums.step(rows[t], done);
    const int y = first + (t - kOpen) * step;
    if (t >= kOpen && y < g.top_height) {
      after.finish(done);
      store_row<Dtype, V, L>(to + y * g.top_width, done, g.top_width - x);
    }
  }
}

// Output rows per strip. Long strips repeat fewer rows at their ends. Short strips give more threads;
// wanted_strips threads fill a large GPU.
inline int strip_rows(const Shape& shape, int kernel, int64_t groups, int64_t wanted_strips) {
  const int64_t column = ceil_div(shape.top_height, shape.dilation_h);
  const int64_t columns = shape.num * shape.channels * groups * shape.dilation_h;
  const int64_t wanted = ceil_div(wanted_strips, columns);  // in a column
  const int64_t shortest = 4 * kernel;
  const int64_t strips = std::max<int64_t>(1, std::min(wanted, column / shortest));
  return static_cast<int>(ceil_div(column, strips));
}

inline RowsGeometry rows_geometry(const Shape& shape, int vector, int rows) {
  RowsGeometry g;
  g.channels = static_cast<int>(shape.channels);
  g.height = static_cast<int>(shape.height);
  g.width = static_cast<int>(shape.width);
  g.top_height = static_cast<int>(shape.top_height);
  g.top_width = static_cast<int>(shape.top_width);
  g.pad_h = shape.pad_h;
  g.pad_w = shape.pad_w;
  g.dilation_h = shape.dilation_h;
  g.groups = static_cast<int>(ceil_div(shape.top_width, vector));
  g.rows = rows;
  g.chunks = static_cast<int>(ceil_div(ceil_div(shape.top_height, g.dilation_h), g.rows));
  const int64_t threads = shape.num * shape.channels * g.dilation_h * g.chunks * g.groups;
  g.threads = threads < int64_t(1) << 31 ? static_cast<int>(threads) : -1;
  return g;
}

template <typename Dtype, int K, int S, int D, int V, int L>
bool launch_forward_nchw_rows(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight,
                              Epilogue<Dtype> after, Dtype* top, bool turned, cudaStream_t stream) {
  constexpr int kPatchRows = S == 1 ? 4 : 1;
  const RowsGeometry g = rows_geometry(
      shape, V, K == 3 ? kPatchRows : strip_rows(shape, K, ceil_div(shape.top_width, V), 40000));
  if (g.threads < 0) return false;
  const unsigned blocks = static_cast<unsigned>(ceil_div(g.threads, 128));
  if constexpr (K == 3)
    forward_nchw_patch_kernel<Dtype, K, S, D, V, L, kPatchRows>
        <<<blocks, 128, 0, stream>>>(g, bottom, weight, after, top, turned);
  else
    forward_nchw_strip_kernel<Dtype, K, S, D, V, L>
        <<<blocks, 128, 0, stream>>>(g, bottom, weight, after, top, turned);
  return true;
}

// Loads 16 bytes at a time if rows and pointers allow it, else 8, else one element. A thread has at most 8
// outputs. For large kernels it has at most 4, because their weights and sums fill the registers.
template <typename Dtype, int K, int S, int D>
bool choose_forward_nchw_rows(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight,
                              Epilogue<Dtype> after, Dtype* top, bool turned, cudaStream_t stream) {
  const bool same = shape.pad_w == (K - 1) * D / 2;
  const auto allows = [&](int n) {
    return same && shape.width % n == 0 && shape.top_width % n == 0 && shape.top_width * S <= shape.width &&
           aligned(bottom, n * sizeof(Dtype)) && aligned(top, n * sizeof(Dtype));
  };
  if constexpr (sizeof(Dtype) == 2 && K == 3 && D == 1)
    if (allows(8))
      return launch_forward_nchw_rows<Dtype, K, S, D, 8, 8>(shape, bottom, weight, after, top, turned,
                                                            stream);
  if (allows(4))
    return launch_forward_nchw_rows<Dtype, K, S, D, 4, 4>(shape, bottom, weight, after, top, turned, stream);
  return launch_forward_nchw_rows<Dtype, K, S, D, 4, 1>(shape, bottom, weight, after, top, turned, stream);
}

template <typename Dtype>
bool forward_nchw_rows(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight,
                       Epilogue<Dtype> after, Dtype* top, bool turned, cudaStream_t stream) {
  const int s = shape.stride_w, d = shape.dilation_w;
  if (shape.stride_h != s || (s != 1 && shape.dilation_h != 1)) return false;
#define DEPTHWISE_TRY(K, S, D)             \
  if (shape.square(K) && s == S && d == D) \
    return choose_forward_nchw_rows<Dtype, K, S, D>(shape, bottom, weight, after, top, turned, stream);
  DEPTHWISE_TRY(3, 1, 1)
  DEPTHWISE_TRY(3, 2, 1)
  DEPTHWISE_TRY(3, 1, 2)
  DEPTHWISE_TRY(5, 1, 1)
  DEPTHWISE_TRY(5, 2, 1)
  DEPTHWISE_TRY(5, 1, 2)
  DEPTHWISE_TRY(7, 1, 1)
  DEPTHWISE_TRY(7, 2, 1)
#undef DEPTHWISE_TRY
  return false;
}

}  // namespace depthwise

#endif  // DEPTHWISE_FORWARD_NCHW_ROWS_CUH_
