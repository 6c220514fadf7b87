#pragma once

#include "caffe/layers/base_conv_layer.hpp"

namespace caffe {

// Convolution as a matrix product over patches.
template <typename Dtype>
class ConvolutionLayer : public BaseConvolutionLayer<Dtype> {
 public:
  explicit ConvolutionLayer(const LayerParameter& param) : BaseConvolutionLayer<Dtype>(param) {}
  const char* type() const override { return "Convolution"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;
  bool reverse_dimensions() override { return false; }
  void compute_output_shape() override;
};

}  // namespace caffe
