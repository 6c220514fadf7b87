// im2col writes the patches of an image to columns. col2im adds the columns back into an image. Both exist
// for two dimensions, and for any number of them.
//
// An image is [channels, spatial...]; its columns are [channels * kernel..., output...]. In the n-dimensional
// functions im_shape and col_shape start with the channel axis. Their arrays are on the host for _cpu, and on
// the device for _gpu.
#ifndef CAFFE_UTIL_IM2COL_HPP_
#define CAFFE_UTIL_IM2COL_HPP_

namespace caffe {

template <typename Dtype>
void im2col_cpu(const Dtype* data_im, const int channels, const int height, const int width,
                const int kernel_h, const int kernel_w, const int pad_h, const int pad_w, const int stride_h,
                const int stride_w, const int dilation_h, const int dilation_w, Dtype* data_col);
template <typename Dtype>
void col2im_cpu(const Dtype* data_col, const int channels, const int height, const int width,
                const int kernel_h, const int kernel_w, const int pad_h, const int pad_w, const int stride_h,
                const int stride_w, const int dilation_h, const int dilation_w, Dtype* data_im);
template <typename Dtype>
void im2col_gpu(const Dtype* data_im, const int channels, const int height, const int width,
                const int kernel_h, const int kernel_w, const int pad_h, const int pad_w, const int stride_h,
                const int stride_w, const int dilation_h, const int dilation_w, Dtype* data_col);
template <typename Dtype>
void col2im_gpu(const Dtype* data_col, const int channels, const int height, const int width,
                const int kernel_h, const int kernel_w, const int pad_h, const int pad_w, const int stride_h,
                const int stride_w, const int dilation_h, const int dilation_w, Dtype* data_im);

// col_size: channels times output positions; im_size: elements of the image.
template <typename Dtype>
void im2col_nd_cpu(const Dtype* data_im, const int num_spatial_axes, const int* im_shape,
                   const int* col_shape, const int* kernel_shape, const int* pad, const int* stride,
                   const int* dilation, Dtype* data_col);
template <typename Dtype>
void col2im_nd_cpu(const Dtype* data_col, const int num_spatial_axes, const int* im_shape,
                   const int* col_shape, const int* kernel_shape, const int* pad, const int* stride,
                   const int* dilation, Dtype* data_im);
template <typename Dtype>
void im2col_nd_gpu(const Dtype* data_im, const int num_spatial_axes, const int col_size, const int* im_shape,
                   const int* col_shape, const int* kernel_shape, const int* pad, const int* stride,
                   const int* dilation, Dtype* data_col);
template <typename Dtype>
void col2im_nd_gpu(const Dtype* data_col, const int num_spatial_axes, const int im_size, const int* im_shape,
                   const int* col_shape, const int* kernel_shape, const int* pad, const int* stride,
                   const int* dilation, Dtype* data_im);

// The functions of Caffe before it had dilation.
#define CAFFE_WITHOUT_DILATION_(function)                                                                    \
  template <typename Dtype>                                                                                  \
  void function(const Dtype* from, const int channels, const int height, const int width,                    \
                const int kernel_h, const int kernel_w, const int pad_h, const int pad_w,                    \
                const int stride_h, const int stride_w, Dtype* to) {                                         \
    function(from, channels, height, width, kernel_h, kernel_w, pad_h, pad_w, stride_h, stride_w, 1, 1, to); \
  }
CAFFE_WITHOUT_DILATION_(im2col_cpu)
CAFFE_WITHOUT_DILATION_(col2im_cpu)
CAFFE_WITHOUT_DILATION_(im2col_gpu)
CAFFE_WITHOUT_DILATION_(col2im_gpu)
#undef CAFFE_WITHOUT_DILATION_

}  // namespace caffe

#endif  // CAFFE_UTIL_IM2COL_HPP_
