// Patches as columns on the host.
#include "caffe/util/im2col.hpp"

#include <stdint.h>

#include <algorithm>
#include <vector>

namespace caffe {

namespace {

// One axis of a convolution: the image position that output position `o` reads for kernel element `k`.
struct Axis {
  int image, kernel, pad, stride, dilation;
  int outputs() const { return (image + 2 * pad - (dilation * (kernel - 1) + 1)) / stride + 1; }
  int at(int o, int k) const { return o * stride - pad + k * dilation; }
  bool holds(int position) const { return static_cast<unsigned>(position) < static_cast<unsigned>(image); }
};

// Calls visit(row of the columns, kernel row, kernel column) for each row of the columns, in memory order.
template <typename Visit>
void each_column_row(int channels, const Axis& h, const Axis& w, const Visit& visit) {
  for (int c = 0; c < channels; ++c)
    for (int kh = 0; kh < h.kernel; ++kh)
      for (int kw = 0; kw < w.kernel; ++kw) visit(c, kh, kw);
}

}  // namespace

template <typename Dtype>
void im2col_cpu(const Dtype* data_im, const int channels, const int height, const int width,
                const int kernel_h, const int kernel_w, const int pad_h, const int pad_w, const int stride_h,
                const int stride_w, const int dilation_h, const int dilation_w, Dtype* data_col) {
  const Axis h{height, kernel_h, pad_h, stride_h, dilation_h},
      w{width, kernel_w, pad_w, stride_w, dilation_w};
  const int output_h = h.outputs(), output_w = w.outputs();
  each_column_row(channels, h, w, [&](int c, int kh, int kw) {
    for (int oh = 0; oh < output_h; ++oh, data_col += output_w) {
      const int row = h.at(oh, kh);
      if (!h.holds(row)) {
        std::fill_n(data_col, output_w, Dtype(0));
        continue;
      }
      const Dtype* from = data_im + (int64_t(c) * height + row) * width;
      for (int ow = 0; ow < output_w; ++ow) {
        const int column = w.at(ow, kw);
        data_col[ow] = w.holds(column) ? from[column] : Dtype(0);
      }
    }
  });
}

template <typename Dtype>
void col2im_cpu(const Dtype* data_col, const int channels, const int height, const int width,
                const int kernel_h, const int kernel_w, const int pad_h, const int pad_w, const int stride_h,
                const int stride_w, const int dilation_h, const int dilation_w, Dtype* data_im) {
  const Axis h{height, kernel_h, pad_h, stride_h, dilation_h},
      w{width, kernel_w, pad_w, stride_w, dilation_w};
  const int output_h = h.outputs(), output_w = w.outputs();
  std::fill_n(data_im, int64_t(channels) * height * width, Dtype(0));
  each_column_row(channels, h, w, [&](int c, int kh, int kw) {
    for (int oh = 0; oh < output_h; ++oh, data_col += output_w) {
      const int row = h.at(oh, kh);
      if (!h.holds(row)) continue;
      Dtype* to = data_im + (int64_t(c) * height + row) * width;
      for (int ow = 0; ow < output_w; ++ow) {
        const int column = w.at(ow, kw);
        if (w.holds(column)) to[column] += data_col[ow];
      }
    }
  });
}

namespace {

// A position that goes through a box of any number of axes, along the last axis first.
class Odometer {
 public:
  Odometer(int axes, const int* shape) : shape_(shape), digit_(axes, 0) {}
  int operator[](int axis) const { return digit_[axis]; }
  void next() {
    for (int axis = static_cast<int>(digit_.size()) - 1; axis >= 0 && ++digit_[axis] == shape_[axis]; --axis)
      digit_[axis] = 0;
  }

 private:
  const int* shape_;
  std::vector<int> digit_;
};

// Calls visit(index in the columns, index in the image) for each element. In the padding the latter is -1.
template <typename Visit>
void each_column_element(int axes, const int* im_shape, const int* col_shape, const int* kernel_shape,
                         const int* pad, const int* stride, const int* dilation, const Visit& visit) {
  int kernel_size = 1, outputs = 1;
  for (int axis = 0; axis < axes; ++axis) {
    kernel_size *= kernel_shape[axis];
    outputs *= col_shape[axis + 1];
  }
  Odometer kernel(axes, kernel_shape);
  int64_t column = 0;
  for (int row = 0; row < col_shape[0]; ++row, kernel.next()) {
    Odometer output(axes, col_shape + 1);
    for (int o = 0; o < outputs; ++o, output.next(), ++column) {
      int64_t image = row / kernel_size;  // the channel
      bool inside = true;
      for (int axis = 0; axis < axes; ++axis) {
        const int at = output[axis] * stride[axis] - pad[axis] + kernel[axis] * dilation[axis];
        inside = inside && at >= 0 && at < im_shape[axis + 1];
        image = image * im_shape[axis + 1] + at;
      }
      visit(column, inside ? image : -1);
    }
  }
}

}  // namespace

template <typename Dtype>
void im2col_nd_cpu(const Dtype* data_im, const int num_spatial_axes, const int* im_shape,
                   const int* col_shape, const int* kernel_shape, const int* pad, const int* stride,
                   const int* dilation, Dtype* data_col) {
  each_column_element(
      num_spatial_axes, im_shape, col_shape, kernel_shape, pad, stride, dilation,
      [=](int64_t column, int64_t image) { data_col[column] = image < 0 ? Dtype(0) : data_im[image]; });
}

template <typename Dtype>
void col2im_nd_cpu(const Dtype* data_col, const int num_spatial_axes, const int* im_shape,
                   const int* col_shape, const int* kernel_shape, const int* pad, const int* stride,
                   const int* dilation, Dtype* data_im) {
  int64_t size = 1;
  for (int axis = 0; axis <= num_spatial_axes; ++axis) size *= im_shape[axis];
  std::fill_n(data_im, size, Dtype(0));
  each_column_element(num_spatial_axes, im_shape, col_shape, kernel_shape, pad, stride, dilation,
                      [=](int64_t column, int64_t image) {
                        if (image >= 0) data_im[image] += data_col[column];
                      });
}

#define INSTANTIATE(Dtype)                                                                                   \
  template void im2col_cpu(const Dtype*, int, int, int, int, int, int, int, int, int, int, int, Dtype*);     \
  template void col2im_cpu(const Dtype*, int, int, int, int, int, int, int, int, int, int, int, Dtype*);     \
  template void im2col_nd_cpu(const Dtype*, int, const int*, const int*, const int*, const int*, const int*, \
                              const int*, Dtype*);                                                           \
  template void col2im_nd_cpu(const Dtype*, int, const int*, const int*, const int*, const int*, const int*, \
                              const int*, Dtype*);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace caffe
