#include "caffe/layers/base_conv_layer.hpp"

#include "caffe/filler.hpp"
#include "caffe/layers/both_sides.hpp"

namespace caffe {

namespace {

// A number above INT_MAX becomes negative, and LayerSetUp refuses negative numbers.
template <typename Repeated>
vector<int> values(const Repeated& repeated) {
  return vector<int>(repeated.begin(), repeated.end());
}

// Writes only if the values change, because on the GPU each write costs a copy.
void assign(const vector<int>& values, Blob<int>* blob) {
  const vector<int> shape(1, static_cast<int>(values.size()));
  if (blob->shape() == shape && std::equal(values.begin(), values.end(), blob->cpu_data())) return;
  blob->Reshape(shape);
  std::copy(values.begin(), values.end(), blob->mutable_cpu_data());
}

}  // namespace

// The sizes of field `name`, one per spatial axis. The layer's parameter gives one for all axes, or one per
// axis, or name_h and name_w, or none.
template <typename Dtype>
vector<int> BaseConvolutionLayer<Dtype>::spatial_sizes(const char* name, const vector<int>& given,
                                                       bool has_h_w, int h, int w, int otherwise) const {
  if (has_h_w) {
    CHECK_EQ(num_spatial_axes_, 2) << name << "_h & " << name << "_w can only be used for 2D convolution.";
    CHECK_EQ(0, given.size()) << "Either " << name << " or " << name << "_h/w should be specified; not both.";
    return {h, w};
  }
  if (given.empty()) return vector<int>(num_spatial_axes_, otherwise);
  if (given.size() == 1) return vector<int>(num_spatial_axes_, given[0]);
  CHECK_EQ(given.size(), num_spatial_axes_)
      << name << " must be specified once, or once per spatial dimension (" << name << " specified "
      << given.size() << " times; " << num_spatial_axes_ << " spatial dims).";
  return given;
}

template <typename Dtype>
void BaseConvolutionLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom,
                                             const vector<Blob<Dtype>*>& top) {
  const ConvolutionParameter& param = this->layer_param_.convolution_param();
  force_nd_im2col_ = param.force_nd_im2col();
  channel_axis_ = bottom[0]->CanonicalAxisIndex(param.axis());
  num_spatial_axes_ = bottom[0]->num_axes() - channel_axis_ - 1;
  CHECK_GE(num_spatial_axes_, 0);

  const vector<int> kernel =
      spatial_sizes("kernel", values(param.kernel_size()), param.has_kernel_h() || param.has_kernel_w(),
                    param.kernel_h(), param.kernel_w(), 0);
  const vector<int> stride =
      spatial_sizes("stride", values(param.stride()), param.has_stride_h() || param.has_stride_w(),
                    param.stride_h(), param.stride_w(), 1);
  const vector<int> pad = spatial_sizes("pad", values(param.pad()), param.has_pad_h() || param.has_pad_w(),
                                        param.pad_h(), param.pad_w(), 0);
  const vector<int> dilation = spatial_sizes("dilation", values(param.dilation()), false, 0, 0, 1);
  is_1x1_ = true;
  for (int i = 0; i < num_spatial_axes_; ++i) {
    CHECK_GT(kernel[i], 0) << "Filter dimensions must be nonzero.";
    CHECK_GT(stride[i], 0) << "Stride dimensions must be nonzero.";
    CHECK_GT(dilation[i], 0) << "Dilation must be nonzero.";
    CHECK_GE(pad[i], 0) << "pad is too large.";
    is_1x1_ = is_1x1_ && kernel[i] == 1 && stride[i] == 1 && pad[i] == 0;
  }
  assign(kernel, &kernel_shape_);
  assign(stride, &stride_);
  assign(pad, &pad_);
  assign(dilation, &dilation_);

  channels_ = bottom[0]->shape(channel_axis_);
  num_output_ = param.num_output();
  CHECK_GT(num_output_, 0);
  group_ = param.group();
  CHECK_GT(group_, 0);
  CHECK_EQ(channels_ % group_, 0) << "Number of inputs should be multiples of group.";
  CHECK_EQ(num_output_ % group_, 0) << "Number of output should be multiples of group.";
  conv_out_channels_ = reverse_dimensions() ? channels_ : num_output_;
  conv_in_channels_ = reverse_dimensions() ? num_output_ : channels_;

  bias_term_ = param.bias_term();
  vector<int> weight_shape{conv_out_channels_, conv_in_channels_ / group_};
  weight_shape.insert(weight_shape.end(), kernel.begin(), kernel.end());
  const vector<int> bias_shape(1, num_output_);
  if (this->blobs_.empty()) {
    this->blobs_.resize(bias_term_ ? 2 : 1);
    this->blobs_[0].reset(new Blob<Dtype>(weight_shape));
    shared_ptr<Filler<Dtype>>(GetFiller<Dtype>(param.weight_filler()))->Fill(this->blobs_[0].get());
    if (bias_term_) {
      this->blobs_[1].reset(new Blob<Dtype>(bias_shape));
      shared_ptr<Filler<Dtype>>(GetFiller<Dtype>(param.bias_filler()))->Fill(this->blobs_[1].get());
    }
  } else {
    CHECK_EQ(bias_term_ ? 2 : 1, this->blobs_.size()) << "Incorrect number of weight blobs.";
    CHECK(weight_shape == this->blobs_[0]->shape())
        << "Incorrect weight shape: expected shape " << Blob<Dtype>(weight_shape).shape_string()
        << "; instead, shape was " << this->blobs_[0]->shape_string();
    CHECK(!bias_term_ || bias_shape == this->blobs_[1]->shape())
        << "Incorrect bias shape: expected shape " << Blob<Dtype>(bias_shape).shape_string()
        << "; instead, shape was " << this->blobs_[1]->shape_string();
  }
  kernel_dim_ = this->blobs_[0]->count(1);
  weight_offset_ = this->blobs_[0]->count() / group_;
  this->param_propagate_down_.resize(this->blobs_.size(), true);
}

template <typename Dtype>
void BaseConvolutionLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom,
                                          const vector<Blob<Dtype>*>& top) {
  const int first_spatial_axis = channel_axis_ + 1;
  CHECK_EQ(bottom[0]->num_axes(), first_spatial_axis + num_spatial_axes_)
      << "bottom num_axes may not change.";
  CHECK_EQ(bottom[0]->shape(channel_axis_), channels_) << "Input size incompatible with convolution kernel.";
  for (size_t i = 1; i < bottom.size(); ++i)
    CHECK(bottom[0]->shape() == bottom[i]->shape())
        << "shape mismatch - bottom[0]: " << bottom[0]->shape_string() << " vs. bottom[" << i
        << "]: " << bottom[i]->shape_string();
  num_ = bottom[0]->count(0, channel_axis_);
  bottom_shape_ = &bottom[0]->shape();
  compute_output_shape();
  vector<int> top_shape(bottom[0]->shape().begin(), bottom[0]->shape().begin() + channel_axis_);
  top_shape.push_back(num_output_);
  top_shape.insert(top_shape.end(), output_shape_.begin(), output_shape_.begin() + num_spatial_axes_);
  for (Blob<Dtype>* blob : top) blob->Reshape(top_shape);

  // The convolution's input and output. For transposed convolution these are the top and the bottom.
  const Blob<Dtype>& input = reverse_dimensions() ? *top[0] : *bottom[0];
  const Blob<Dtype>& output = reverse_dimensions() ? *bottom[0] : *top[0];
  conv_out_spatial_dim_ = output.count(first_spatial_axis);
  output_offset_ = output.count(channel_axis_) / group_;
  assign(vector<int>(input.shape().begin() + channel_axis_, input.shape().end()), &conv_input_shape_);
  col_buffer_shape_.assign(1, kernel_dim_ * group_);
  col_buffer_shape_.insert(col_buffer_shape_.end(), output.shape().begin() + first_spatial_axis,
                           output.shape().end());
  col_buffer_.Reshape(col_buffer_shape_);
  col_offset_ = col_buffer_.count() / group_;
  bottom_dim_ = bottom[0]->count(channel_axis_);
  top_dim_ = top[0]->count(channel_axis_);
  num_kernels_im2col_ = conv_in_channels_ * conv_out_spatial_dim_;
  num_kernels_col2im_ = input.count(channel_axis_);
  out_spatial_dim_ = top[0]->count(first_spatial_axis);
  if (bias_term_) reshape_to_ones(out_spatial_dim_, &bias_multiplier_);
}

template <typename Dtype>
template <typename Side>
void BaseConvolutionLayer<Dtype>::im2col(const Dtype* image, Dtype* columns) {
  if (!force_nd_im2col_ && num_spatial_axes_ == 2) {
    const int *size = conv_input_shape_.cpu_data(), *kernel = kernel_shape_.cpu_data(),
              *pad = pad_.cpu_data(), *stride = stride_.cpu_data(), *dilation = dilation_.cpu_data();
    Side::im2col(image, conv_in_channels_, size[1], size[2], kernel[0], kernel[1], pad[0], pad[1], stride[0],
                 stride[1], dilation[0], dilation[1], columns);
  } else {
    Side::im2col_nd(image, num_spatial_axes_, num_kernels_im2col_, Side::data(conv_input_shape_),
                    Side::shape(col_buffer_), Side::data(kernel_shape_), Side::data(pad_),
                    Side::data(stride_), Side::data(dilation_), columns);
  }
}

template <typename Dtype>
template <typename Side>
void BaseConvolutionLayer<Dtype>::col2im(const Dtype* columns, Dtype* image) {
  if (!force_nd_im2col_ && num_spatial_axes_ == 2) {
    const int *size = conv_input_shape_.cpu_data(), *kernel = kernel_shape_.cpu_data(),
              *pad = pad_.cpu_data(), *stride = stride_.cpu_data(), *dilation = dilation_.cpu_data();
    Side::col2im(columns, conv_in_channels_, size[1], size[2], kernel[0], kernel[1], pad[0], pad[1],
                 stride[0], stride[1], dilation[0], dilation[1], image);
  } else {
    Side::col2im_nd(columns, num_spatial_axes_, num_kernels_col2im_, Side::data(conv_input_shape_),
                    Side::shape(col_buffer_), Side::data(kernel_shape_), Side::data(pad_),
                    Side::data(stride_), Side::data(dilation_), image);
  }
}

template <typename Dtype>
template <typename Side>
void BaseConvolutionLayer<Dtype>::forward_gemm(const Dtype* input, const Dtype* weights, Dtype* output,
                                               bool skip_im2col) {
  if (!is_1x1_ && !skip_im2col) im2col<Side>(input, Side::mutable_data(col_buffer_));
  const Dtype* const columns = is_1x1_ ? input : Side::data(col_buffer_);
  for (int g = 0; g < group_; ++g)
    Side::gemm(CblasNoTrans, CblasNoTrans, conv_out_channels_ / group_, conv_out_spatial_dim_, kernel_dim_,
               Dtype(1), weights + weight_offset_ * g, columns + col_offset_ * g, Dtype(0),
               output + output_offset_ * g);
}

template <typename Dtype>
template <typename Side>
void BaseConvolutionLayer<Dtype>::backward_gemm(const Dtype* output, const Dtype* weights, Dtype* input) {
  Dtype* const columns = is_1x1_ ? input : Side::mutable_data(col_buffer_);
  for (int g = 0; g < group_; ++g)
    Side::gemm(CblasTrans, CblasNoTrans, kernel_dim_, conv_out_spatial_dim_, conv_out_channels_ / group_,
               Dtype(1), weights + weight_offset_ * g, output + output_offset_ * g, Dtype(0),
               columns + col_offset_ * g);
  if (!is_1x1_) col2im<Side>(columns, input);
}

template <typename Dtype>
template <typename Side>
void BaseConvolutionLayer<Dtype>::weight_gemm(const Dtype* input, const Dtype* output, Dtype* weights) {
  if (!is_1x1_) im2col<Side>(input, Side::mutable_data(col_buffer_));
  const Dtype* const columns = is_1x1_ ? input : Side::data(col_buffer_);
  for (int g = 0; g < group_; ++g)
    Side::gemm(CblasNoTrans, CblasTrans, conv_out_channels_ / group_, kernel_dim_, conv_out_spatial_dim_,
               Dtype(1), output + output_offset_ * g, columns + col_offset_ * g, Dtype(1),
               weights + weight_offset_ * g);
}

template <typename Dtype>
template <typename Side>
void BaseConvolutionLayer<Dtype>::backward_bias(Dtype* bias, const Dtype* input) {
  Side::gemv(CblasNoTrans, num_output_, out_spatial_dim_, Dtype(1), input, Side::data(bias_multiplier_),
             Dtype(1), bias);
}

#define CAFFE_CONVOLUTION_SIDE(Side, side)                                                                \
  template <typename Dtype>                                                                               \
  void BaseConvolutionLayer<Dtype>::forward_##side##_gemm(const Dtype* input, const Dtype* weights,       \
                                                          Dtype* output, bool skip_im2col) {              \
    forward_gemm<Side>(input, weights, output, skip_im2col);                                              \
  }                                                                                                       \
  template <typename Dtype>                                                                               \
  void BaseConvolutionLayer<Dtype>::forward_##side##_bias(Dtype* output, const Dtype* bias) {             \
    Side::add_along(num_output_ * out_spatial_dim_, output, bias, num_output_, out_spatial_dim_, output); \
  }                                                                                                       \
  template <typename Dtype>                                                                               \
  void BaseConvolutionLayer<Dtype>::backward_##side##_gemm(const Dtype* output, const Dtype* weights,     \
                                                           Dtype* input) {                                \
    backward_gemm<Side>(output, weights, input);                                                          \
  }                                                                                                       \
  template <typename Dtype>                                                                               \
  void BaseConvolutionLayer<Dtype>::weight_##side##_gemm(const Dtype* input, const Dtype* output,         \
                                                         Dtype* weights) {                                \
    weight_gemm<Side>(input, output, weights);                                                            \
  }                                                                                                       \
  template <typename Dtype>                                                                               \
  void BaseConvolutionLayer<Dtype>::backward_##side##_bias(Dtype* bias, const Dtype* input) {             \
    backward_bias<Side>(bias, input);                                                                     \
  }
CAFFE_CONVOLUTION_SIDE(CpuSide, cpu)
CAFFE_CONVOLUTION_SIDE(GpuSide, gpu)

#define CAFFE_INSTANTIATE_SIDE(Dtype, Side)                                                                \
  template void BaseConvolutionLayer<Dtype>::forward_gemm<Side>(const Dtype*, const Dtype*, Dtype*, bool); \
  template void BaseConvolutionLayer<Dtype>::backward_gemm<Side>(const Dtype*, const Dtype*, Dtype*);      \
  template void BaseConvolutionLayer<Dtype>::weight_gemm<Side>(const Dtype*, const Dtype*, Dtype*);        \
  template void BaseConvolutionLayer<Dtype>::backward_bias<Side>(Dtype*, const Dtype*);
CAFFE_INSTANTIATE_SIDE(float, CpuSide)
CAFFE_INSTANTIATE_SIDE(float, GpuSide)
CAFFE_INSTANTIATE_SIDE(double, CpuSide)
CAFFE_INSTANTIATE_SIDE(double, GpuSide)
INSTANTIATE_CLASS(BaseConvolutionLayer);

}  // namespace caffe
