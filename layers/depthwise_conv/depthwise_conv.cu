// Depthwise 2-d and 1-d convolution: a correlation of each channel with its own kernel, with zeros
// around the plane.
//
//   top[n,c,y,x] = bias[c] + sum over ki,kj: weight[c,ki,kj] * bottom[n,c,iy,ix]
//   iy = y*stride_h - pad_h + ki*dilation_h,  ix = x*stride_w - pad_w + kj*dilation_w
//
// bottom [num, channels, height, width], top [num, channels, top_height, top_width], weight [channels, 1,
// kernel_h, kernel_w], bias [channels]; or bottom and top with the channels last. Sums in float, for double
// in double.
//
// This file has the plain kernels, for any shape and any device. They are the reference for the fast kernels
// (depthwise_fast.h), each of which has its own .cuh, and takes some shapes. The launchers at the end of this
// file try the fast kernels first.
#include "caffe_cuda_macro.h"
#include "depthwise_fast.h"

extern "C" {
#include "depthwise_conv.h"
}

namespace depthwise {

// A thread of a plain kernel computes a run of outputs that are adjacent in memory: along x, or along the
// channels if they come last. On the GPU a run is one output, because more threads are better there. On the
// host a thread computes many runs, and the compiler vectorises the loop over a run.
constexpr int kRun = kFastKernels ? 1 : 128;

// sums[i * sum_step] += a[i * a_step] * b[i * b_step] for i in [0, n). The cases only help
// compilers to vectorise.
template <typename Sum, typename Dtype>
__device__ inline void multiply_add(int64_t n, Parameters<Dtype> a, int64_t a_step, const Dtype* b,
                                    int64_t b_step, Sum* sums, int64_t sum_step) {
  if (a_step == 0 && b_step == 1 && sum_step == 1) {
    const Sum factor = a[0];
    for (int64_t i = 0; i < n; ++i) sums[i] += factor * Sum(b[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) sums[i * sum_step] += a[i * a_step] * Sum(b[i * b_step]);
  }
}

// The whole numbers t in [0, count) with low <= t * step + offset < high.
struct Range {
  int64_t begin, end;
  __device__ inline Range(int64_t count, int64_t step, int64_t offset, int64_t low, int64_t high) {
    begin = first(step, low - offset);
    end = first(step, high - offset);
    if (end > count) end = count;
  }
  // The first t >= 0 with t * step >= distance. Divides only if it must, because a division costs more than a
  // short run.
  static __device__ inline int64_t first(int64_t step, int64_t distance) {
    return distance <= 0 ? 0 : step == 1 ? distance : (distance + step - 1) / step;
  }
};

template <typename Dtype, bool kChannelsLast>
__global__ void forward_plain_kernel(const int64_t runs, const Shape s, const Dtype* bottom,
                                     Parameters<Dtype> weight, Epilogue<Dtype> after, Dtype* top) {
  CUDA_KERNEL_LOOP(run, runs) {
    using Sum = caffe::accumulate_t<Dtype>;
    const int64_t side = kChannelsLast ? s.channels : s.top_width;
    const int64_t per_side = (side + kRun - 1) / kRun;
    const int64_t begin = run % per_side * kRun, length = side - begin < kRun ? side - begin : kRun;
    int64_t rest = run / per_side;
    const int64_t x = kChannelsLast ? rest % s.top_width : begin;
    if (kChannelsLast) rest /= s.top_width;
    const int64_t y = rest % s.top_height;
    rest /= s.top_height;
    const int64_t n = kChannelsLast ? rest : rest / s.channels, c = kChannelsLast ? begin : rest % s.channels;
    const int64_t pixel = kChannelsLast ? s.channels : 1;  // elements from one pixel to the next
    const Dtype* plane = bottom + (kChannelsLast ? n * s.height * s.width * pixel + c
                                                 : (n * s.channels + c) * s.height * s.width);
    Sum sums[kRun];
    for (int64_t i = 0; i < length; ++i) sums[i] = after.start(kChannelsLast ? c + i : c);
    for (int64_t ki = 0; ki < s.kernel_h; ++ki) {
      const int64_t iy = y * s.stride_h - s.pad_h + ki * s.dilation_h;
      if (iy < 0 || iy >= s.height) continue;
      for (int64_t kj = 0; kj < s.kernel_w; ++kj) {
        const Parameters<Dtype> tap = weight + c * s.kernel_h * s.kernel_w + ki * s.kernel_w + kj;
        const int64_t ix = x * s.stride_w - s.pad_w + kj * s.dilation_w;  // of the run's first output
        if (kChannelsLast) {
          if (ix < 0 || ix >= s.width) continue;
          multiply_add(length, tap, s.taps(), plane + (iy * s.width + ix) * pixel, 1, sums, 1);
        } else {
          const Range inside(length, s.stride_w, ix, 0, s.width);
          if (inside.begin < inside.end)
            multiply_add(inside.end - inside.begin, tap, 0,
                         plane + iy * s.width + ix + inside.begin * s.stride_w, s.stride_w,
                         sums + inside.begin, 1);
        }
      }
    }
    Dtype* out = top +
                 ((n * (kChannelsLast ? 1 : s.channels) + (kChannelsLast ? 0 : c)) * s.top_height + y) *
                     s.top_width * pixel +
                 x * pixel + (kChannelsLast ? c : 0);
    activate(sums, length, after.activation);
    for (int64_t i = 0; i < length; ++i) out[i] = sums[i];
  }
}

// bottom_diff[n,c,iy,ix] = sum over all ki,kj,y,x that read this pixel: weight[c,ki,kj] * top_diff[n,c,y,x].
template <typename Dtype, bool kChannelsLast>
__global__ void backward_input_plain_kernel(const int64_t runs, const Shape s, const Dtype* top_diff,
                                            Parameters<Dtype> weight, Dtype* bottom_diff) {
  CUDA_KERNEL_LOOP(run, runs) {
    using Sum = caffe::accumulate_t<Dtype>;
    const int64_t side = kChannelsLast ? s.channels : s.width;
    const int64_t per_side = (side + kRun - 1) / kRun;
    const int64_t begin = run % per_side * kRun, length = side - begin < kRun ? side - begin : kRun;
    int64_t rest = run / per_side;
    const int64_t ix = kChannelsLast ? rest % s.width : begin;
    if (kChannelsLast) rest /= s.width;
    const int64_t iy = rest % s.height;
    rest /= s.height;
    const int64_t n = kChannelsLast ? rest : rest / s.channels, c = kChannelsLast ? begin : rest % s.channels;
    const int64_t pixel = kChannelsLast ? s.channels : 1;
    const Dtype* plane = top_diff + (kChannelsLast ? n * s.top_height * s.top_width * pixel + c
                                                   : (n * s.channels + c) * s.top_height * s.top_width);
    Sum sums[kRun];
    for (int64_t i = 0; i < length; ++i) sums[i] = 0;
    for (int64_t ki = 0; ki < s.kernel_h; ++ki) {
      const int64_t up = iy + s.pad_h - ki * s.dilation_h;
      if (up < 0 || up % s.stride_h != 0 || up / s.stride_h >= s.top_height) continue;
      const Dtype* row = plane + up / s.stride_h * s.top_width * pixel;
      for (int64_t kj = 0; kj < s.kernel_w; ++kj) {
        const Parameters<Dtype> tap = weight + c * s.kernel_h * s.kernel_w + ki * s.kernel_w + kj;
        const int64_t left = ix + s.pad_w - kj * s.dilation_w;
        if (kChannelsLast) {
          if (left < 0 || left % s.stride_w != 0 || left / s.stride_w >= s.top_width) continue;
          multiply_add(length, tap, s.taps(), row + left / s.stride_w * pixel, 1, sums, 1);
        } else {  // the columns x of top_diff whose tap is in this run
          const Range inside(s.top_width, s.stride_w, -left, 0, length);
          const int64_t first = kRun == 1 ? 0 : inside.begin * s.stride_w - left;
          if (inside.begin < inside.end)
            multiply_add(inside.end - inside.begin, tap, 0, row + inside.begin, 1, sums + first, s.stride_w);
        }
      }
    }
    Dtype* out =
        bottom_diff +
        ((n * (kChannelsLast ? 1 : s.channels) + (kChannelsLast ? 0 : c)) * s.height + iy) * s.width * pixel +
        ix * pixel + (kChannelsLast ? c : 0);
    for (int64_t i = 0; i < length; ++i) out[i] = sums[i];
  }
}

// Stage one of the weight gradient: workspace[c, tap, part] is the sum over the images part, part + parts,
// .... The last tap is bias_diff's sum of top_diff.
template <typename Dtype>
__global__ void backward_weight_plain_kernel(const int64_t count, const Shape s, const int64_t parts,
                                             const bool channels_last, const Dtype* bottom,
                                             const Dtype* top_diff, caffe::accumulate_t<Dtype>* workspace) {
  CUDA_KERNEL_LOOP(index, count) {
    using Sum = caffe::accumulate_t<Dtype>;
    const int64_t part = index % parts, tap = index / parts % (s.taps() + 1),
                  c = index / parts / (s.taps() + 1);
    const bool is_bias = tap == s.taps();
    const int64_t ki = is_bias ? 0 : tap / s.kernel_w, kj = is_bias ? 0 : tap % s.kernel_w;
    const int64_t pixel = channels_last ? s.channels : 1;
    const Range columns = is_bias ? Range(s.top_width, 1, 0, 0, s.top_width)
                                  : Range(s.top_width, s.stride_w, kj * s.dilation_w - s.pad_w, 0, s.width);
    Sum sum = 0;
    for (int64_t n = part; n < s.num; n += parts) {
      const int64_t area = s.height * s.width, top_area = s.top_height * s.top_width;
      const Dtype* plane = bottom + (channels_last ? n * area * pixel + c : (n * s.channels + c) * area);
      const Dtype* top_plane =
          top_diff + (channels_last ? n * top_area * pixel + c : (n * s.channels + c) * top_area);
      for (int64_t y = 0; y < s.top_height; ++y) {
        const int64_t iy = y * s.stride_h - s.pad_h + ki * s.dilation_h;
        const Dtype* diff = top_plane + y * s.top_width * pixel;
        Sum row_sum = 0;  // row by row, because shorter sums lose fewer bits
        if (is_bias) {
          for (int64_t x = columns.begin; x < columns.end; ++x) row_sum += Sum(diff[x * pixel]);
        } else if (iy >= 0 && iy < s.height) {
          const int64_t ix = kj * s.dilation_w - s.pad_w;
          for (int64_t x = columns.begin; x < columns.end; ++x)
            row_sum += Sum(diff[x * pixel]) * Sum(plane[(iy * s.width + ix + x * s.stride_w) * pixel]);
        }
        sum += row_sum;
      }
    }
    workspace[index] = sum;
  }
}

// Packed sequences, causal: a row goes from its output back to the sequence's first element. `turned`: the gradient
// to bottom, which goes from its element on to the sequence's last.
template <typename Dtype>
__global__ void packed_plain_kernel(const int64_t count, const Shape s, const bool turned, const Dtype* from,
                                    Parameters<Dtype> weight, Epilogue<Dtype> after, Dtype* to) {
  CUDA_KERNEL_LOOP(i, count) {
    const int64_t x = i % s.width, row = i / s.width, c = row % s.channels, n = row / s.channels;
    caffe::accumulate_t<Dtype> sum = after.start(c);
    for (int64_t j = 0; j < s.kernel_w; ++j) {
      const int64_t at = turned ? x + j : x - j;
      if (at < 0 || at >= s.width || (turned && j > 0 && s.is_start(n, at))) break;
      sum += weight[c * s.kernel_w + s.kernel_w - 1 - j] * from[row * s.width + at];
      if (!turned && s.is_start(n, at)) break;
    }
    activate(&sum, 1, after.activation);
    to[i] = sum;
  }
}

// Stage one of the weight gradient for packed sequences. As backward_weight_plain_kernel.
template <typename Dtype>
__global__ void packed_weight_plain_kernel(const int64_t count, const Shape s, const int64_t parts,
                                           const Dtype* bottom, const Dtype* top_diff,
                                           caffe::accumulate_t<Dtype>* workspace) {
  CUDA_KERNEL_LOOP(index, count) {
    const int64_t part = index % parts, tap = index / parts % (s.taps() + 1),
                  c = index / parts / (s.taps() + 1);
    const bool is_bias = tap == s.taps();
    const int64_t back = is_bias ? 0 : s.kernel_w - 1 - tap;  // how far this tap looks back
    caffe::accumulate_t<Dtype> sum = 0;
    for (int64_t n = part; n < s.num; n += parts) {
      const int64_t row = (n * s.channels + c) * s.width;
      int64_t first = 0;  // of this sequence
      for (int64_t x = 0; x < s.width; ++x) {
        if (s.is_start(n, x)) first = x;
        if (x - back < first) continue;
        const caffe::accumulate_t<Dtype> diff = top_diff[row + x];
        sum += is_bias ? diff : diff * bottom[row + x - back];
      }
    }
    workspace[index] = sum;
  }
}

// A word of `starts` each. sequences: cu_seqlens, the first positions in ascending order, or, if by_index, the number
// of each position's sequence.
__global__ void starts_kernel(const int64_t words, const Shape s, const int64_t count, const bool by_index,
                              const int32_t* sequences, int32_t* starts) {
  CUDA_KERNEL_LOOP(i, words) {
    const int64_t word = i % s.start_words(), image = i / s.start_words();
    const int64_t first = (word - 1) * 32;
    unsigned bits = 0;
    if (word > 0 && by_index) {
      for (int64_t x = first; x < first + 32 && x < s.width; ++x)
        if (x > 0 && sequences[image * s.width + x] != sequences[image * s.width + x - 1])
          bits |= 1u << (x - first);
    } else if (word > 0) {
      int64_t low = 0, high = count;  // the first sequence that starts at `first` or behind it
      while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (sequences[middle] < first)
          low = middle + 1;
        else
          high = middle;
      }
      for (;
           low < count && sequences[low] >= first && sequences[low] < first + 32 && sequences[low] < s.width;
           ++low)
        bits |= 1u << (sequences[low] - first);
    }
    starts[i] = static_cast<int32_t>(bits);
  }
}

// sums: of a forward without its activation. They become the gradient to themselves.
template <typename Dtype>
__global__ void activation_backward_kernel(const int64_t count, const int activation, const Dtype* top_diff,
                                           Dtype* sums) {
  using Sum = caffe::accumulate_t<Dtype>;
  CUDA_KERNEL_LOOP(i, count) {
    sums[i] = Sum(top_diff[i]) * activation_slope(Sum(sums[i]), activation);
  }
}

// Weights and biases that compute the norm behind the convolution, too.
template <typename Dtype>
__global__ void fold_kernel(const int64_t count, const int64_t taps, const double eps, const Dtype* weight,
                            const Dtype* bias, const Dtype* mean, const Dtype* variance, const Dtype* scale,
                            const Dtype* shift, Dtype* folded_weight, Dtype* folded_bias) {
  using Sum = caffe::accumulate_t<Dtype>;
  CUDA_KERNEL_LOOP(i, count) {
    const int64_t c = i / taps;
    const Sum factor = (scale ? Sum(scale[c]) : Sum(1)) / sqrt(Sum(variance[c]) + Sum(eps));
    folded_weight[i] = Sum(weight[i]) * factor;
    if (i == c * taps)
      folded_bias[c] =
          ((bias ? Sum(bias[c]) : Sum(0)) - Sum(mean[c])) * factor + (shift ? Sum(shift[c]) : Sum(0));
  }
}

// Stage two: add the parts.
template <typename Dtype>
__global__ void add_parts_plain_kernel(const int64_t count, const int64_t taps, const int64_t parts,
                                       const caffe::accumulate_t<Dtype>* workspace,
                                       Parameters<Dtype> weight_diff, Parameters<Dtype> bias_diff) {
  CUDA_KERNEL_LOOP(index, count) {
    caffe::accumulate_t<Dtype> sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += workspace[index * parts + part];
    const int64_t channel = index / (taps + 1), tap = index % (taps + 1);
    if (tap < taps && weight_diff) weight_diff.set(channel * taps + tap, sum);
    if (tap == taps && bias_diff) bias_diff.set(channel, sum);
  }
}

// -------------------------------------------------------------------------------------- launchers

inline int64_t top_size(int64_t size, int kernel, int stride, int pad, int dilation) {
  const int64_t room = size + 2 * int64_t(pad) - int64_t(dilation) * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

inline Shape make_shape(int64_t num, int64_t channels, int64_t height, int64_t width, int kernel_h,
                        int kernel_w, int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h,
                        int dilation_w) {
  if (kernel_h < 1 || kernel_w < 1 || stride_h < 1 || stride_w < 1 || pad_h < 0 || pad_w < 0 ||
      dilation_h < 1 || dilation_w < 1)
    throw caffe::Error(
        "depthwise_conv: kernel, stride and dilation must be at least 1 and padding at least 0");
  return Shape{num,
               channels,
               height,
               width,
               top_size(height, kernel_h, stride_h, pad_h, dilation_h),
               top_size(width, kernel_w, stride_w, pad_w, dilation_w),
               kernel_h,
               kernel_w,
               stride_h,
               stride_w,
               pad_h,
               pad_w,
               dilation_h,
               dilation_w};
}

// Are there fast kernels for this dtype?
template <typename Dtype>
constexpr bool kHasFast = kFastKernels && !std::is_same<Dtype, double>::value;

enum class Kind { kPlane, kLine };  // 2-d, 1-d

template <Kind kKind, typename Dtype>
void forward(const Shape& s, const Dtype* bottom, Parameters<Dtype> weight, Epilogue<Dtype> after, Dtype* top,
             bool channels_last, cudaStream_t stream) {
  if (s.empty()) return;
  if constexpr (kHasFast<Dtype>)
    if (kKind == Kind::kLine ? line_forward(s, bottom, weight, after, top, false, stream)
                             : forward_fast(s, bottom, weight, after, top, channels_last, false, stream))
      return;
  if (s.starts) {
    const int64_t count = s.num * s.channels * s.width;
    packed_plain_kernel<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(
        count, s, false, bottom, weight, after, top);
    return;
  }
  const int64_t side = channels_last ? s.channels : s.top_width;
  const int64_t runs = s.num * s.channels * s.top_height * s.top_width / side * ceil_div(side, kRun);
  if (channels_last)
    forward_plain_kernel<Dtype, true>
        <<<CAFFE_GET_BLOCKS(runs), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(runs, s, bottom, weight, after, top);
  else
    forward_plain_kernel<Dtype, false>
        <<<CAFFE_GET_BLOCKS(runs), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(runs, s, bottom, weight, after, top);
}

template <typename Dtype>
void backward_input_plain(const Shape& s, const Backward<Dtype>& call, cudaStream_t stream) {
  const int64_t count = s.num * s.channels * s.height * s.width;
  if (count == 0) return;
  if (s.starts) {
    packed_plain_kernel<Dtype><<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(
        count, s, true, call.top_diff, call.weight, Epilogue<Dtype>{}, call.bottom_diff);
    return;
  }
  const int64_t side = call.channels_last ? s.channels : s.width;
  const int64_t runs = count / side * ceil_div(side, kRun);
  if (call.channels_last)
    backward_input_plain_kernel<Dtype, true><<<CAFFE_GET_BLOCKS(runs), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(
        runs, s, call.top_diff, call.weight, call.bottom_diff);
  else
    backward_input_plain_kernel<Dtype, false><<<CAFFE_GET_BLOCKS(runs), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(
        runs, s, call.top_diff, call.weight, call.bottom_diff);
}

inline int64_t plain_parts(const Shape& s) { return std::max<int64_t>(1, std::min<int64_t>(s.num, 64)); }

template <typename Dtype>
void backward_weight_plain(const Shape& s, const Backward<Dtype>& call, cudaStream_t stream) {
  if (s.channels <= 0) return;
  const int64_t sums = s.channels * (s.taps() + 1), parts = plain_parts(s);
  if (s.starts)
    packed_weight_plain_kernel<Dtype><<<CAFFE_GET_BLOCKS(sums * parts), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(
        sums * parts, s, parts, call.bottom, call.top_diff, call.workspace);
  else
    backward_weight_plain_kernel<Dtype>
        <<<CAFFE_GET_BLOCKS(sums * parts), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(
            sums * parts, s, parts, call.channels_last, call.bottom, call.top_diff, call.workspace);
  add_parts_plain_kernel<Dtype><<<CAFFE_GET_BLOCKS(sums), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(
      sums, s.taps(), parts, call.workspace, call.weight_diff, call.bias_diff);
}

template <Kind kKind, typename Dtype>
void backward(const Shape& s, const Backward<Dtype>& call, cudaStream_t stream) {
  Launched done = {};
  if constexpr (kHasFast<Dtype>)
    if (!s.empty())
      done = kKind == Kind::kLine ? line_backward(s, call, stream) : backward_fast(s, call, stream);
  if (call.bottom_diff && !done.input) backward_input_plain(s, call, stream);
  if (call.weight_wanted() && !done.weight) backward_weight_plain(s, call, stream);
}

// The workspace's elements. Whether a fast kernel runs depends on more than the shape, so there is room for both.
inline int64_t workspace_elements(const Shape& s, int64_t fast_parts) {
  return s.channels * (s.taps() + 1) * std::max(fast_parts, plain_parts(s));
}

inline Shape make_line(int64_t num, int64_t channels, int64_t length, int64_t top_length, int kernel,
                       int stride, int pad_left, int dilation, const int32_t* starts = nullptr) {
  if (starts && (stride != 1 || dilation != 1 || pad_left != kernel - 1 || top_length != length))
    throw caffe::Error("depthwise_conv: starts are for causal convolutions of stride and dilation 1");
  if (kernel < 1 || stride < 1 || pad_left < 0 || dilation < 1)
    throw caffe::Error(
        "depthwise_conv: kernel, stride and dilation must be at least 1 and padding at least 0");
  return Shape{num, channels, 1, length,   1, top_length, 1,     kernel,
               1,   stride,   0, pad_left, 1, dilation,   starts};
}

template <typename Dtype>
Epilogue<Dtype> epilogue(const void* bias, int bias_dtype, int dtype, int activation) {
  if (activation < kIdentity || activation > kGelu)
    throw caffe::Error("depthwise_conv: activation is a number from 0 to 4");
  return {parameters<Dtype>(bias, bias_dtype, dtype), activation};
}

}  // namespace depthwise

extern "C" int depthwise_conv_forward(const void* bottom, const void* weight, const void* bias, void* top,
                                      int64_t num, int64_t channels, int64_t height, int64_t width,
                                      int kernel_h, int kernel_w, int stride_h, int stride_w, int pad_h,
                                      int pad_w, int dilation_h, int dilation_w, int channels_last,
                                      int activation, int dtype, int weight_dtype, int bias_dtype,
                                      void* stream) {
  const depthwise::Shape shape =
      depthwise::make_shape(num, channels, height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h,
                            pad_w, dilation_h, dilation_w);
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    depthwise::forward<depthwise::Kind::kPlane>(
        shape, static_cast<const Dtype*>(bottom), depthwise::parameters<Dtype>(weight, weight_dtype, dtype),
        depthwise::epilogue<Dtype>(bias, bias_dtype, dtype, activation), static_cast<Dtype*>(top),
        channels_last != 0, CAFFE_STREAM(stream));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int depthwise_conv_backward(const void* bottom, const void* top_diff, const void* weight,
                                       void* bottom_diff, void* weight_diff, void* bias_diff,
                                       uint8_t* workspace, int64_t num, int64_t channels, int64_t height,
                                       int64_t width, int kernel_h, int kernel_w, int stride_h, int stride_w,
                                       int pad_h, int pad_w, int dilation_h, int dilation_w,
                                       int channels_last, int dtype, int weight_dtype, int bias_dtype,
                                       void* stream) {
  const depthwise::Shape shape =
      depthwise::make_shape(num, channels, height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h,
                            pad_w, dilation_h, dilation_w);
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    const depthwise::Backward<Dtype> call = {static_cast<const Dtype*>(bottom),
                                             static_cast<const Dtype*>(top_diff),
                                             static_cast<Dtype*>(bottom_diff),
                                             depthwise::parameters<Dtype>(weight, weight_dtype, dtype),
                                             depthwise::parameters<Dtype>(weight_diff, weight_dtype, dtype),
                                             depthwise::parameters<Dtype>(bias_diff, bias_dtype, dtype),
                                             reinterpret_cast<caffe::accumulate_t<Dtype>*>(workspace),
                                             channels_last != 0};
    depthwise::backward<depthwise::Kind::kPlane>(shape, call, CAFFE_STREAM(stream));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int64_t depthwise_conv_backward_workspace(int64_t num, int64_t channels, int64_t height,
                                                     int64_t width, int kernel_h, int kernel_w, int stride_h,
                                                     int stride_w, int pad_h, int pad_w, int dilation_h,
                                                     int dilation_w, int channels_last, int dtype) {
  const depthwise::Shape shape =
      depthwise::make_shape(num, channels, height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h,
                            pad_w, dilation_h, dilation_w);
  int64_t parts = 0;
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    if constexpr (depthwise::kHasFast<Dtype>)
      if (!shape.empty()) parts = depthwise::backward_fast_parts<Dtype>(shape, channels_last != 0);
  });
  return depthwise::workspace_elements(shape, parts);
}

extern "C" int depthwise_conv_activation_backward(const void* top_diff, void* sums, int64_t count,
                                                  int activation, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    depthwise::activation_backward_kernel<Dtype>
        <<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
            count, activation, static_cast<const Dtype*>(top_diff), static_cast<Dtype*>(sums));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int depthwise_conv_fold(const void* weight, const void* bias, const void* mean,
                                   const void* variance, const void* scale, const void* shift,
                                   void* folded_weight, void* folded_bias, int64_t channels, int64_t taps,
                                   double eps, int dtype, void* stream) {
  const int64_t count = channels * taps;
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    depthwise::fold_kernel<Dtype>
        <<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
            count, taps, eps, static_cast<const Dtype*>(weight), static_cast<const Dtype*>(bias),
            static_cast<const Dtype*>(mean), static_cast<const Dtype*>(variance),
            static_cast<const Dtype*>(scale), static_cast<const Dtype*>(shift),
            static_cast<Dtype*>(folded_weight), static_cast<Dtype*>(folded_bias));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int depthwise_conv1d_starts(const int32_t* sequences, int32_t* starts, int64_t count, int64_t num,
                                       int64_t length, int by_index, void* stream) {
  depthwise::Shape shape = {};
  shape.width = length;
  const int64_t words = num * shape.start_words();
  depthwise::starts_kernel<<<CAFFE_GET_BLOCKS(words), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
      words, shape, count, by_index != 0, sequences, starts);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int depthwise_conv1d_forward(const void* bottom, const void* weight, const void* bias,
                                        const int32_t* starts, void* top, int64_t num, int64_t channels,
                                        int64_t length, int64_t top_length, int kernel, int stride,
                                        int pad_left, int dilation, int activation, int dtype,
                                        int weight_dtype, int bias_dtype, void* stream) {
  const depthwise::Shape shape =
      depthwise::make_line(num, channels, length, top_length, kernel, stride, pad_left, dilation, starts);
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    depthwise::forward<depthwise::Kind::kLine>(
        shape, static_cast<const Dtype*>(bottom), depthwise::parameters<Dtype>(weight, weight_dtype, dtype),
        depthwise::epilogue<Dtype>(bias, bias_dtype, dtype, activation), static_cast<Dtype*>(top), false,
        CAFFE_STREAM(stream));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int depthwise_conv1d_backward(const void* bottom, const void* top_diff, const void* weight,
                                         const int32_t* starts, void* bottom_diff, void* weight_diff,
                                         void* bias_diff, uint8_t* workspace, int64_t num, int64_t channels,
                                         int64_t length, int64_t top_length, int kernel, int stride,
                                         int pad_left, int dilation, int dtype, int weight_dtype,
                                         int bias_dtype, void* stream) {
  const depthwise::Shape shape =
      depthwise::make_line(num, channels, length, top_length, kernel, stride, pad_left, dilation, starts);
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    const depthwise::Backward<Dtype> call = {static_cast<const Dtype*>(bottom),
                                             static_cast<const Dtype*>(top_diff),
                                             static_cast<Dtype*>(bottom_diff),
                                             depthwise::parameters<Dtype>(weight, weight_dtype, dtype),
                                             depthwise::parameters<Dtype>(weight_diff, weight_dtype, dtype),
                                             depthwise::parameters<Dtype>(bias_diff, bias_dtype, dtype),
                                             reinterpret_cast<caffe::accumulate_t<Dtype>*>(workspace),
                                             false};
    depthwise::backward<depthwise::Kind::kLine>(shape, call, CAFFE_STREAM(stream));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int64_t depthwise_conv1d_backward_workspace(int64_t num, int64_t channels, int64_t length,
                                                       int64_t top_length, int kernel, int stride,
                                                       int pad_left, int dilation, int dtype) {
  const depthwise::Shape shape =
      depthwise::make_line(num, channels, length, top_length, kernel, stride, pad_left, dilation);
  int64_t parts = 0;
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    if constexpr (depthwise::kHasFast<Dtype>)
      if (!shape.empty()) parts = depthwise::line_parts<Dtype>(shape);
  });
  return depthwise::workspace_elements(shape, parts);
}
