// The pointwise part of an LLTM cell. g = gates + bias; each row of g is split into three parts g0, g1, g2:
//
//   i = sigmoid(g0)   o = sigmoid(g1)   candidate = elu(g2)
//   new_cell = old_cell + candidate * i      new_h = tanh(new_cell) * o
//
// Forward stores nothing extra for backward. Backward reads gates and new_cell, which exist anyway, and
// computes the exponentials again: that costs less than to store and load them. So forward moves 6 values of
// [batch, state], and backward 10, each once.
#include "caffe_cuda_macro.h"

namespace {

constexpr int lanes_of(size_t bytes, size_t size) { return static_cast<int>(bytes / size); }

// How the kernels divide their matrices, for elements of Size bytes. A thread has `lanes` neighbouring
// elements, if addresses allow it. A block of backward has `across` threads along a row and `down` rows.
// Measured on an H200.
#ifndef CAFFE_HOST_BACKEND
template <size_t Size>
struct Geometry {
  static constexpr int forward_lanes = lanes_of(16, Size);
  static constexpr int backward_lanes = lanes_of(Size == 2 ? 8 : 16, Size);
  static constexpr int across = Size == 4 ? 16 : 32, down = 256 / across;
  // Does a thread load its next row before it computes a row? For other sizes it has too few registers.
  static constexpr bool ahead = Size == 4;
};
// With fewer elements, one element per thread fills the GPU better than several.
constexpr int64_t kWideFrom = int64_t(1) << 17;
constexpr bool kAligned = true;
#else
// The host's compiler vectorises the lanes for every alignment. A block has one row of threads, because
// barriers are expensive on the host.
template <size_t Size>
struct Geometry {
  static constexpr int forward_lanes = lanes_of(64, Size), backward_lanes = forward_lanes;
  static constexpr int across = 8, down = 1;
  static constexpr bool ahead = false;
};
constexpr int64_t kWideFrom = 0;
constexpr bool kAligned = false;
#endif

// Blocks are small, because most cells are small, too, and must be spread over all processors of the GPU.
constexpr int kForwardThreads = 128;
// Up to this many rows, one block takes all rows, and writes bias_diff. For more rows, several
// blocks share them.
constexpr int64_t kRowsAlone = 128;
constexpr int64_t kMaxShares = 64;
// The number of backward's blocks if they share the rows: a few for each processor of a large GPU.
constexpr int64_t kManyBlocks = 1024;

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// ------------------------------------------------------------------------------------------------ functions

// Functions without branches, so that the threads of a warp do not diverge. Their errors are a few units in
// the last place: two of them use a series where a difference would cancel. In double we use libm's
// functions, which are more precise. Everything must be computed in double there: an fmaxf would round to
// float, and gradcheck would fail.

inline __device__ float exponential(float x, float) { return expf(x); }
template <typename Half>
inline __device__ float exponential(float x, Half) {
  return __expf(x);  // an error of at most 1e-6 for all x that matter, which a half cannot show
}

// For large negative x, e^-x is infinite, and the quotient is 0, which is right.
template <typename Dtype>
inline __device__ double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
template <typename Dtype>
inline __device__ float sigmoid(float x) {
  return __fdividef(1.0f, 1.0f + exponential(-x, Dtype()));
}

template <typename Dtype>
inline __device__ double elu(double x) {
  return x > 0 ? x : expm1(x);
}
template <typename Dtype>
inline __device__ float elu(float x) {
  const float series =
      x * (1.0f + x * (1.0f / 2 + x * (1.0f / 6 + x * (1.0f / 24 + x * (1.0f / 120 + x * (1.0f / 720))))));
  const float far = exponential(x, Dtype()) - 1.0f;
  return x > 0.0f ? x : x > -0.3f ? series : far;
}

template <typename Dtype>
inline __device__ double tangent(double x) {
  return tanh(x);
}
template <typename Dtype>
inline __device__ float tangent(float x) {
  const float y = x * x;
  const float series =
      x * (1.0f + y * (-1.0f / 3 +
                       y * (2.0f / 15 + y * (-17.0f / 315 + y * (62.0f / 2835 - y * (1382.0f / 155925))))));
  const float far = 1.0f - 2.0f * __fdividef(1.0f, 1.0f + exponential(2.0f * x, Dtype()));
  return fabsf(x) < 0.3f ? series : far;
}

// --------------------------------------------------------------------------------------------------- memory

// Neighbouring elements that one instruction loads or stores.
template <typename Dtype, int Lanes>
struct alignas(kAligned ? sizeof(Dtype) * Lanes : alignof(Dtype)) Pack {
  Dtype lane[Lanes];
};

template <int Lanes, typename Dtype>
__device__ inline Pack<Dtype, Lanes> load(const Dtype* from) {
  return *reinterpret_cast<const Pack<Dtype, Lanes>*>(from);
}

template <int Lanes, typename Dtype>
__device__ inline Pack<Dtype, Lanes> load_or_0(const Dtype* from, int64_t at) {
  if (from != nullptr) return load<Lanes>(from + at);
  Pack<Dtype, Lanes> pack;
  for (int k = 0; k < Lanes; ++k) pack.lane[k] = Dtype(0);
  return pack;
}

template <int Lanes, typename Dtype>
__device__ inline void store(const Pack<Dtype, Lanes>& pack, Dtype* to) {
  *reinterpret_cast<Pack<Dtype, Lanes>*>(to) = pack;
}

// A matrix with any strides: it may be a part of another one, or one value for all elements.
// NULL means zeros.
template <typename Dtype>
struct Strided {
  const Dtype* data;
  int64_t row, column;

  template <int Lanes>
  __device__ inline Pack<Dtype, Lanes> load_at(int64_t r, int64_t c) const {
    Pack<Dtype, Lanes> pack;
    if (data == nullptr || column == 1) {
      pack = load_or_0<Lanes>(data, r * row + c);
    } else {
      for (int k = 0; k < Lanes; ++k) pack.lane[k] = data[r * row + (c + k) * column];
    }
    return pack;
  }
};

// -------------------------------------------------------------------------------------------------- kernels

template <typename Dtype, int Lanes>
__global__ void __launch_bounds__(kForwardThreads)
    lltm_forward_kernel(const int64_t packs, const int64_t packs_per_row, const Dtype* gates,
                        const Dtype* bias, const Dtype* old_cell, Dtype* new_h, Dtype* new_cell) {
  using Acc = caffe::accumulate_t<Dtype>;
  CUDA_KERNEL_LOOP(i, packs) {
    const int64_t row = i / packs_per_row;
    const int64_t state = packs_per_row * Lanes;
    const int64_t column = i * Lanes - row * state;
    const Dtype* own = gates + row * 3 * state + column;
    const auto g0 = load<Lanes>(own), g1 = load<Lanes>(own + state), g2 = load<Lanes>(own + 2 * state);
    const auto b0 = load_or_0<Lanes>(bias, column), b1 = load_or_0<Lanes>(bias, column + state),
               b2 = load_or_0<Lanes>(bias, column + 2 * state);
    const auto old = load<Lanes>(old_cell + i * Lanes);
    Pack<Dtype, Lanes> h, cell;
    for (int k = 0; k < Lanes; ++k) {
      const Acc in = sigmoid<Dtype>(Acc(g0.lane[k]) + Acc(b0.lane[k]));
      const Acc out = sigmoid<Dtype>(Acc(g1.lane[k]) + Acc(b1.lane[k]));
      const Acc candidate = elu<Dtype>(Acc(g2.lane[k]) + Acc(b2.lane[k]));
      const Acc c = Acc(old.lane[k]) + candidate * in;
      cell.lane[k] = Dtype(c);
      h.lane[k] = Dtype(tangent<Dtype>(c) * out);
    }
    store(h, new_h + i * Lanes);
    store(cell, new_cell + i * Lanes);
  }
}

// The elements of one row that backward reads.
template <typename Dtype, int Lanes>
struct BackwardRow {
  Pack<Dtype, Lanes> g0, g1, g2, cell, h_diff, cell_diff;

  __device__ inline BackwardRow(int64_t row, int64_t column, int64_t state, const Dtype* gates,
                                const Dtype* new_cell, const Strided<Dtype>& new_h_diff,
                                const Strided<Dtype>& new_cell_diff)
      : g0(load<Lanes>(gates + row * 3 * state + column)),
        g1(load<Lanes>(gates + row * 3 * state + column + state)),
        g2(load<Lanes>(gates + row * 3 * state + column + 2 * state)),
        cell(load<Lanes>(new_cell + row * state + column)),
        h_diff(new_h_diff.template load_at<Lanes>(row, column)),
        cell_diff(new_cell_diff.template load_at<Lanes>(row, column)) {}
};

// A thread takes `Lanes` columns of some rows, and adds them up. The block then adds up its threads' sums in
// a fixed order. So bias_diff is the same in every run, and for every Lanes.
template <typename Dtype, int Lanes>
__global__ void __launch_bounds__(Geometry<sizeof(Dtype)>::across* Geometry<sizeof(Dtype)>::down)
    lltm_backward_kernel(const int64_t batch, const int64_t state, const Dtype* gates, const Dtype* bias,
                         const Dtype* new_cell, const Strided<Dtype> new_h_diff,
                         const Strided<Dtype> new_cell_diff, Dtype* gates_diff, Dtype* bias_diff,
                         Dtype* old_cell_diff, caffe::accumulate_t<Dtype>* partial_sums) {
  using Acc = caffe::accumulate_t<Dtype>;
  using Row = BackwardRow<Dtype, Lanes>;
  constexpr int kDown = Geometry<sizeof(Dtype)>::down, kColumns = Geometry<sizeof(Dtype)>::across * Lanes;
  constexpr bool kAhead = Geometry<sizeof(Dtype)>::ahead;
  __shared__ Acc sums[kDown][3 * kColumns];
  const int64_t first_column = int64_t(blockIdx.x) * kColumns;
  const int64_t column = first_column + threadIdx.x * Lanes;
  const int64_t step = int64_t(gridDim.y) * kDown;
  int64_t row = int64_t(blockIdx.y) * kDown + threadIdx.y;
  Acc sum[3][Lanes] = {};
  if (column < state && row < batch) {
    const auto b0 = load_or_0<Lanes>(bias, column), b1 = load_or_0<Lanes>(bias, column + state),
               b2 = load_or_0<Lanes>(bias, column + 2 * state);
    Row next(row, column, state, gates, new_cell, new_h_diff, new_cell_diff);
    for (; row < batch; row += step) {
      const Row now = kAhead ? next : Row(row, column, state, gates, new_cell, new_h_diff, new_cell_diff);
      // Load the next row while this one is computed. The compiler cannot move a load before a store itself.
      if (kAhead && row + step < batch)
        next = Row(row + step, column, state, gates, new_cell, new_h_diff, new_cell_diff);
      Pack<Dtype, Lanes> d0, d1, d2, old_diff;
      for (int k = 0; k < Lanes; ++k) {
        const Acc in = sigmoid<Dtype>(Acc(now.g0.lane[k]) + Acc(b0.lane[k]));
        const Acc out = sigmoid<Dtype>(Acc(now.g1.lane[k]) + Acc(b1.lane[k]));
        const Acc g = Acc(now.g2.lane[k]) + Acc(b2.lane[k]);
        const Acc candidate = elu<Dtype>(g);
        const Acc t = tangent<Dtype>(Acc(now.cell.lane[k]));
        const Acc dh = now.h_diff.lane[k];
        const Acc dc = Acc(now.cell_diff.lane[k]) + dh * out * (Acc(1) - t * t);
        const Acc in_diff = dc * candidate * in * (Acc(1) - in);
        const Acc out_diff = dh * t * out * (Acc(1) - out);
        const Acc candidate_diff = dc * in * (g > Acc(0) ? Acc(1) : candidate + Acc(1));
        sum[0][k] += in_diff;
        sum[1][k] += out_diff;
        sum[2][k] += candidate_diff;
        d0.lane[k] = Dtype(in_diff);
        d1.lane[k] = Dtype(out_diff);
        d2.lane[k] = Dtype(candidate_diff);
        old_diff.lane[k] = Dtype(dc);
      }
      if (gates_diff != nullptr) {
        Dtype* own = gates_diff + row * 3 * state + column;
        store(d0, own);
        store(d1, own + state);
        store(d2, own + 2 * state);
      }
      if (old_cell_diff != nullptr) store(old_diff, old_cell_diff + row * state + column);
    }
  }
  if (bias_diff == nullptr) return;
  for (int gate = 0; gate < 3; ++gate)
    for (int k = 0; k < Lanes; ++k)
      sums[threadIdx.y][gate * kColumns + threadIdx.x * Lanes + k] = sum[gate][k];
  if (kDown > 1) __syncthreads();
  // A thread adds up its own columns only, because there may be no barrier (kDown == 1).
  for (int k = threadIdx.y; k < 3 * Lanes; k += kDown) {
    const int gate = k / Lanes, within = threadIdx.x * Lanes + k % Lanes;
    if (first_column + within >= state) continue;
    Acc total = 0;
    for (int down = 0; down < kDown; ++down) total += sums[down][gate * kColumns + within];
    if (partial_sums != nullptr)
      partial_sums[(blockIdx.y * int64_t(3) + gate) * state + first_column + within] = total;
    else
      bias_diff[gate * state + first_column + within] = Dtype(total);
  }
}

// Adds up bias_diff from the shares that the blocks wrote.
template <typename Dtype>
__global__ void __launch_bounds__(kForwardThreads)
    lltm_bias_diff_kernel(const int64_t columns, const int64_t shares,
                          const caffe::accumulate_t<Dtype>* partial_sums, Dtype* bias_diff) {
  CUDA_KERNEL_LOOP(i, columns) {
    caffe::accumulate_t<Dtype> total = 0;
#pragma unroll 8
    for (int64_t share = 0; share < shares; ++share) total += partial_sums[share * columns + i];
    bias_diff[i] = Dtype(total);
  }
}

// Are all addresses (which may be NULL) aligned to packs of Lanes, and does a row of `row` elements
// keep the alignment?
template <int Lanes, typename Dtype>
bool fits(int64_t row, std::initializer_list<const Dtype*> addresses) {
  if (!kAligned) return true;
  return row % Lanes == 0 && std::all_of(addresses.begin(), addresses.end(), [](const Dtype* address) {
           return reinterpret_cast<uintptr_t>(address) % sizeof(Pack<Dtype, Lanes>) == 0;
         });
}

template <int Lanes, typename Dtype>
bool fits(const Strided<Dtype>& matrix) {
  return matrix.column != 1 || fits<Lanes, Dtype>(matrix.row, {matrix.data});
}

template <typename Dtype, int Lanes>
void forward(const Dtype* gates, const Dtype* bias, const Dtype* old_cell, Dtype* new_h, Dtype* new_cell,
             int64_t batch, int64_t state, cudaStream_t stream) {
  const int64_t packs = batch * state / Lanes;
  const unsigned blocks = static_cast<unsigned>(
      std::min<int64_t>(std::max<int64_t>(divide_up(packs, kForwardThreads), 1), INT32_MAX));
  lltm_forward_kernel<Dtype, Lanes>
      <<<blocks, kForwardThreads, 0, stream>>>(packs, state / Lanes, gates, bias, old_cell, new_h, new_cell);
}

// The number of shares into which backward divides the rows. It depends only on the sizes, because it
// determines the order of the sums.
template <typename Dtype>
int64_t row_shares(int64_t batch, int64_t state, bool summing) {
  using Blocks = Geometry<sizeof(Dtype)>;
  const int64_t most = std::max<int64_t>(divide_up(batch, Blocks::down), 1);
  if (!summing && Blocks::down > 1) return std::min<int64_t>(most, 65535);
  if (batch <= kRowsAlone) return 1;
  const int64_t tiles = divide_up(state, Blocks::across * Blocks::backward_lanes);
  return std::min({kMaxShares, most, std::max<int64_t>(kManyBlocks / tiles, 1)});
}

template <typename Dtype, int Lanes>
void backward(const Dtype* gates, const Dtype* bias, const Dtype* new_cell, const Strided<Dtype>& new_h_diff,
              const Strided<Dtype>& new_cell_diff, Dtype* gates_diff, Dtype* bias_diff, Dtype* old_cell_diff,
              caffe::accumulate_t<Dtype>* partial_sums, int64_t batch, int64_t state, cudaStream_t stream) {
  const int64_t shares = row_shares<Dtype>(batch, state, bias_diff != nullptr);
  constexpr int kAcross = Geometry<sizeof(Dtype)>::across, kDown = Geometry<sizeof(Dtype)>::down;
  const dim3 blocks(static_cast<unsigned>(divide_up(state, kAcross * Lanes)), static_cast<unsigned>(shares));
  const bool together = bias_diff == nullptr || shares == 1;
  if (!together && partial_sums == nullptr)
    throw caffe::Error("partial_sums: none came for a batch this large");
  lltm_backward_kernel<Dtype, Lanes><<<blocks, dim3(kAcross, kDown), 0, stream>>>(
      batch, state, gates, bias, new_cell, new_h_diff, new_cell_diff, gates_diff, bias_diff, old_cell_diff,
      together ? nullptr : partial_sums);
  if (together) return;
  CUDA_POST_KERNEL_CHECK;
  const unsigned sum_blocks = static_cast<unsigned>(divide_up(3 * state, kForwardThreads));
  lltm_bias_diff_kernel<Dtype>
      <<<sum_blocks, kForwardThreads, 0, stream>>>(3 * state, shares, partial_sums, bias_diff);
}

}  // namespace

extern "C" int lltm_forward(const void* gates, const void* bias, const void* old_cell, void* new_h,
                            void* new_cell, int64_t batch, int64_t state, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    constexpr int kLanes = Geometry<sizeof(Dtype)>::forward_lanes;
    const auto g = static_cast<const Dtype*>(gates), b = static_cast<const Dtype*>(bias);
    const auto c = static_cast<const Dtype*>(old_cell);
    const auto top_h = static_cast<Dtype*>(new_h), top_c = static_cast<Dtype*>(new_cell);
    const bool wide = batch * state >= kWideFrom && state % kLanes == 0 &&
                      fits<kLanes, Dtype>(state, {g, b, c, top_h, top_c});
    (wide ? forward<Dtype, kLanes> : forward<Dtype, 1>)(g, b, c, top_h, top_c, batch, state,
                                                        CAFFE_STREAM(stream));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int lltm_backward(const void* gates, const void* bias, const void* new_cell,
                             const void* new_h_diff, const void* new_cell_diff, void* gates_diff,
                             void* bias_diff, void* old_cell_diff, uint8_t* partial_sums, int64_t batch,
                             int64_t state, int64_t h_row, int64_t h_column, int64_t cell_row,
                             int64_t cell_column, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    constexpr int kLanes = Geometry<sizeof(Dtype)>::backward_lanes;
    const auto g = static_cast<const Dtype*>(gates), b = static_cast<const Dtype*>(bias);
    const auto c = static_cast<const Dtype*>(new_cell);
    const Strided<Dtype> h_diff{static_cast<const Dtype*>(new_h_diff), h_row, h_column};
    const Strided<Dtype> c_diff{static_cast<const Dtype*>(new_cell_diff), cell_row, cell_column};
    const auto g_diff = static_cast<Dtype*>(gates_diff), b_diff = static_cast<Dtype*>(bias_diff);
    const auto old_diff = static_cast<Dtype*>(old_cell_diff);
    const auto sums = reinterpret_cast<caffe::accumulate_t<Dtype>*>(partial_sums);
    const bool wide = batch * state >= kWideFrom && state % kLanes == 0 && fits<kLanes>(h_diff) &&
                      fits<kLanes>(c_diff) && fits<kLanes, Dtype>(state, {g, b, c, g_diff, old_diff});
    (wide ? backward<Dtype, kLanes> : backward<Dtype, 1>)(g, b, c, h_diff, c_diff, g_diff, b_diff, old_diff,
                                                          sums, batch, state, CAFFE_STREAM(stream));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int64_t lltm_backward_workspace(int64_t batch, int64_t state) {
  return batch <= kRowsAlone ? 0 : kMaxShares * 3 * state;
}
