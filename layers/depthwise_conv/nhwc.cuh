// Shared by the kernels for NHWC (channels_last).
//
// A thread owns V neighbouring channels (8 or 16 bytes, one load) of R neighbouring columns, and slides
// down the plane. Neighbouring threads own the next channels, then the next columns. So a block's row is
// one run of memory, and pixels that several threads read come from the cache. With a dilation, a thread's
// rows and columns are `dilation` apart, and do not interact with those between them: each phase is a plane
// of its own.
#ifndef DEPTHWISE_NHWC_CUH_
#define DEPTHWISE_NHWC_CUH_

#include "depthwise_shape.h"

namespace depthwise {

constexpr int kNhwcThreads = 128;
constexpr int kNhwcMostLanes = 16;

struct NhwcGeometry {
  int channels, height, width, top_height, top_width;
  int pad_h, pad_w, dilation_h, dilation_w;
  int lanes;   // neighbouring threads of a block along the channels
  int tiles;   // blocks along the channels
  int groups;  // of R columns, dilation_w apart, in a row of one phase
  int chunks;  // of `rows` rows, dilation_h apart, in a column of one phase
  int rows;
  int items;  // an item (image, chunk, phases, group) is the work of `lanes` threads
};

// The number of neighbouring threads along the channels. Whole lines of 128 bytes use the memory best. Lanes
// behind the last channel are idle, and so are a block's threads that do not fill a row of lanes. The costs
// are about thousandths of a kernel's time on an H200.
inline int nhwc_lanes(int64_t packs, int64_t pack_bytes) {
  if (packs <= kNhwcMostLanes) return static_cast<int>(packs);
  int best = 0;
  int64_t least = 0;
  for (int lanes = 4; lanes <= kNhwcMostLanes; ++lanes) {
    const int64_t bytes = lanes * pack_bytes, padded = ceil_div(packs, lanes) * lanes;
    const int64_t idle = 520 * (padded - packs) / padded + 1500 * (kNhwcThreads % lanes) / kNhwcThreads;
    const int64_t narrow = bytes >= 128 ? 0 : 16000 / bytes - 16000 / 128;
    const int64_t cost = idle + narrow + (bytes % 32 == 0 ? 0 : 500);
    if (best == 0 || cost < least) best = lanes, least = cost;
  }
  return best;
}

// Columns and rows are those that the threads own: top's, or bottom's in a backward kernel.
inline NhwcGeometry nhwc_geometry(const Shape& s, int vector, int64_t element_bytes, int columns,
                                  int64_t row_length, int64_t column_length, int64_t most_rows,
                                  int64_t wanted_threads, int64_t least_rows = 4) {
  NhwcGeometry g;
  g.channels = static_cast<int>(s.channels);
  g.height = static_cast<int>(s.height);
  g.width = static_cast<int>(s.width);
  g.top_height = static_cast<int>(s.top_height);
  g.top_width = static_cast<int>(s.top_width);
  g.pad_h = s.pad_h;
  g.pad_w = s.pad_w;
  g.dilation_h = s.dilation_h;
  g.dilation_w = s.dilation_w;
  const int64_t packs = ceil_div(s.channels, vector);
  g.lanes = nhwc_lanes(packs, vector * element_bytes);
  g.tiles = static_cast<int>(ceil_div(packs, g.lanes));
  g.groups = static_cast<int>(ceil_div(ceil_div(row_length, s.dilation_w), columns));
  // Long chunks repeat fewer rows at their ends. Short ones give more threads.
  const int64_t column = ceil_div(column_length, s.dilation_h);
  const int64_t strips = s.num * packs * g.groups * s.dilation_w * s.dilation_h;
  int64_t chunks = std::max<int64_t>(ceil_div(column, most_rows), ceil_div(wanted_threads, strips));
  chunks = std::max<int64_t>(1, std::min(chunks, ceil_div(column, least_rows)));
  g.rows = static_cast<int>(ceil_div(column, chunks));
  g.chunks = static_cast<int>(ceil_div(column, g.rows));
  const int64_t items = s.num * g.chunks * s.dilation_h * s.dilation_w * g.groups;
  g.items = items < int64_t(1) << 30 ? static_cast<int>(items) : -1;
  return g;
}

// The place of a thread, along the channels and among the block's items.
struct NhwcThread {
  int tile, lane, in_block, per_block, channel;  // tile: the block's first channel
  bool inside;
  __device__ __forceinline__ NhwcThread(const NhwcGeometry& g, int tile_index, int vector) {
    tile = tile_index * g.lanes * vector;
    lane = threadIdx.x % g.lanes;
    in_block = threadIdx.x / g.lanes;
    per_block = kNhwcThreads / g.lanes;
    channel = tile + lane * vector;
    inside = channel < g.channels && in_block < per_block;
  }
};

// An item: the rows y, y + dilation_h, ... before `end`, and R columns x, x + dilation_w, ....
struct NhwcItem {
  int image, x, y, end;
  __device__ __forceinline__ NhwcItem(const NhwcGeometry& g, int item, int columns) {
    const int group = item % g.groups;
    item /= g.groups;
    x = item % g.dilation_w + group * columns * g.dilation_w;
    item /= g.dilation_w;
    y = item % g.dilation_h;
    item /= g.dilation_h;
    y += item % g.chunks * g.rows * g.dilation_h;
    image = item / g.chunks;
    end = y + g.rows * g.dilation_h;
  }
};

// Bit i is set if column x + i * step exists, that is, lies in [0, width).
template <int N>
__device__ __forceinline__ unsigned columns_inside(int x, int step, int width) {
  unsigned inside = 0;
#pragma unroll
  for (int i = 0; i < N; ++i)
    inside |= static_cast<unsigned>(static_cast<unsigned>(x + i * step) < static_cast<unsigned>(width)) << i;
  return inside;
}

// Starts to copy a pack from global to shared memory, and does not wait for it. A pack that does not exist is
// 0. Old GPUs and the host wait for the copy, and so do packs of 2 bytes.
template <typename Pack>
__device__ __forceinline__ void copy_ahead(Pack* to, const Pack* from, bool exists) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (sizeof(Pack) >= 4) {
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;\n" ::"r"(address), "l"(from),
                 "n"(sizeof(Pack)), "r"(exists ? static_cast<int>(sizeof(Pack)) : 0)
                 : "memory");
    return;
  }
#endif
  *to = exists ? *from : Pack{};
}

__device__ __forceinline__ void end_of_copies() {  // the copies since the last call become one group
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#else
  ;  // the copies are there
#endif
}

template <int kLater>
__device__ __forceinline__ void wait_for_copies() {  // wait for all but the last kLater groups
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLater) : "memory");
#else
  ;  // the copies are there
#endif
}

// The pixels that each thread loads ahead: N for one step down the plane, for kDepth steps. They are in
// shared memory, where they need no registers. A slot is filled again one step after it was read. A thread
// reads only its own pixels, so threads need not wait for each other.
template <typename Dtype, int V, int N>
struct NhwcRing {
  using Pixel = Pack<Dtype, V>;
  static constexpr int kStepBytes = N * kNhwcThreads * static_cast<int>(sizeof(Pixel));
  // As many steps as fit into the 48 KiB that every block may have, besides the weights.
  static constexpr int kFit = 38 * 1024 / kStepBytes;
  static constexpr int kDepth = kFit > 4 ? 4 : kFit < 2 ? 2 : kFit;
  Pixel pixels[kDepth][N][kNhwcThreads];

  // Starts to load kCount pixels of a row, `step` elements apart, to the slot's pixels from `first` on.
  template <int kCount>
  __device__ __forceinline__ void start(int slot, int first, const Dtype* row, int step, unsigned exist) {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      copy_ahead(&pixels[slot][first + i][threadIdx.x], reinterpret_cast<const Pixel*>(row + i * step),
                 exist >> i & 1);
  }
  template <int kCount>
  __device__ __forceinline__ void read(int slot, int first, float (&to)[kCount][V]) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const Pixel pixel = pixels[slot][first + i][threadIdx.x];
#pragma unroll
      for (int v = 0; v < V; ++v) to[i][v] = pixel.v[v];
    }
  }
  static __device__ __forceinline__ int after(int slot) { return slot + 1 == kDepth ? 0 : slot + 1; }
};

template <typename Dtype, int V>
__device__ __forceinline__ void store_pixel(Dtype* to, const float (&values)[V]) {
  Pack<Dtype, V> pack;
#pragma unroll
  for (int v = 0; v < V; ++v) pack.v[v] = values[v];
  *reinterpret_cast<Pack<Dtype, V>*>(to) = pack;
}

// The weights of a block's channels in shared memory, turned to [tap][channel]; `turned` also by 180 degrees.
template <int K, int V>
struct NhwcWeights {
  Pack<float, V> taps[K * K][kNhwcMostLanes];

  // All loads start before the first store, because a small plane takes little longer than its loads.
  template <typename Dtype>
  __device__ __forceinline__ void load(const Parameters<Dtype> weight, int channels, bool turned) {
    constexpr int kEach = (kNhwcMostLanes * V * K * K + kNhwcThreads - 1) / kNhwcThreads;
    const int count = channels * K * K;
    float values[kEach];
    weight.with([&](const auto* from) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int at = threadIdx.x + i * kNhwcThreads;
        values[i] = at < count ? float(from[at]) : 0.f;
      }
    });
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int at = threadIdx.x + i * kNhwcThreads, tap = at % (K * K), channel = at / (K * K);
      if (at < count) taps[turned ? K * K - 1 - tap : tap][channel / V].v[channel % V] = values[i];
    }
    __syncthreads();
  }
};

}  // namespace depthwise

#endif  // DEPTHWISE_NHWC_CUH_
