// Depthwise 1-d convolution with stride and dilation 1, kernels of any size, any padding:
//
//   top[n,c,x] = bias[c] + sum over k: weight[c,k] * bottom[n,c, x - pad + k]
//
// Elements outside bottom are 0.
//
// A thread owns V neighbours of a row, one 16-byte access. For every padding its loads start at a
// multiple of V. The taps are shifted instead: tap m of the thread is tap m - shift of the kernel. So the
// register of each element is known at compile time. A thread goes through the taps V at a time, with two
// packs in registers.
//
// The gradient to bottom is the same function of top_diff with reversed taps. The gradient to weight needs
// the same elements of top_diff, so one pass computes both for kernels of up to 2 V - shift taps.
#ifndef DEPTHWISE_CONV1D_CUH_
#define DEPTHWISE_CONV1D_CUH_

#include "depthwise_fast.h"

namespace depthwise {

constexpr int kLineThreads = 256;

struct LineGeometry {
  int length, top_length;  // the lengths of the rows that are read, and written
  int channels, kernel;
  int before;  // a thread's reads start so many packs before its own (may be negative)
  int shift;   // the kernel's first tap is the thread's tap `shift`, in [0, V)
  int packs;   // in a row that is written
  int rows;    // num * channels
  bool turned;
};

// Tap 0 reads the element `pad` to the left of the output.
template <int V>
inline LineGeometry line_geometry(const Shape& s, int64_t length, int64_t top_length, int pad, bool turned) {
  LineGeometry g;
  g.length = static_cast<int>(length);
  g.top_length = static_cast<int>(top_length);
  g.channels = static_cast<int>(s.channels);
  g.kernel = s.kernel_w;
  g.before = pad >= 0 ? (pad + V - 1) / V : -(-pad / V);
  g.shift = g.before * V - pad;
  g.packs = static_cast<int>(ceil_div(top_length, V));
  g.rows = static_cast<int>(s.num * s.channels);
  g.turned = turned;
  return g;
}

// The threads of a row, if each has P packs.
template <int P>
__host__ __device__ inline int line_threads(const LineGeometry& g) {
  return P == 1 ? g.packs : (g.packs + 32 * P - 1) / (32 * P) * 32;
}

// Loads V elements of a row of `length` elements, from `at` on, a multiple of V. Missing elements are 0.
// kPacks: rows are whole packs, and aligned to packs.
template <typename Dtype, int V, bool kPacks>
__device__ __forceinline__ void load_line(const Dtype* row, int at, int length, float (&to)[V]) {
  Pack<Dtype, V> pack{};
  if (kPacks) {
    if (static_cast<unsigned>(at) < static_cast<unsigned>(length))
      pack = *reinterpret_cast<const Pack<Dtype, V>*>(row + at);
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (static_cast<unsigned>(at + v) < static_cast<unsigned>(length)) pack.v[v] = row[at + v];
  }
#pragma unroll
  for (int v = 0; v < V; ++v) to[v] = pack.v[v];
}

template <typename Dtype, int V, bool kPacks>
__device__ __forceinline__ void store_line(Dtype* row, int at, int length, const float (&values)[V]) {
  Pack<Dtype, V> pack;
#pragma unroll
  for (int v = 0; v < V; ++v) pack.v[v] = values[v];
  if (kPacks) {
    *reinterpret_cast<Pack<Dtype, V>*>(row + at) = pack;
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (at + v < length) row[at + v] = pack.v[v];
  }
}

__device__ __forceinline__ bool is_tap(const LineGeometry& g, int m) {
  return static_cast<unsigned>(m - g.shift) < static_cast<unsigned>(g.kernel);
}

// Loads N of the thread's taps, from `first` on. All loads start before the first use.
template <int N, typename Dtype>
__device__ __forceinline__ void load_taps(float (&to)[N], Parameters<Dtype> taps, const LineGeometry& g,
                                          int first) {
  taps.with([&](const auto* from) {
#pragma unroll
    for (int u = 0; u < N; ++u) {
      const int k = first + u - g.shift;
      to[u] = is_tap(g, first + u) ? float(from[g.turned ? g.kernel - 1 - k : k]) : 0.f;
    }
  });
}

// The place of a thread with P packs. Its packs are a warp's width apart, so that a warp always accesses
// neighbouring packs.
struct LinePlace {
  int row, channel;
  int x;  // the first element of its first pack
};
template <int V, int P>
__device__ __forceinline__ LinePlace line_place(const LineGeometry& g) {
  const unsigned index = blockIdx.x * kLineThreads + threadIdx.x;
  const unsigned threads = static_cast<unsigned>(line_threads<P>(g)), row = index / threads;
  const int thread = static_cast<int>(index - row * threads);
  return {static_cast<int>(row), static_cast<int>(row % static_cast<unsigned>(g.channels)),
          (P == 1 ? thread : thread / 32 * 32 * P + thread % 32) * V};
}

// For kernels that reach `kLeft` elements to the left and `kRight` to the right, which are known at compile
// time. A thread loads all of its elements to registers before its first product. Rows are whole packs, and
// aligned to packs.
template <typename Dtype, int V, int P, int kLeft, int kRight>
__global__ void __launch_bounds__(kLineThreads)
    line_near_kernel(const LineGeometry g, const Dtype* __restrict__ bottom, const Parameters<Dtype> weight,
                     const Parameters<Dtype> bias, Dtype* __restrict__ top) {
  // The elements that a thread reads on each side, in one access.
  constexpr int kBeside = 4, kTaps = kLeft + 1 + kRight;
  static_assert(kLeft <= kBeside && kRight <= kBeside && kBeside <= V,
                "an access beside the own pack is enough");
  const LinePlace place = line_place<V, P>(g);
  if (place.row >= g.rows) return;
  const Dtype* const from = bottom + int64_t(place.row) * g.length;
  float left[P][kBeside], own[P][V], right[P][kBeside];
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const int x = place.x + p * 32 * V;
    if constexpr (kLeft > 0) load_line<Dtype, kBeside, true>(from, x - kBeside, g.length, left[p]);
    load_line<Dtype, V, true>(from, x, g.length, own[p]);
    if constexpr (kRight > 0) load_line<Dtype, kBeside, true>(from, x + V, g.length, right[p]);
  }
  float taps[kTaps];
  (weight + int64_t(place.channel) * kTaps).with([&](const auto* data) {
#pragma unroll
    for (int k = 0; k < kTaps; ++k) taps[k] = float(data[g.turned ? kTaps - 1 - k : k]);
  });
  const float start = bias ? float(bias[place.channel]) : 0.f;
#pragma unroll
  for (int p = 0; p < P; ++p) {
    float sums[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      sums[v] = start;
#pragma unroll
      for (int k = 0; k < kTaps; ++k) {
        const int at = v + k - kLeft;
        const float in = at < 0    ? left[p][(kBeside + at) % kBeside]
                         : at >= V ? right[p][(at - V + kBeside) % kBeside]
                                   : own[p][(at + V) % V];
        sums[v] += taps[k] * in;
      }
    }
    const int x = place.x + p * 32 * V;
    if (x < g.top_length)
      store_line<Dtype, V, true>(top + int64_t(place.row) * g.top_length, x, g.top_length, sums);
  }
}

template <typename Dtype, int V, bool kPacks, int P>
__global__ void __launch_bounds__(kLineThreads)
    line_forward_kernel(const LineGeometry g, const Dtype* __restrict__ bottom,
                        const Parameters<Dtype> weight, const Parameters<Dtype> bias,
                        Dtype* __restrict__ top) {
  const LinePlace place = line_place<V, P>(g);
  const int row = place.row, x = place.x, channel = place.channel;
  if (row >= g.rows) return;
  const Dtype* from = bottom + int64_t(row) * g.length;
  const Parameters<Dtype> taps = weight + int64_t(channel) * g.kernel;
  const float start = bias ? float(bias[channel]) : 0.f;
  float sums[P][V], low[P][V], high[P][V];
  int at = x - g.before * V;
#pragma unroll
  for (int p = 0; p < P; ++p) {
#pragma unroll
    for (int v = 0; v < V; ++v) sums[p][v] = start;
    load_line<Dtype, V, kPacks>(from, at + p * 32 * V, g.length, low[p]);
  }
  const int end = g.kernel + g.shift;
  for (int m = 0; m < end; m += V) {
    at += V;
    // The last tap may need only the low pack.
    if (m + 1 < end) {
#pragma unroll
      for (int p = 0; p < P; ++p) load_line<Dtype, V, kPacks>(from, at + p * 32 * V, g.length, high[p]);
    }
    float w[V];
    load_taps<V>(w, taps, g, m);
#pragma unroll
    for (int u = 0; u < V; ++u) {
      if (!is_tap(g, m + u)) continue;  // all threads take the same branch
#pragma unroll
      for (int p = 0; p < P; ++p)
#pragma unroll
        for (int v = 0; v < V; ++v)
          sums[p][v] += w[u] * (v + u < V ? low[p][(v + u) % V] : high[p][(v + u) % V]);
    }
#pragma unroll
    for (int p = 0; p < P; ++p)
#pragma unroll
      for (int v = 0; v < V; ++v) low[p][v] = high[p][v];
  }
#pragma unroll
  for (int p = 0; p < P; ++p)
    if (P == 1 || x + p * 32 * V < g.top_length)
      store_line<Dtype, V, kPacks>(top + int64_t(row) * g.top_length, x + p * 32 * V, g.top_length, sums[p]);
}

// The gradient to weight, for the thread's taps [first, first + 2 V). If these are all taps, also the
// gradient to bottom, if wanted. A block adds up one part of one channel.
template <typename Dtype>
struct LineBackward {
  LineGeometry g;  // of the gradient to bottom, which reads top_diff and writes bottom_diff
  int parts, first;
  int windows;                     // the packs of top_diff that these taps read, at most 3
  unsigned items, items_per_part;  // an item is a pack of an image
  const Dtype *bottom, *top_diff;
  Parameters<Dtype> weight;
  Dtype* bottom_diff;
  float* workspace;  // [channels, kernel + 1, parts]
  bool bias_wanted;
};

template <typename Dtype, int V, bool kPacks>
__global__ void __launch_bounds__(kLineThreads) line_backward_kernel(const LineBackward<Dtype> call) {
  const LineGeometry& g = call.g;
  const int channel = blockIdx.x % g.channels, part = blockIdx.x / g.channels;
  float sums[2 * V] = {}, bias_sum = 0, w[2 * V];
  load_taps<2 * V>(w, call.weight + int64_t(channel) * g.kernel, g, call.first);
  const unsigned packs = static_cast<unsigned>(g.packs);
  const unsigned end = min(call.items, (part + 1) * call.items_per_part);
  for (unsigned item = part * call.items_per_part + threadIdx.x; item < end; item += kLineThreads) {
    const unsigned image = item / packs;
    const int x = static_cast<int>(item - image * packs) * V;
    const int64_t row = int64_t(image) * g.channels + channel;
    const Dtype* from = call.top_diff + row * g.length;
    const int at = x - g.before * V + call.first;
    float window[3 * V], own[V], done[V] = {};
#pragma unroll
    for (int p = 0; p < 3; ++p)
      if (p < call.windows)
        load_line<Dtype, V, kPacks>(from, at + p * V, g.length,
                                    *reinterpret_cast<float (*)[V]>(window + p * V));
    load_line<Dtype, V, kPacks>(call.bottom + row * g.top_length, x, g.top_length, own);
    if (call.bias_wanted) {
      float diffs[V];
      load_line<Dtype, V, kPacks>(from, x, g.length, diffs);
#pragma unroll
      for (int v = 0; v < V; ++v) bias_sum += diffs[v];
    }
#pragma unroll
    for (int u = 0; u < 2 * V; ++u) {
      if (!is_tap(g, call.first + u)) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        done[v] += w[u] * window[v + u];
        sums[u] += own[v] * window[v + u];
      }
    }
    if (call.bottom_diff)
      store_line<Dtype, V, kPacks>(call.bottom_diff + row * g.top_length, x, g.top_length, done);
  }
  __shared__ float warp_sums[kLineThreads / 32][2 * V + 1];
#pragma unroll
  for (int u = 0; u <= 2 * V; ++u) {
    float sum = u < 2 * V ? sums[u < 2 * V ? u : 0] : bias_sum;
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32][u] = sum;
  }
  __syncthreads();
  const int u = threadIdx.x;
  if (u > 2 * V) return;
  float sum = 0;
  for (int warp = 0; warp < kLineThreads / 32; ++warp) sum += warp_sums[warp][u];
  const int k = u == 2 * V ? g.kernel : g.kernel - 1 - (call.first + u - g.shift);
  const bool is_bias = u == 2 * V && call.bias_wanted;
  if (is_bias || (u < 2 * V && static_cast<unsigned>(k) < static_cast<unsigned>(g.kernel)))
    call.workspace[(int64_t(channel) * (g.kernel + 1) + k) * call.parts + part] = sum;
}

// ---------------------------------------------------------------------------------------- launchers

inline bool is_line(const Shape& s) {
  const int64_t longest = std::max(s.width, s.top_width), rows = s.num * s.channels;
  // Positions in a row, with kernel and padding, must fit into an int, and the number of packs into 32 bits.
  return s.stride_w == 1 && s.dilation_w == 1 && rows < int64_t(1) << 30 && s.kernel_w < 1 << 20 &&
         s.pad_w < 1 << 20 && longest < int64_t(1) << 30 && rows * ceil_div(longest, 4) < int64_t(1) << 31;
}

template <typename Dtype>
constexpr int kLineElements = 16 / sizeof(Dtype);

template <typename Dtype>
bool line_rows_are_packs(const Shape& s) {
  return s.width % kLineElements<Dtype> == 0 && s.top_width % kLineElements<Dtype> == 0;
}

template <typename Dtype>
bool line_forward(const Shape& s, const Dtype* bottom, Parameters<Dtype> weight, Parameters<Dtype> bias,
                  Dtype* top, bool turned, cudaStream_t stream) {
  constexpr int V = kLineElements<Dtype>;
  if (!is_line(s)) return false;
  const int pad = turned ? s.kernel_w - 1 - s.pad_w : s.pad_w;
  const LineGeometry g = turned ? line_geometry<V>(s, s.top_width, s.width, pad, true)
                                : line_geometry<V>(s, s.width, s.top_width, pad, false);
  const auto blocks = [&](int threads) {
    return static_cast<unsigned>(ceil_div(int64_t(g.rows) * threads, kLineThreads));
  };
  const auto launch = [&](auto packs, auto each) {
    constexpr int P = decltype(each)::value;
    line_forward_kernel<Dtype, V, decltype(packs)::value, P>
        <<<blocks(line_threads<P>(g)), kLineThreads, 0, stream>>>(g, bottom, weight, bias, top);
  };
  // For causal kernels, their gradients, and symmetric kernels.
  const auto launch_near = [&](auto left, auto right) {
    constexpr int P = 2, kLeft = decltype(left)::value, kRight = decltype(right)::value;
    if (pad != kLeft || g.kernel != kLeft + 1 + kRight) return false;
    line_near_kernel<Dtype, V, P, kLeft, kRight>
        <<<blocks(line_threads<P>(g)), kLineThreads, 0, stream>>>(g, bottom, weight, bias, top);
    return true;
  };
  using std::false_type;
  using std::true_type;
  using None = std::integral_constant<int, 0>;
  using One = std::integral_constant<int, 1>;
  using Two = std::integral_constant<int, 2>;
  using Three = std::integral_constant<int, 3>;
  using Four = std::integral_constant<int, 4>;
  if (!line_rows_are_packs<Dtype>(s) || !aligned(bottom, 16) || !aligned(top, 16))
    launch(false_type(), One());
  else if (g.packs < 512)
    launch(true_type(), One());
  else if (!launch_near(One(), None()) && !launch_near(None(), One()) && !launch_near(Two(), None()) &&
           !launch_near(None(), Two()) && !launch_near(Three(), None()) && !launch_near(None(), Three()) &&
           !launch_near(One(), One()) && !launch_near(Two(), Two()) && !launch_near(Three(), Three()))
    launch(true_type(), Four());
  return true;
}

// The number of parts of a channel's sums.
template <typename Dtype>
int64_t line_parts(const Shape& s) {
  if (!is_line(s)) return 0;
  // A thread owns elements of top_diff and of bottom at the same x, so a row is as long as the
  // longer of both.
  const int64_t items = s.num * ceil_div(std::max(s.width, s.top_width), kLineElements<Dtype>);
  const int64_t wanted = ceil_div(4096, s.channels), most = ceil_div(items, 4 * kLineThreads);
  const int64_t parts = std::max<int64_t>(1, std::min({wanted, most, int64_t(1024)}));
  return parts * s.channels < int64_t(1) << 31 ? parts : 0;
}

template <typename Dtype>
Launched line_backward(const Shape& s, const Backward<Dtype>& call, cudaStream_t stream) {
  constexpr int V = kLineElements<Dtype>;
  Launched done = {};
  const int64_t parts = line_parts<Dtype>(s);
  if (parts == 0) return done;
  if (call.weight_wanted()) {
    LineBackward<Dtype> line;
    line.g = line_geometry<V>(s, s.top_width, s.width, s.kernel_w - 1 - s.pad_w, true);
    line.g.packs = static_cast<int>(ceil_div(std::max(s.width, s.top_width), V));
    line.items = static_cast<unsigned>(s.num * line.g.packs);
    line.parts = static_cast<int>(parts);
    line.items_per_part = static_cast<unsigned>(ceil_div(line.items, parts));
    line.bottom = call.bottom;
    line.top_diff = call.top_diff;
    line.weight = call.weight;
    line.workspace = call.workspace;
    const int taps = s.kernel_w + line.g.shift;
    // If top's rows are longer than bottom's, the packs behind bottom's end have no place in bottom_diff.
    done.input = taps <= 2 * V && s.top_width <= s.width;
    line.bottom_diff = done.input ? call.bottom_diff : nullptr;
    const bool packs = line_rows_are_packs<Dtype>(s) && aligned(call.bottom, 16) &&
                       aligned(call.top_diff, 16) && aligned(call.bottom_diff, 16);
    const unsigned blocks = static_cast<unsigned>(parts * s.channels);
    for (line.first = 0; line.first < taps; line.first += 2 * V) {
      line.bias_wanted = bool(call.bias_diff) && line.first == 0;
      line.windows = std::min(3, (taps - line.first - 1 + V - 1) / V + 1);
      if (packs)
        line_backward_kernel<Dtype, V, true><<<blocks, kLineThreads, 0, stream>>>(line);
      else
        line_backward_kernel<Dtype, V, false><<<blocks, kLineThreads, 0, stream>>>(line);
    }
    add_parts(s, parts, call.workspace, call.weight_diff, call.bias_diff, stream);
    done.weight = true;
  }
  if (call.bottom_diff && !done.input)
    done.input = line_forward<Dtype>(s, call.top_diff, call.weight, {}, call.bottom_diff, true, stream);
  return done;
}

}  // namespace depthwise

#endif  // DEPTHWISE_CONV1D_CUH_
