// Backward, NCHW, for small planes, as forward_nchw_planes.cuh is for the forward. One kernel computes the sums of
// the weight's gradient and, if it is wanted, bottom_diff. Both read top_diff from shared memory.
#ifndef DEPTHWISE_BACKWARD_NCHW_PLANES_CUH_
#define DEPTHWISE_BACKWARD_NCHW_PLANES_CUH_

#include "depthwise_fast.h"
#include "forward_nchw_planes.cuh"

namespace depthwise {

// Adds the products of the rows of top_diff (diffs[s]: the row s steps above the newest) and S rows of bottom to
// the sums of the weight's gradient.
template <int K, int S, int D, int V, typename Row>
__device__ __forceinline__ void add_products(float (&sums)[K * K + 1],
                                             const float (&diffs)[(K - 1) / S + 1][V], const Row (&rows)[S]) {
#pragma unroll
  for (int s = 0; s <= (K - 1) / S; ++s)
#pragma unroll
    for (int i = 0; i < S; ++i) {
      const int ki = i + S * s;
      if (ki >= K) continue;
#pragma unroll
      for (int kj = 0; kj < K; ++kj)
#pragma unroll
        for (int v = 0; v < V; ++v)
          sums[(ki < K ? ki : 0) * K + kj] += diffs[s][v] * rows[i].at(v * S + kj * D);
    }
}

// A block copies planes of bottom and of top_diff into shared memory, image after image. A thread stays with its
// channel, so it adds up all of its sums alone. With kInput it computes bottom_diff, too.
template <typename Dtype>
struct WeightPlanes {
  PlanesGeometry planes;
  int num, parts;  // parts of the images
  const Dtype *bottom, *top_diff;
  Parameters<Dtype> weight;
  Dtype* bottom_diff;
  float* workspace;
};

template <typename Dtype, int K, int S, int V, bool kInput>
__global__ void __launch_bounds__(64) backward_nchw_planes_kernel(const WeightPlanes<Dtype> call) {
  extern __shared__ uint4 depthwise_shared[];
  char* const shared = reinterpret_cast<char*>(depthwise_shared);
  const PlanesGeometry& g = call.planes;
  const int first_channel = blockIdx.x * g.planes_per_block, part = blockIdx.y;
  const int planes = min(g.planes_per_block, g.channels - first_channel);
  const int area = g.height * g.width, top_area = g.top_height * g.top_width;
  const PlanesThread<V> thread(g);
  const bool busy = thread.plane < planes;
  constexpr int kOpen = (K - 1) / S;
  float sums[K * K + 1] = {};
  RowSums<K, S, 1, V> input;
  input.bias = 0;
  if (kInput && busy) load_weights<K>(input.w, call.weight + (first_channel + thread.plane) * (K * K), true);
  for (int image = part; image < call.num; image += call.parts) {
    const int64_t first_plane = int64_t(image) * g.channels + first_channel;
    const Dtype* in_global = call.bottom + first_plane * area;
    const Dtype* out_global = call.top_diff + first_plane * top_area;
    const Run<Dtype> in(shared, in_global, planes * area),
        out(shared + g.top_offset, out_global, planes * top_area);
    __syncthreads();  // the previous image has been read
    in.load(in_global);
    out.load(out_global);
    __syncthreads();
    if (busy) {
      const Dtype* from = in.begin() + thread.plane * area;
      const Dtype* diff = out.begin() + thread.plane * top_area + thread.x;
      const int column = thread.x * S - g.pad_w;
      int iy = thread.first * S - g.pad_h;
      float diffs[kOpen + 1][V] = {};
      for (int y = thread.first; y < thread.last + kOpen; ++y) {
        SharedWindow<Dtype, K, S, V, kInput> rows[S];
#pragma unroll
        for (int i = 0; i < S; ++i, ++iy)
          rows[i].load(from + iy * g.width, static_cast<unsigned>(iy) < static_cast<unsigned>(g.height),
                       column, g.width);
#pragma unroll
        for (int v = 0; v < V; ++v) {
#pragma unroll
          for (int s = kOpen; s > 0; --s) diffs[s][v] = diffs[s - 1][v];
          diffs[0][v] = 0;
          if (y < thread.last && (kInput || thread.x + v < g.top_width))
            diffs[0][v] = diff[y * g.top_width + v];
          sums[K * K] += diffs[0][v];
        }
        add_products<K, S, 1, V>(sums, diffs, rows);
      }
    }
    if constexpr (kInput) {
      Dtype* const to_global = call.bottom_diff + first_plane * area;
      const Run<Dtype> to(shared, to_global, planes * area);
      __syncthreads();  // bottom has been read: bottom_diff takes its place
      if (busy)
        slide_down<Dtype, K, S, V, true>(g, thread, input, {}, out.begin() + thread.plane * top_area,
                                         to.begin() + thread.plane * area);
      __syncthreads();
      to.store(to_global);
    }
  }
  if (!busy) return;
  const int threads = g.groups * g.strips, all_parts = call.parts * threads;
#pragma unroll
  for (int i = 0; i <= K * K; ++i)
    call.workspace[(int64_t(first_channel + thread.plane) * (K * K + 1) + i) * all_parts + part * threads +
                   thread.in_plane] = sums[i];
}

// Can the kernel compute bottom_diff, too? A thread computes the same columns of bottom_diff and of top_diff, so
// their planes must have one size.
inline bool planes_take_input(const Shape& shape) {
  return shape.stride_w == 1 && planes_inside(shape) && shape.pad_h == shape.kernel_h / 2;
}

// Launches the kernel if `call` is given. 0 parts: the planes are not small enough.
template <typename Dtype, int K, int S>
Parts backward_nchw_planes(const Shape& shape, const Backward<Dtype>* call, cudaStream_t stream) {
  WeightPlanes<Dtype> given;
  PlanesGeometry& g = given.planes;
  const int64_t bytes = planes_geometry(shape, shape.channels, sizeof(Dtype), &g);
  if (bytes == 0) return {};
  given.num = static_cast<int>(shape.num);
  const int64_t tiles = ceil_div(shape.channels, g.planes_per_block);
  given.parts = static_cast<int>(std::min<int64_t>({shape.num, ceil_div(1024, tiles), 65535}));
  const int parts = given.parts * g.groups * g.strips;
  if (!call) return {parts, false};
  given.bottom = call->bottom;
  given.top_diff = call->top_diff;
  given.weight = call->weight;
  given.bottom_diff = call->bottom_diff;
  given.workspace = call->workspace;
  const dim3 grid(static_cast<unsigned>(tiles), static_cast<unsigned>(given.parts));
  const bool input = call->bottom_diff && planes_take_input(shape);
  if constexpr (S == 1)
    if (input)
      backward_nchw_planes_kernel<Dtype, K, S, kPlaneColumns, true>
          <<<grid, kPlaneThreads, static_cast<size_t>(bytes), stream>>>(given);
  if (!input)
    backward_nchw_planes_kernel<Dtype, K, S, kPlaneColumns, false>
        <<<grid, kPlaneThreads, static_cast<size_t>(bytes), stream>>>(given);
  return {parts, input};
}

}  // namespace depthwise

#endif  // DEPTHWISE_BACKWARD_NCHW_PLANES_CUH_
