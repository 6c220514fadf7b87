// Forward, NCHW, small planes (7 x 7, 14 x 14) whose rows are too short for wide loads.
//
// The planes of consecutive channels are adjacent in memory. So a block copies several of them to shared
// memory as one run of bytes, with 16-byte loads for every plane size. It computes, and copies the results
// back in the same way. A thread owns V = 7 columns of a plane (the widths of ImageNet models are multiples
// of 7), and slides down as in forward_nchw_rows.cuh.
#ifndef DEPTHWISE_FORWARD_NCHW_PLANES_CUH_
#define DEPTHWISE_FORWARD_NCHW_PLANES_CUH_

#include "forward_nchw_rows.cuh"

namespace depthwise {

// A run of global memory and its copy in shared memory. Both addresses are the same modulo 16, so all but the
// run's ends can be copied 16 bytes at a time. The buffer holds the run and 16 bytes more.
template <typename Dtype>
struct Run {
  static constexpr int kWide = 16 / sizeof(Dtype);
  using Wide = Pack<Dtype, kWide>;
  Dtype* buffer;  // shared, 16-byte aligned
  int head;       // elements between the 16-byte boundary before the run and its start
  int count;

  __device__ __forceinline__ Run(void* shared, const Dtype* global, int count_)
      : buffer(static_cast<Dtype*>(shared)),
        head(static_cast<int>(reinterpret_cast<uintptr_t>(global) % 16 / sizeof(Dtype))),
        count(count_) {}

  __device__ __forceinline__ Dtype* begin() const { return buffer + head; }

  __device__ __forceinline__ void load(const Dtype* __restrict__ global) const {
    copy_packs<8>(reinterpret_cast<const Wide*>(global - head), reinterpret_cast<Wide*>(buffer));
    copy_ends(global, begin());
  }

  __device__ __forceinline__ void store(Dtype* __restrict__ global) const {
    copy_packs<4>(reinterpret_cast<const Wide*>(buffer), reinterpret_cast<Wide*>(global - head));
    copy_ends(begin(), global);
  }

 private:
  // The packs that are wholly inside the run. A few elements are before and after them.
  __device__ __forceinline__ int first_pack() const { return head > 0; }
  __device__ __forceinline__ int last_pack() const { return (head + count) / kWide; }

  // kBatch loads, then kBatch stores. With one load and one store per step, each step would wait for memory.
  template <int kBatch>
  __device__ __forceinline__ void copy_packs(const Wide* __restrict__ from, Wide* __restrict__ to) const {
    const int end = last_pack();
    for (int first = first_pack() + threadIdx.x; first < end; first += kBatch * blockDim.x) {
      Wide packs[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k)
        if (first + k * static_cast<int>(blockDim.x) < end)
          packs[k] = from[first + k * static_cast<int>(blockDim.x)];
#pragma unroll
      for (int k = 0; k < kBatch; ++k)
        if (first + k * static_cast<int>(blockDim.x) < end)
          to[first + k * static_cast<int>(blockDim.x)] = packs[k];
    }
  }

  __device__ __forceinline__ void copy_ends(const Dtype* __restrict__ from, Dtype* __restrict__ to) const {
    const int i = threadIdx.x;
    if (i >= kWide) return;
    const int before = min(count, first_pack() * kWide - head),
              after = max(before, last_pack() * kWide - head);
    if (i < before) to[i] = from[i];
    if (after + i < count) to[after + i] = from[after + i];
  }
};

// The columns and rows of one plane that a thread computes.
struct PlanesGeometry {
  int channels, height, width, top_height, top_width, pad_h, pad_w;
  int groups;        // of V columns in a plane
  int strips, rows;  // of a plane, and output rows in each
  int planes, planes_per_block;
  int top_offset;  // bytes from the start of shared memory to top's run
};

template <int V>
struct PlanesThread {
  int plane, in_plane, x, first, last;
  __device__ __forceinline__ explicit PlanesThread(const PlanesGeometry& g) {
    const int threads = g.groups * g.strips;
    plane = threadIdx.x / threads;
    in_plane = threadIdx.x % threads;
    x = in_plane % g.groups * V;
    first = in_plane / g.groups * g.rows;
    last = min(first + g.rows, g.top_height);
  }
};

// The part of a plane's row in shared memory that V outputs need. kInside: all V columns exist, and the
// padding keeps the size, so only the elements beside the V columns need a test.
template <typename Dtype, int K, int S, int V, bool kInside>
struct SharedWindow {
  static constexpr int kElements = (V - 1) * S + K;
  float v[kElements];

  __device__ __forceinline__ void load(const Dtype* row, bool row_exists, int column, int width) {
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      const bool certain = kInside && i >= K / 2 && i < K / 2 + V;
      v[i] = 0;
      if (row_exists && (certain || static_cast<unsigned>(column + i) < static_cast<unsigned>(width)))
        v[i] = row[column + i];
    }
  }
  __device__ __forceinline__ float at(int element) const { return v[element]; }
};

// A thread's part of a plane's correlation, from one plane in shared memory to another. `sums`
// holds the weights.
template <typename Dtype, int K, int S, int V, bool kInside>
__device__ __forceinline__ void slide_down(const PlanesGeometry& g, const PlanesThread<V>& thread,
                                           RowSums<K, S, 1, V>& sums, const Epilogue<Dtype> after,
                                           const Dtype* from, Dtype* to) {
  constexpr int kOpen = RowSums<K, S, 1, V>::kOpen;
#pragma unroll
  for (int i = 0; i < kOpen * V; ++i) sums.sums[i / V][i % V] = 0;
  const int column = thread.x * S - g.pad_w;
  int iy = (thread.first - kOpen) * S - g.pad_h + K - S;
  for (int y = thread.first - kOpen; y < thread.last; ++y) {
    SharedWindow<Dtype, K, S, V, kInside> rows[S];
#pragma unroll
    for (int i = 0; i < S; ++i, ++iy)
      rows[i].load(from + iy * g.width, static_cast<unsigned>(iy) < static_cast<unsigned>(g.height), column,
                   g.width);
    float done[V];
    sums.step(rows, done);
    if (y < thread.first) continue;
    after.finish(done);
#pragma unroll
    for (int i = 0; i < V; ++i)
      if (kInside || thread.x + i < g.top_width) to[y * g.top_width + thread.x + i] = done[i];
  }
}

template <typename Dtype, int K, int S, int V, bool kInside>
__global__ void __launch_bounds__(64)
    forward_nchw_planes_kernel(const PlanesGeometry g, const Dtype* __restrict__ bottom,
                               const Parameters<Dtype> weight, const Epilogue<Dtype> after,
                               Dtype* __restrict__ top, const bool turned) {
  extern __shared__ uint4 depthwise_shared[];
  char* const shared = reinterpret_cast<char*>(depthwise_shared);
  const int first_plane = blockIdx.x * g.planes_per_block;
  const int planes = min(g.planes_per_block, g.planes - first_plane);
  const int area = g.height * g.width, top_area = g.top_height * g.top_width;
  bottom += int64_t(first_plane) * area;
  top += int64_t(first_plane) * top_area;
  const Run<Dtype> in(shared, bottom, planes * area), out(shared + g.top_offset, top, planes * top_area);
  const PlanesThread<V> thread(g);
  RowSums<K, S, 1, V> sums;
  if (thread.plane < planes) {  // these loads overlap with those of the planes
    const int channel = (first_plane + thread.plane) % g.channels;
    load_weights<K>(sums.w, weight + channel * (K * K), turned);
    sums.bias = after.start(channel);
  }
  in.load(bottom);
  __syncthreads();
  if (thread.plane < planes)
    slide_down<Dtype, K, S, V, kInside>(g, thread, sums, after, in.begin() + thread.plane * area,
                                        out.begin() + thread.plane * top_area);
  __syncthreads();
  out.store(top);
}

constexpr int kPlaneThreads = 64, kPlaneColumns = 7;

// Does the padding keep the width, and does every thread have all of its columns? For stride 1.
inline bool planes_inside(const Shape& shape) {
  return shape.pad_w == shape.kernel_w / 2 && shape.width % kPlaneColumns == 0;
}

// The bytes of shared memory that a block needs. 0 if the planes are too large, or have many columns:
// forward_nchw_rows.cuh is better for long rows.
inline int64_t planes_geometry(const Shape& shape, int64_t planes, int64_t element_bytes, PlanesGeometry* g) {
  constexpr int64_t kSharedBytes = 26 * 1024;  // so that 8 blocks fit into a multiprocessor
  if (shape.dilation_h != 1 || shape.dilation_w != 1 || shape.top_width % 4 == 0 || shape.top_width > 28)
    return 0;
  g->channels = static_cast<int>(shape.channels);
  g->height = static_cast<int>(shape.height);
  g->width = static_cast<int>(shape.width);
  g->top_height = static_cast<int>(shape.top_height);
  g->top_width = static_cast<int>(shape.top_width);
  g->pad_h = shape.pad_h;
  g->pad_w = shape.pad_w;
  g->groups = static_cast<int>(ceil_div(shape.top_width, kPlaneColumns));
  // Long strips repeat fewer rows. But a block has 64 threads, and if their planes need more than 16 KiB, a
  // multiprocessor runs too few blocks to hide the waits for memory.
  int64_t strips = std::max<int64_t>(2, ceil_div(shape.top_height, 7));
  const int64_t both = (shape.height * shape.width + shape.top_height * shape.top_width) * element_bytes;
  while (kPlaneThreads / (g->groups * strips) * both > 16 * 1024 && shape.top_height / strips >= 6)
    strips *= 2;
  g->rows = static_cast<int>(ceil_div(shape.top_height, strips));
  g->strips = static_cast<int>(ceil_div(shape.top_height, g->rows));
  g->planes = static_cast<int>(planes);
  const int64_t area = shape.height * shape.width * element_bytes;
  const int64_t top_area = shape.top_height * shape.top_width * element_bytes;
  const int64_t fit = (kSharedBytes - 64) / (area + top_area);
  g->planes_per_block =
      static_cast<int>(std::min<int64_t>({kPlaneThreads / (g->groups * g->strips), fit, planes}));
  if (g->planes_per_block * g->groups * g->strips < kPlaneThreads / 4 && g->planes_per_block < planes)
    return 0;
  g->top_offset = static_cast<int>(ceil_div(g->planes_per_block * area + 16, 16) * 16);
  return g->top_offset + ceil_div(g->planes_per_block * top_area + 16, 16) * 16;
}

template <typename Dtype, int K, int S>
bool launch_forward_nchw_planes(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight,
                                Epilogue<Dtype> after, Dtype* top, bool turned, cudaStream_t stream) {
  PlanesGeometry g;
  const int64_t bytes = planes_geometry(shape, shape.num * shape.channels, sizeof(Dtype), &g);
  if (bytes == 0) return false;
  const unsigned blocks = static_cast<unsigned>(ceil_div(g.planes, g.planes_per_block));
  if (S == 1 && planes_inside(shape))
    forward_nchw_planes_kernel<Dtype, K, S, kPlaneColumns, S == 1>
        <<<blocks, kPlaneThreads, static_cast<size_t>(bytes), stream>>>(g, bottom, weight, after, top,
                                                                        turned);
  else
    forward_nchw_planes_kernel<Dtype, K, S, kPlaneColumns, false>
        <<<blocks, kPlaneThreads, static_cast<size_t>(bytes), stream>>>(g, bottom, weight, after, top,
                                                                        turned);
  return true;
}

template <typename Dtype>
bool forward_nchw_planes(const Shape& shape, const Dtype* bottom, Parameters<Dtype> weight,
                         Epilogue<Dtype> after, Dtype* top, bool turned, cudaStream_t stream) {
  const int s = shape.stride_w;
  if (shape.stride_h != s) return false;
#define DEPTHWISE_TRY(K, S)      \
  if (shape.square(K) && s == S) \
    return launch_forward_nchw_planes<Dtype, K, S>(shape, bottom, weight, after, top, turned, stream);
  DEPTHWISE_TRY(3, 1)
  DEPTHWISE_TRY(3, 2)
  DEPTHWISE_TRY(5, 1)
  DEPTHWISE_TRY(5, 2)
#undef DEPTHWISE_TRY
  return false;
}

}  // namespace depthwise

#endif  // DEPTHWISE_FORWARD_NCHW_PLANES_CUH_
