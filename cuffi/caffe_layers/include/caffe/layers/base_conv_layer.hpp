#pragma once

#include "caffe/layer.hpp"
#include "caffe/util/im2col.hpp"

namespace caffe {

// The base class of convolution and transposed convolution: parameters, shapes, and the products of weights
// and patches, one image at a time.
template <typename Dtype>
class BaseConvolutionLayer : public Layer<Dtype> {
 public:
  explicit BaseConvolutionLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int MinBottomBlobs() const override { return 1; }
  int MinTopBlobs() const override { return 1; }
  bool EqualNumBottomTopBlobs() const override { return true; }

 protected:
  // output = weights * patches(input). skip_im2col: col_buffer_ already holds this input's patches.
  void forward_cpu_gemm(const Dtype* input, const Dtype* weights, Dtype* output, bool skip_im2col = false);
  void forward_gpu_gemm(const Dtype* input, const Dtype* weights, Dtype* output, bool skip_im2col = false);
  // output += bias
  void forward_cpu_bias(Dtype* output, const Dtype* bias);
  void forward_gpu_bias(Dtype* output, const Dtype* bias);
  // input = sum of patches of weights' * output
  void backward_cpu_gemm(const Dtype* output, const Dtype* weights, Dtype* input);
  void backward_gpu_gemm(const Dtype* output, const Dtype* weights, Dtype* input);
  // weights += output * patches(input)'
  void weight_cpu_gemm(const Dtype* input, const Dtype* output, Dtype* weights);
  void weight_gpu_gemm(const Dtype* input, const Dtype* output, Dtype* weights);
  // bias += sums of input over space
  void backward_cpu_bias(Dtype* bias, const Dtype* input);
  void backward_gpu_bias(Dtype* bias, const Dtype* input);

  // The bottom's size along axis channel_axis_ + i.
  int input_shape(int i) { return (*bottom_shape_)[channel_axis_ + i]; }
  // True for transposed convolution, whose output is the convolution's input.
  virtual bool reverse_dimensions() = 0;
  // Sets output_shape_.
  virtual void compute_output_shape() = 0;

  Blob<int> kernel_shape_;
  Blob<int> stride_;
  Blob<int> pad_;
  Blob<int> dilation_;
  Blob<int> conv_input_shape_;  // channels and space of the convolution's input
  vector<int> col_buffer_shape_;
  vector<int> output_shape_;
  const vector<int>* bottom_shape_;

  int num_spatial_axes_;
  int bottom_dim_;  // elements of one image
  int top_dim_;

  int channel_axis_;
  int num_;
  int channels_;
  int group_;
  int out_spatial_dim_;
  int weight_offset_;  // between groups
  int num_output_;
  bool bias_term_;
  bool is_1x1_;  // the patches are the image itself
  bool force_nd_im2col_;

  int num_kernels_im2col_;
  int num_kernels_col2im_;
  int conv_out_channels_;
  int conv_in_channels_;
  int conv_out_spatial_dim_;
  int kernel_dim_;
  int col_offset_;
  int output_offset_;

  Blob<Dtype> col_buffer_;       // one image's patches
  Blob<Dtype> bias_multiplier_;  // ones

  // Not Caffe's: the functions above call these, for either side (caffe/layers/both_sides.hpp).
  template <typename Side>
  void forward_gemm(const Dtype* input, const Dtype* weights, Dtype* output, bool skip_im2col);
  template <typename Side>
  void backward_gemm(const Dtype* output, const Dtype* weights, Dtype* input);
  template <typename Side>
  void weight_gemm(const Dtype* input, const Dtype* output, Dtype* weights);
  template <typename Side>
  void backward_bias(Dtype* bias, const Dtype* input);

 private:
  template <typename Side>
  void im2col(const Dtype* image, Dtype* columns);
  template <typename Side>
  void col2im(const Dtype* columns, Dtype* image);
  vector<int> spatial_sizes(const char* name, const vector<int>& given, bool has_h_w, int h, int w,
                            int otherwise) const;
};

}  // namespace caffe
