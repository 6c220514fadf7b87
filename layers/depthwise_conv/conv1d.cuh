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
  const int32_t* starts;  // as Shape's
  int start_words;

  // For rows that are not whole packs: how many elements of a row's first pack are the row before's.
  template <int V>
  __host__ __device__ int before_row(int row) const {
    return static_cast<int>(static_cast<unsigned>(row) * static_cast<unsigned>(length) % V);
  }
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
  g.starts = s.starts;
  g.start_words = static_cast<int>(s.start_words());
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

// The same where `at` is a multiple of N in memory. kPacks: in the row, too. Otherwise the row's ends are parts of a pack.
template <bool kPacks, typename Dtype, int N>
__device__ __forceinline__ void load_near(const Dtype* row, int at, int length, float (&to)[N]) {
  if (!kPacks && (at < 0 || at + N > length))
    load_line<Dtype, N, false>(row, at, length, to);
  else
    load_line<Dtype, N, true>(row, at, length, to);
}
template <bool kPacks, typename Dtype, int V>
__device__ __forceinline__ void store_near(Dtype* row, int at, int length, const float (&values)[V]) {
  if constexpr (kPacks) {
    if (at < length) store_line<Dtype, V, true>(row, at, length, values);
  } else if (at >= 0 && at + V <= length) {
    store_line<Dtype, V, true>(row, at, length, values);
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (static_cast<unsigned>(at + v) < static_cast<unsigned>(length)) row[at + v] = values[v];
  }
}

// What P packs of a thread need of their rows, in registers: the packs, and the elements beside them that a kernel
// reaches, kLeft and kRight. Rows are packed sequences if the geometry has starts.
template <typename Dtype, int V, int P, int kLeft, int kRight, bool kPacks>
struct LineNear {
  // The elements that a thread reads on each side, in one access.
  static constexpr int kBeside = 4, kTaps = kLeft + 1 + kRight;
  static_assert(kLeft <= kBeside && kRight <= kBeside && kBeside <= V,
                "an access beside the own pack is enough");
  float left[P][kBeside], own[P][V], right[P][kBeside];
  unsigned starts[P];  // bit i: a sequence starts at the pack's element i - kBeside

  __device__ __forceinline__ void load(int p, const LineGeometry& g, const Dtype* row, int image, int x) {
    if constexpr (kLeft > 0) load_near<kPacks>(row, x - kBeside, g.length, left[p]);
    load_near<kPacks>(row, x, g.length, own[p]);
    if constexpr (kRight > 0) load_near<kPacks>(row, x + V, g.length, right[p]);
    starts[p] = 0;
    if ((kLeft == 0 || kRight == 0) && g.starts && x < g.length) {
      const int from = x - kBeside + 32;
      const int32_t* const words = g.starts + int64_t(image) * g.start_words + from / 32;
      starts[p] = __funnelshift_r(words[0], words[1], from % 32);
    }
  }
  __device__ __forceinline__ float at(int p, int element) const {
    return element < 0    ? left[p][(kBeside + element) % kBeside]
           : element >= V ? right[p][(element - V + kBeside) % kBeside]
                          : own[p][(element + V) % V];
  }
  // Calls use(p, v, tap, element) for each element v of a pack and each tap. An element of another sequence counts 0.
  template <typename Use>
  __device__ __forceinline__ void for_each(Use use) const {
    const auto run = [&](auto packed) {
#pragma unroll
      for (int i = 0; i < P * V; ++i)
#pragma unroll
        for (int k = 0; k < kTaps; ++k) {
          const int p = i / V, v = i % V, reach = k - kLeft, far = reach < 0 ? -reach : reach;
          float in = at(p, v + reach);
          // Does a sequence start between both, or at the right one?
          if (decltype(packed)::value &&
              starts[p] >> (kBeside + 1 + v + (reach < 0 ? reach : 0)) & ((1u << far) - 1))
            in = 0;
          use(p, v, k, in);
        }
    };
    unsigned any = 0;
#pragma unroll
    for (int p = 0; p < P; ++p) any |= starts[p];
    constexpr unsigned kMatter = ((1u << (V + kTaps - 2)) - 1) << (kBeside + 1 - kLeft);
    if ((kLeft == 0 || kRight == 0) && any & kMatter)
      run(std::true_type());
    else
      run(std::false_type());
  }
};

// The K taps of a channel, in the order of the elements that they reach.
template <int K, typename Dtype>
__device__ __forceinline__ void near_taps(float (&taps)[K], Parameters<Dtype> weight, int channel,
                                          bool turned) {
  (weight + int64_t(channel) * K).with([&](const auto* data) {
#pragma unroll
    for (int k = 0; k < K; ++k) taps[k] = float(data[turned ? K - 1 - k : k]);
  });
}

// For kernels that reach `kLeft` elements to the left and `kRight` to the right, which are known at compile
// time. A thread loads all of its elements to registers before its first product. Both tensors are aligned to packs.
// Rows are whole packs, or of one length.
template <typename Dtype, int V, int P, int kLeft, int kRight, bool kPacks>
__global__ void __launch_bounds__(kLineThreads)
    line_near_kernel(const LineGeometry g, const Dtype* __restrict__ bottom, const Parameters<Dtype> weight,
                     const Epilogue<Dtype> after, Dtype* __restrict__ top) {
  using Near = LineNear<Dtype, V, P, kLeft, kRight, kPacks>;
  LinePlace place = line_place<V, P>(g);
  if (place.row >= g.rows) return;
  if (!kPacks) place.x -= g.before_row<V>(place.row);
  const Dtype* const from = bottom + int64_t(place.row) * g.length;
  Near in;
#pragma unroll
  for (int p = 0; p < P; ++p) in.load(p, g, from, place.row / g.channels, place.x + p * 32 * V);
  float taps[Near::kTaps];
  near_taps(taps, weight, place.channel, g.turned);
  const float start = after.start(place.channel);
  float sums[P][V];
#pragma unroll
  for (int i = 0; i < P * V; ++i) sums[i / V][i % V] = start;
  in.for_each([&](int p, int v, int k, float element) { sums[p][v] += taps[k] * element; });
  after.finish(sums);
#pragma unroll
  for (int p = 0; p < P; ++p)
    store_near<kPacks>(top + int64_t(place.row) * g.top_length, place.x + p * 32 * V, g.top_length, sums[p]);
}

template <typename Dtype, int V, bool kPacks, int P>
__global__ void __launch_bounds__(kLineThreads)
    line_forward_kernel(const LineGeometry g, const Dtype* __restrict__ bottom,
                        const Parameters<Dtype> weight, const Epilogue<Dtype> after,
                        Dtype* __restrict__ top) {
  const LinePlace place = line_place<V, P>(g);
  const int row = place.row, x = place.x, channel = place.channel;
  if (row >= g.rows) return;
  const Dtype* from = bottom + int64_t(row) * g.length;
  const Parameters<Dtype> taps = weight + int64_t(channel) * g.kernel;
  const float start = after.start(channel);
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
  after.finish(sums);
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

// Adds the N sums of a block's threads, and one more. The sum i is thread i's.
template <int N>
__device__ __forceinline__ float block_sums(const float (&sums)[N], float last) {
  __shared__ float warp_sums[kLineThreads / 32][N + 1];
#pragma unroll
  for (int u = 0; u <= N; ++u) {
    float sum = u < N ? sums[u < N ? u : 0] : last;
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32][u] = sum;
  }
  __syncthreads();
  float sum = 0;
  if (threadIdx.x <= N)
    for (int warp = 0; warp < kLineThreads / 32; ++warp) sum += warp_sums[warp][threadIdx.x];
  return sum;
}

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
  const int u = threadIdx.x;
  const float sum = block_sums(sums, bias_sum);
  const int k = u == 2 * V ? g.kernel : g.kernel - 1 - (call.first + u - g.shift);
  const bool is_bias = u == 2 * V && call.bias_wanted;
  if (is_bias || (u < 2 * V && static_cast<unsigned>(k) < static_cast<unsigned>(g.kernel)))
    call.workspace[(int64_t(channel) * (g.kernel + 1) + k) * call.parts + part] = sum;
}

// The same for kernels of known reach, all taps at once. A block goes through its items in steps of P packs a thread,
// all of whose loads start before the first product.
template <typename Dtype, int V, int P, int kLeft, int kRight, bool kPacks>
__global__ void __launch_bounds__(kLineThreads) line_near_backward_kernel(const LineBackward<Dtype> call) {
  using Near = LineNear<Dtype, V, P, kLeft, kRight, kPacks>;
  constexpr int K = Near::kTaps;
  const LineGeometry& g = call.g;
  const int channel = blockIdx.x % g.channels, part = blockIdx.x / g.channels;
  float sums[K] = {}, bias_sum = 0, taps[K];
  near_taps(taps, call.weight, channel, true);
  const unsigned packs = static_cast<unsigned>(g.packs);
  const unsigned end = min(call.items, (part + 1) * call.items_per_part);
  const unsigned first = part * call.items_per_part + threadIdx.x / 32 * 32 * P + threadIdx.x % 32;
  for (unsigned item = first; item < end; item += P * kLineThreads) {
    Near diffs;
    float bottom[P][V];
    int x[P];
    int64_t row[P];
#pragma unroll
    for (int p = 0; p < P; ++p) {
      const unsigned mine = item + p * 32, image = mine < packs ? 0 : mine / packs;
      const bool works = mine < end;
      const int line = works ? static_cast<int>(image) * g.channels + channel : 0;
      // Behind the end there is nothing, not even beside it.
      x[p] = works ? static_cast<int>(mine - image * packs) * V - (kPacks ? 0 : g.before_row<V>(line))
                   : g.length + Near::kBeside;
      row[p] = int64_t(line) * g.length;
      diffs.load(p, g, call.top_diff + row[p], image, x[p]);
      load_near<kPacks>(call.bottom + row[p], x[p], g.length, bottom[p]);
    }
    float done[P][V] = {};
    diffs.for_each([&](int p, int v, int k, float diff) {
      done[p][v] += taps[k] * diff;
      sums[k] += bottom[p][v] * diff;
    });
#pragma unroll
    for (int i = 0; i < P * V; ++i) bias_sum += diffs.own[i / V][i % V];
#pragma unroll
    for (int p = 0; p < P; ++p)
      if (call.bottom_diff) store_near<kPacks>(call.bottom_diff + row[p], x[p], g.length, done[p]);
  }
  const int u = threadIdx.x;
  const float sum = block_sums(sums, bias_sum);
  if (u <= K)
    call.workspace[(int64_t(channel) * (K + 1) + (u == K ? K : K - 1 - u)) * call.parts + part] = sum;
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

using std::false_type;
using std::true_type;
using None = std::integral_constant<int, 0>;
using One = std::integral_constant<int, 1>;
using Two = std::integral_constant<int, 2>;
using Three = std::integral_constant<int, 3>;
using Four = std::integral_constant<int, 4>;

template <typename Dtype>
bool line_rows_are_packs(const Shape& s) {
  return s.width % kLineElements<Dtype> == 0 && s.top_width % kLineElements<Dtype> == 0;
}

// The packs of memory that a row is in. A row that is not whole packs may begin and end within one.
template <typename Dtype>
int near_packs(const Shape& s) {
  constexpr int V = kLineElements<Dtype>;
  return static_cast<int>(line_rows_are_packs<Dtype>(s) ? std::max(s.width, s.top_width) / V
                                                        : s.width / V + 2);
}

template <typename Dtype>
bool line_forward(const Shape& s, const Dtype* bottom, Parameters<Dtype> weight, Epilogue<Dtype> after,
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
        <<<blocks(line_threads<P>(g)), kLineThreads, 0, stream>>>(g, bottom, weight, after, top);
  };
  const auto launch_near = [&](auto left, auto right, auto packs) {
    constexpr int P = 2, kLeft = decltype(left)::value, kRight = decltype(right)::value;
    LineGeometry near = g;
    near.packs = near_packs<Dtype>(s);
    if (pad != kLeft || g.kernel != kLeft + 1 + kRight ||
        int64_t(g.rows) * line_threads<P>(near) >= int64_t(1) << 31)
      return false;
    line_near_kernel<Dtype, V, P, kLeft, kRight, decltype(packs)::value>
        <<<blocks(line_threads<P>(near)), kLineThreads, 0, stream>>>(near, bottom, weight, after, top);
    return true;
  };
  // For causal kernels, and their gradients.
  const auto launch_causal = [&](auto packs) {
    return launch_near(One(), None(), packs) || launch_near(None(), One(), packs) ||
           launch_near(Two(), None(), packs) || launch_near(None(), Two(), packs) ||
           launch_near(Three(), None(), packs) || launch_near(None(), Three(), packs);
  };
  const bool packs = line_rows_are_packs<Dtype>(s), is_aligned = aligned(bottom, 16) && aligned(top, 16);
  if (is_aligned && packs && (s.starts || g.packs >= 512)) {
    if (launch_causal(true_type())) return true;
    if (launch_near(One(), One(), true_type()) || launch_near(Two(), Two(), true_type()) ||
        launch_near(Three(), Three(), true_type()))
      return true;
  }
  if (is_aligned && !packs && s.top_width == s.width && (s.starts || g.packs >= 32))
    if (launch_causal(false_type())) return true;
  if (s.starts) return false;
  if (!packs || !is_aligned)
    launch(false_type(), One());
  else if (g.packs < 512)
    launch(true_type(), One());
  else
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

// For causal kernels of 2 to 4 taps.
template <bool kPacks, typename Dtype>
bool launch_near_backward(const LineBackward<Dtype>& line, unsigned blocks, cudaStream_t stream) {
  const auto launch = [&](auto right) {
    constexpr int kRight = decltype(right)::value;
    if (line.g.kernel != kRight + 1) return false;
    line_near_backward_kernel<Dtype, kLineElements<Dtype>, 2, 0, kRight, kPacks>
        <<<blocks, kLineThreads, 0, stream>>>(line);
    return true;
  };
  return launch(One()) || launch(Two()) || launch(Three());
}

// Launches stage one of the weight gradient. Returns whether it computes bottom_diff, too.
template <typename Dtype>
bool line_sums(const Shape& s, const Backward<Dtype>& call, int64_t parts, bool near, cudaStream_t stream) {
  constexpr int V = kLineElements<Dtype>;
  LineBackward<Dtype> line;
  line.g = line_geometry<V>(s, s.top_width, s.width, s.kernel_w - 1 - s.pad_w, true);
  line.g.packs = near ? near_packs<Dtype>(s) : static_cast<int>(ceil_div(std::max(s.width, s.top_width), V));
  line.items = static_cast<unsigned>(s.num * line.g.packs);
  line.parts = static_cast<int>(parts);
  line.items_per_part = static_cast<unsigned>(ceil_div(line.items, parts));
  line.bottom = call.bottom;
  line.top_diff = call.top_diff;
  line.weight = call.weight;
  line.workspace = call.workspace;
  const int taps = s.kernel_w + line.g.shift;
  // If top's rows are longer than bottom's, the packs behind bottom's end have no place in bottom_diff.
  const bool with_input = taps <= 2 * V && s.top_width <= s.width;
  line.bottom_diff = with_input ? call.bottom_diff : nullptr;
  const unsigned blocks = static_cast<unsigned>(parts * s.channels);
  if (near)
    return line_rows_are_packs<Dtype>(s) ? launch_near_backward<true>(line, blocks, stream)
                                         : launch_near_backward<false>(line, blocks, stream);
  const bool packs = line_rows_are_packs<Dtype>(s) && aligned(call.bottom, 16) &&
                     aligned(call.top_diff, 16) && aligned(call.bottom_diff, 16);
  for (line.first = 0; line.first < taps; line.first += 2 * V) {
    line.bias_wanted = bool(call.bias_diff) && line.first == 0;
    line.windows = std::min(3, (taps - line.first - 1 + V - 1) / V + 1);
    if (packs)
      line_backward_kernel<Dtype, V, true><<<blocks, kLineThreads, 0, stream>>>(line);
    else
      line_backward_kernel<Dtype, V, false><<<blocks, kLineThreads, 0, stream>>>(line);
  }
  return with_input;
}

template <typename Dtype>
Launched line_backward(const Shape& s, const Backward<Dtype>& call, cudaStream_t stream) {
  Launched done = {};
  const int64_t parts = line_parts<Dtype>(s);
  const bool causal =
      s.pad_w == s.kernel_w - 1 && s.top_width == s.width && s.kernel_w >= 2 && s.kernel_w <= 4;
  const bool near =
      causal && aligned(call.bottom, 16) && aligned(call.top_diff, 16) && aligned(call.bottom_diff, 16);
  if (parts == 0) return done;
  if (call.weight_wanted() && (near || !s.starts)) {
    done.input = line_sums(s, call, parts, near, stream);
    add_parts(s, parts, call.workspace, call.weight_diff, call.bias_diff, stream);
    done.weight = true;
  }
  if (call.bottom_diff && !done.input)
    done.input = line_forward<Dtype>(s, call.top_diff, call.weight, {}, call.bottom_diff, true, stream);
  return done;
}

}  // namespace depthwise

#endif  // DEPTHWISE_CONV1D_CUH_
