#include "caffe/layers/conv_layer.hpp"

#include "caffe/layers/both_sides.hpp"

namespace caffe {

template <typename Dtype>
void ConvolutionLayer<Dtype>::compute_output_shape() {
  const int *kernel = this->kernel_shape_.cpu_data(), *stride = this->stride_.cpu_data(),
            *pad = this->pad_.cpu_data(), *dilation = this->dilation_.cpu_data();
  this->output_shape_.clear();
  for (int i = 0; i < this->num_spatial_axes_; ++i) {
    const int64_t extent = int64_t{dilation[i]} * (kernel[i] - 1) + 1;
    const int64_t padded = this->input_shape(i + 1) + 2 * int64_t{pad[i]};
    CHECK_LE(padded, INT_MAX) << "pixels of spatial axis " << i << " with its padding";
    CHECK_LE(extent, INT_MAX) << "pixels that a kernel spans along spatial axis " << i;
    this->output_shape_.push_back(static_cast<int>((padded - extent) / stride[i] + 1));
  }
}

template <typename Dtype>
template <typename Side>
void ConvolutionLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const Dtype* const weight = Side::data(*this->blobs_[0]);
  for (size_t i = 0; i < bottom.size(); ++i) {
    const Dtype* x = Side::data(*bottom[i]);
    Dtype* y = Side::mutable_data(*top[i]);
    for (int n = 0; n < this->num_; ++n, x += this->bottom_dim_, y += this->top_dim_)
      this->template forward_gemm<Side>(x, weight, y, false);
    if (this->bias_term_) {  // all images at once
      Dtype* const all = Side::mutable_data(*top[i]);
      Side::add_along(top[i]->count(), all, Side::data(*this->blobs_[1]), this->num_output_,
                      this->out_spatial_dim_, all);
    }
  }
}

template <typename Dtype>
template <typename Side>
void ConvolutionLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                         const vector<Blob<Dtype>*>& bottom) {
  const Dtype* const weight = Side::data(*this->blobs_[0]);
  const bool to_weight = this->param_propagate_down_[0];
  const bool to_bias = this->bias_term_ && this->param_propagate_down_[1];
  Dtype* const weight_diff = to_weight ? Side::mutable_diff(*this->blobs_[0]) : nullptr;
  Dtype* const bias_diff = to_bias ? Side::mutable_diff(*this->blobs_[1]) : nullptr;
  for (size_t i = 0; i < top.size(); ++i) {
    const Dtype* dy = Side::diff(*top[i]);
    const Dtype* x = Side::data(*bottom[i]);
    Dtype* dx = propagate_down[i] ? Side::mutable_diff(*bottom[i]) : nullptr;
    for (int n = 0; n < this->num_; ++n, dy += this->top_dim_, x += this->bottom_dim_) {
      if (bias_diff) this->template backward_bias<Side>(bias_diff, dy);
      if (weight_diff) this->template weight_gemm<Side>(x, dy, weight_diff);
      if (dx) this->template backward_gemm<Side>(dy, weight, dx + int64_t(n) * this->bottom_dim_);
    }
  }
}

CAFFE_BOTH_SIDES(ConvolutionLayer)
INSTANTIATE_CLASS(ConvolutionLayer);

}  // namespace caffe
