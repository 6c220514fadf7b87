// Depthwise 2-d convolution: a correlation of each channel with its own kernel, zeros around the plane.
//
//   top[n,c,y,x] = bias[c] + sum over ki,kj: weight[c,ki,kj] * bottom[n,c,iy,ix]
//   iy = y*stride_h - pad_h + ki*dilation_h,  ix = x*stride_w - pad_w + kj*dilation_w,  taps outside bottom
//   count 0
//
// bottom [num, channels, height, width], top [num, channels, top_height, top_width], weight [channels, 1,
// kernel_h, kernel_w], bias [channels]; or bottom and top with the channels last. Sums in float, for double
// in double.
//
// This file holds the plain kernels: any shape, any device, the reference for the others. The launchers at
// its end first offer a call to the fast kernels, each in a .cuh of its own, which take the shapes they were
// made for.
#include "backward_input_stride2.cuh"
#include "backward_weight.cuh"
#include "caffe_cuda_macro.h"
#include "depthwise_shape.h"
#include "forward_nchw_planes.cuh"
#include "forward_nchw_rows.cuh"
#include "forward_nhwc.cuh"

extern "C" {
#include "depthwise_conv.h"
}

namespace depthwise {

// A plain kernel's thread computes a run of outputs that lie side by side in memory: along x, or along the
// channels if those come last. On the GPU neighbouring threads share the work better and a run is one output;
// on the host one thread does many runs, and the compiler turns the loop over a run into vector instructions.
constexpr int kRun = kFastKernels ? 1 : 128;

// sums[i * sum_step] += a[i * a_step] * b[i * b_step] for i in [0, n). Case by case only to let compilers
// vectorise.
template <typename Sum, typename Dtype>
__device__ inline void multiply_add(int64_t n, const Dtype* a, int64_t a_step, const Dtype* b, int64_t b_step,
                                    Sum* sums, int64_t sum_step) {
  if (a_step == 0 && b_step == 1 && sum_step == 1) {
    const Sum factor = a[0];
    for (int64_t i = 0; i < n; ++i) sums[i] += factor * Sum(b[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) sums[i * sum_step] += Sum(a[i * a_step]) * Sum(b[i * b_step]);
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
  // The first t >= 0 with t * step >= distance. A division costs more than a short run.
  static __device__ inline int64_t first(int64_t step, int64_t distance) {
    return distance <= 0 ? 0 : step == 1 ? distance : (distance + step - 1) / step;
  }
};

template <typename Dtype, bool kChannelsLast>
__global__ void forward_plain_kernel(const int64_t runs, const Shape s, const Dtype* bottom,
                                     const Dtype* weight, const Dtype* bias, Dtype* top) {
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
    for (int64_t i = 0; i < length; ++i) sums[i] = bias ? Sum(bias[kChannelsLast ? c + i : c]) : Sum(0);
    for (int64_t ki = 0; ki < s.kernel_h; ++ki) {
      const int64_t iy = y * s.stride_h - s.pad_h + ki * s.dilation_h;
      if (iy < 0 || iy >= s.height) continue;
      for (int64_t kj = 0; kj < s.kernel_w; ++kj) {
        const Dtype* tap = weight + c * s.kernel_h * s.kernel_w + ki * s.kernel_w + kj;
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
    for (int64_t i = 0; i < length; ++i) out[i] = sums[i];
  }
}

// bottom_diff[n,c,iy,ix] = sum over those ki,kj,y,x that meet it: weight[c,ki,kj] * top_diff[n,c,y,x].
template <typename Dtype, bool kChannelsLast>
__global__ void backward_input_plain_kernel(const int64_t runs, const Shape s, const Dtype* top_diff,
                                            const Dtype* weight, Dtype* bottom_diff) {
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
        const Dtype* tap = weight + c * s.kernel_h * s.kernel_w + ki * s.kernel_w + kj;
        const int64_t left = ix + s.pad_w - kj * s.dilation_w;
        if (kChannelsLast) {
          if (left < 0 || left % s.stride_w != 0 || left / s.stride_w >= s.top_width) continue;
          multiply_add(length, tap, s.taps(), row + left / s.stride_w * pixel, 1, sums, 1);
        } else {  // the columns x of top_diff whose tap falls into this run
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

// Stage one of the weight gradient: workspace[c, tap, part] sums the images part, part + parts, ...; as the
// last tap comes bias_diff's sum of top_diff alone.
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
        Sum row_sum = 0;  // row by row: shorter sums lose fewer bits
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

// Stage two: add the parts.
template <typename Dtype>
__global__ void add_parts_plain_kernel(const int64_t count, const int64_t taps, const int64_t parts,
                                       const caffe::accumulate_t<Dtype>* workspace, Dtype* weight_diff,
                                       Dtype* bias_diff) {
  CUDA_KERNEL_LOOP(index, count) {
    caffe::accumulate_t<Dtype> sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += workspace[index * parts + part];
    const int64_t channel = index / (taps + 1), tap = index % (taps + 1);
    if (tap < taps && weight_diff) weight_diff[channel * taps + tap] = sum;
    if (tap == taps && bias_diff) bias_diff[channel] = sum;
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

// The same as a forward from top_diff to bottom_diff; for stride 1.
inline Shape turned_shape(const Shape& s) {
  Shape turned = s;
  std::swap(turned.height, turned.top_height);
  std::swap(turned.width, turned.top_width);
  turned.pad_h = s.dilation_h * (s.kernel_h - 1) - s.pad_h;
  turned.pad_w = s.dilation_w * (s.kernel_w - 1) - s.pad_w;
  return turned;
}

// Is one of the fast kernels made for this? Then it has been launched.
template <typename Dtype>
bool forward_fast(const Shape& s, const Dtype* bottom, const Dtype* weight, const Dtype* bias, Dtype* top,
                  bool channels_last, bool turned, cudaStream_t stream) {
  if constexpr (kFastKernels && !std::is_same<Dtype, double>::value) {
    if (!s.fits_int() || s.pad_h < 0 || s.pad_w < 0) return false;
    if (channels_last) return forward_nhwc(s, bottom, weight, bias, top, turned, stream);
    if (forward_nchw_planes(s, bottom, weight, bias, top, turned, stream)) return true;
    return forward_nchw_rows(s, bottom, weight, bias, top, turned, stream);
  }
  return false;
}

template <typename Dtype>
void forward(const Shape& s, const Dtype* bottom, const Dtype* weight, const Dtype* bias, Dtype* top,
             bool channels_last, cudaStream_t stream) {
  if (s.empty() || forward_fast(s, bottom, weight, bias, top, channels_last, false, stream)) return;
  const int64_t side = channels_last ? s.channels : s.top_width;
  const int64_t runs = s.num * s.channels * s.top_height * s.top_width / side * ceil_div(side, kRun);
  if (channels_last)
    forward_plain_kernel<Dtype, true>
        <<<CAFFE_GET_BLOCKS(runs), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(runs, s, bottom, weight, bias, top);
  else
    forward_plain_kernel<Dtype, false>
        <<<CAFFE_GET_BLOCKS(runs), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(runs, s, bottom, weight, bias, top);
}

template <typename Dtype>
bool backward_input_fast(const Shape& s, const Dtype* top_diff, const Dtype* weight, Dtype* bottom_diff,
                         bool channels_last, cudaStream_t stream) {
  if constexpr (kFastKernels && !std::is_same<Dtype, double>::value) {
    if (!s.fits_int()) return false;
    if (s.stride_h == 1 && s.stride_w == 1)
      return forward_fast<Dtype>(turned_shape(s), top_diff, weight, nullptr, bottom_diff, channels_last, true,
                                 stream);
    return backward_input_stride2(s, top_diff, weight, bottom_diff, channels_last, stream);
  }
  return false;
}

template <typename Dtype>
void backward_input(const Shape& s, const Dtype* top_diff, const Dtype* weight, Dtype* bottom_diff,
                    bool channels_last, cudaStream_t stream) {
  if (s.num * s.channels * s.height * s.width == 0) return;
  if (!s.empty() && backward_input_fast(s, top_diff, weight, bottom_diff, channels_last, stream)) return;
  const int64_t side = channels_last ? s.channels : s.width;
  const int64_t runs = s.num * s.channels * s.height * s.width / side * ceil_div(side, kRun);
  if (channels_last)
    backward_input_plain_kernel<Dtype, true><<<CAFFE_GET_BLOCKS(runs), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(
        runs, s, top_diff, weight, bottom_diff);
  else
    backward_input_plain_kernel<Dtype, false><<<CAFFE_GET_BLOCKS(runs), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(
        runs, s, top_diff, weight, bottom_diff);
}

// Stage one by a fast kernel if there is one and `workspace` is given; the number of parts, 0 for "no fast
// kernel".
template <typename Dtype>
int64_t weight_parts_fast(const Shape& s, const Dtype* bottom, const Dtype* top_diff,
                          caffe::accumulate_t<Dtype>* workspace, bool channels_last, cudaStream_t stream) {
  if constexpr (kFastKernels && !std::is_same<Dtype, double>::value)
    return backward_weight_parts(s, channels_last, bottom, top_diff, workspace, stream);
  return 0;
}

inline int64_t weight_parts_plain(const Shape& s) {
  return std::max<int64_t>(1, std::min<int64_t>(s.num, 64));
}

template <typename Dtype>
void backward_weight(const Shape& s, const Dtype* bottom, const Dtype* top_diff, Dtype* weight_diff,
                     Dtype* bias_diff, caffe::accumulate_t<Dtype>* workspace, bool channels_last,
                     cudaStream_t stream) {
  if (s.channels <= 0 || !(weight_diff || bias_diff)) return;
  const int64_t sums = s.channels * (s.taps() + 1);
  int64_t parts = s.empty() ? 0 : weight_parts_fast(s, bottom, top_diff, workspace, channels_last, stream);
  if constexpr (kFastKernels && !std::is_same<Dtype, double>::value) {
    if (parts > 0) {
      add_parts(s, static_cast<int>(parts), workspace, weight_diff, bias_diff, stream);
      return;
    }
  }
  parts = weight_parts_plain(s);
  backward_weight_plain_kernel<Dtype><<<CAFFE_GET_BLOCKS(sums * parts), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(
      sums * parts, s, parts, channels_last, bottom, top_diff, workspace);
  add_parts_plain_kernel<Dtype><<<CAFFE_GET_BLOCKS(sums), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(
      sums, s.taps(), parts, workspace, weight_diff, bias_diff);
}

}  // namespace depthwise

extern "C" int depthwise_conv_forward(const void* bottom, const void* weight, const void* bias, void* top,
                                      int64_t num, int64_t channels, int64_t height, int64_t width,
                                      int kernel_h, int kernel_w, int stride_h, int stride_w, int pad_h,
                                      int pad_w, int dilation_h, int dilation_w, int channels_last, int dtype,
                                      void* stream) {
  const depthwise::Shape shape =
      depthwise::make_shape(num, channels, height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h,
                            pad_w, dilation_h, dilation_w);
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    depthwise::forward(shape, static_cast<const Dtype*>(bottom), static_cast<const Dtype*>(weight),
                       static_cast<const Dtype*>(bias), static_cast<Dtype*>(top), channels_last != 0,
                       CAFFE_STREAM(stream));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int depthwise_conv_backward_input(const void* top_diff, const void* weight, void* bottom_diff,
                                             int64_t num, int64_t channels, int64_t height, int64_t width,
                                             int kernel_h, int kernel_w, int stride_h, int stride_w,
                                             int pad_h, int pad_w, int dilation_h, int dilation_w,
                                             int channels_last, int dtype, void* stream) {
  const depthwise::Shape shape =
      depthwise::make_shape(num, channels, height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h,
                            pad_w, dilation_h, dilation_w);
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    depthwise::backward_input(shape, static_cast<const Dtype*>(top_diff), static_cast<const Dtype*>(weight),
                              static_cast<Dtype*>(bottom_diff), channels_last != 0, CAFFE_STREAM(stream));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int depthwise_conv_backward_weight(const void* bottom, const void* top_diff, void* weight_diff,
                                              void* bias_diff, uint8_t* workspace, int64_t num,
                                              int64_t channels, int64_t height, int64_t width, int kernel_h,
                                              int kernel_w, int stride_h, int stride_w, int pad_h, int pad_w,
                                              int dilation_h, int dilation_w, int channels_last, int dtype,
                                              void* stream) {
  const depthwise::Shape shape =
      depthwise::make_shape(num, channels, height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h,
                            pad_w, dilation_h, dilation_w);
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    depthwise::backward_weight(shape, static_cast<const Dtype*>(bottom), static_cast<const Dtype*>(top_diff),
                               static_cast<Dtype*>(weight_diff), static_cast<Dtype*>(bias_diff),
                               reinterpret_cast<caffe::accumulate_t<Dtype>*>(workspace), channels_last != 0,
                               CAFFE_STREAM(stream));
  });
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int64_t depthwise_conv_backward_weight_workspace(int64_t num, int64_t channels, int64_t height,
                                                            int64_t width, int kernel_h, int kernel_w,
                                                            int stride_h, int stride_w, int pad_h, int pad_w,
                                                            int dilation_h, int dilation_w, int channels_last,
                                                            int dtype) {
  const depthwise::Shape shape =
      depthwise::make_shape(num, channels, height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h,
                            pad_w, dilation_h, dilation_w);
  int64_t parts = 0;
  CAFFE_DISPATCH_FLOATING(dtype, Dtype, {
    if (!shape.empty())
      parts =
          depthwise::weight_parts_fast<Dtype>(shape, nullptr, nullptr, nullptr, channels_last != 0, nullptr);
  });
  if (parts == 0) parts = depthwise::weight_parts_plain(shape);
  return channels * (shape.taps() + 1) * parts;
}
