// Patches as columns on the GPU. Each thread adds up its own results, so no sum depends on the
// order of threads.
#include "caffe/util/device_alternate.hpp"
#include "caffe/util/im2col.hpp"

namespace caffe {
namespace {

// n: channels times output positions. Each thread writes one patch, one element per row of the columns.
template <typename Dtype>
__global__ void im2col_kernel(const int n, const Dtype* im, const int height, const int width,
                              const int kernel_h, const int kernel_w, const int pad_h, const int pad_w,
                              const int stride_h, const int stride_w, const int dilation_h,
                              const int dilation_w, const int output_h, const int output_w, Dtype* col) {
  CUDA_KERNEL_LOOP(index, n) {
    const int ow = index % output_w;
    const int oh = index / output_w % output_h;
    const int c = index / output_w / output_h;
    const int top = oh * stride_h - pad_h, left = ow * stride_w - pad_w;
    const Dtype* const image = im + int64_t(c) * height * width;
    Dtype* to = col + (int64_t(c) * kernel_h * kernel_w * output_h + oh) * output_w + ow;
    for (int kh = 0; kh < kernel_h; ++kh) {
      for (int kw = 0; kw < kernel_w; ++kw) {
        const int h = top + kh * dilation_h, w = left + kw * dilation_w;
        *to = h >= 0 && h < height && w >= 0 && w < width ? image[h * width + w] : Dtype(0);
        to += output_h * output_w;
      }
    }
  }
}

// n: elements of the image. Each thread adds up the columns' elements that belong to its element.
template <typename Dtype>
__global__ void col2im_kernel(const int n, const Dtype* col, const int height, const int width,
                              const int kernel_h, const int kernel_w, const int pad_h, const int pad_w,
                              const int stride_h, const int stride_w, const int dilation_h,
                              const int dilation_w, const int output_h, const int output_w, Dtype* im) {
  CUDA_KERNEL_LOOP(index, n) {
    const int w = index % width + pad_w;
    const int h = index / width % height + pad_h;
    const int c = index / width / height;
    const Dtype* from = col + int64_t(c) * kernel_h * kernel_w * output_h * output_w;
    Dtype sum = 0;
    for (int kh = 0; kh < kernel_h; ++kh) {
      const int oh = (h - kh * dilation_h) / stride_h;
      const bool row_fits = h >= kh * dilation_h && oh < output_h && oh * stride_h == h - kh * dilation_h;
      for (int kw = 0; kw < kernel_w; ++kw, from += output_h * output_w) {
        const int ow = (w - kw * dilation_w) / stride_w;
        if (row_fits && w >= kw * dilation_w && ow < output_w && ow * stride_w == w - kw * dilation_w)
          sum += from[oh * output_w + ow];
      }
    }
    im[index] = sum;
  }
}

// The same for any number of axes. The index of a kernel element is split into axes, the last one first.
template <typename Dtype>
__global__ void im2col_nd_kernel(const int n, const int axes, const Dtype* im, const int* im_shape,
                                 const int* col_shape, const int* kernel_shape, const int* pad,
                                 const int* stride, const int* dilation, Dtype* col) {
  CUDA_KERNEL_LOOP(index, n) {
    int kernel_size = 1, outputs = 1;
    for (int axis = 0; axis < axes; ++axis) {
      kernel_size *= kernel_shape[axis];
      outputs *= col_shape[axis + 1];
    }
    const int c = index / outputs, position = index % outputs;
    for (int k = 0; k < kernel_size; ++k) {
      int64_t image = 0, image_stride = 1;
      bool inside = true;
      for (int axis = axes - 1, rest_k = k, rest_o = position; axis >= 0; --axis) {
        const int at = rest_o % col_shape[axis + 1] * stride[axis] - pad[axis] +
                       rest_k % kernel_shape[axis] * dilation[axis];
        rest_o /= col_shape[axis + 1];
        rest_k /= kernel_shape[axis];
        inside = inside && at >= 0 && at < im_shape[axis + 1];
        image += at * image_stride;
        image_stride *= im_shape[axis + 1];
      }
      col[(int64_t(c) * kernel_size + k) * outputs + position] =
          inside ? im[c * image_stride + image] : Dtype(0);
    }
  }
}

template <typename Dtype>
__global__ void col2im_nd_kernel(const int n, const int axes, const Dtype* col, const int* im_shape,
                                 const int* col_shape, const int* kernel_shape, const int* pad,
                                 const int* stride, const int* dilation, Dtype* im) {
  CUDA_KERNEL_LOOP(index, n) {
    int kernel_size = 1, outputs = 1, channel_size = 1;
    for (int axis = 0; axis < axes; ++axis) {
      kernel_size *= kernel_shape[axis];
      outputs *= col_shape[axis + 1];
      channel_size *= im_shape[axis + 1];
    }
    const int c = index / channel_size;
    Dtype sum = 0;
    for (int k = 0; k < kernel_size; ++k) {
      int64_t output = 0, output_stride = 1;
      bool fits = true;
      for (int axis = axes - 1, rest_k = k, rest_i = index % channel_size; axis >= 0; --axis) {
        const int from =
            rest_i % im_shape[axis + 1] + pad[axis] - rest_k % kernel_shape[axis] * dilation[axis];
        rest_i /= im_shape[axis + 1];
        rest_k /= kernel_shape[axis];
        const int at = from / stride[axis];
        fits = fits && from >= 0 && at < col_shape[axis + 1] && at * stride[axis] == from;
        output += at * output_stride;
        output_stride *= col_shape[axis + 1];
      }
      if (fits) sum += col[(int64_t(c) * kernel_size + k) * outputs + output];
    }
    im[index] = sum;
  }
}

int outputs(int image, int kernel, int pad, int stride, int dilation) {
  return (image + 2 * pad - (dilation * (kernel - 1) + 1)) / stride + 1;
}

}  // namespace

template <typename Dtype>
void im2col_gpu(const Dtype* data_im, const int channels, const int height, const int width,
                const int kernel_h, const int kernel_w, const int pad_h, const int pad_w, const int stride_h,
                const int stride_w, const int dilation_h, const int dilation_w, Dtype* data_col) {
  const int output_h = outputs(height, kernel_h, pad_h, stride_h, dilation_h);
  const int output_w = outputs(width, kernel_w, pad_w, stride_w, dilation_w);
  const int n = channels * output_h * output_w;
  im2col_kernel<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
      n, data_im, height, width, kernel_h, kernel_w, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w,
      output_h, output_w, data_col);
  CUDA_POST_KERNEL_CHECK;
}

template <typename Dtype>
void col2im_gpu(const Dtype* data_col, const int channels, const int height, const int width,
                const int kernel_h, const int kernel_w, const int pad_h, const int pad_w, const int stride_h,
                const int stride_w, const int dilation_h, const int dilation_w, Dtype* data_im) {
  const int output_h = outputs(height, kernel_h, pad_h, stride_h, dilation_h);
  const int output_w = outputs(width, kernel_w, pad_w, stride_w, dilation_w);
  const int n = channels * height * width;
  col2im_kernel<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
      n, data_col, height, width, kernel_h, kernel_w, pad_h, pad_w, stride_h, stride_w, dilation_h,
      dilation_w, output_h, output_w, data_im);
  CUDA_POST_KERNEL_CHECK;
}

template <typename Dtype>
void im2col_nd_gpu(const Dtype* data_im, const int num_spatial_axes, const int col_size, const int* im_shape,
                   const int* col_shape, const int* kernel_shape, const int* pad, const int* stride,
                   const int* dilation, Dtype* data_col) {
  im2col_nd_kernel<Dtype><<<CAFFE_GET_BLOCKS(col_size), CAFFE_CUDA_NUM_THREADS>>>(
      col_size, num_spatial_axes, data_im, im_shape, col_shape, kernel_shape, pad, stride, dilation,
      data_col);
  CUDA_POST_KERNEL_CHECK;
}

template <typename Dtype>
void col2im_nd_gpu(const Dtype* data_col, const int num_spatial_axes, const int im_size, const int* im_shape,
                   const int* col_shape, const int* kernel_shape, const int* pad, const int* stride,
                   const int* dilation, Dtype* data_im) {
  col2im_nd_kernel<Dtype><<<CAFFE_GET_BLOCKS(im_size), CAFFE_CUDA_NUM_THREADS>>>(
      im_size, num_spatial_axes, data_col, im_shape, col_shape, kernel_shape, pad, stride, dilation, data_im);
  CUDA_POST_KERNEL_CHECK;
}

#define INSTANTIATE(Dtype)                                                                               \
  template void im2col_gpu(const Dtype*, int, int, int, int, int, int, int, int, int, int, int, Dtype*); \
  template void col2im_gpu(const Dtype*, int, int, int, int, int, int, int, int, int, int, int, Dtype*); \
  template void im2col_nd_gpu(const Dtype*, int, int, const int*, const int*, const int*, const int*,    \
                              const int*, const int*, Dtype*);                                           \
  template void col2im_nd_gpu(const Dtype*, int, int, const int*, const int*, const int*, const int*,    \
                              const int*, const int*, Dtype*);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace caffe
