#pragma once

#include "caffe/layers/neuron_layer.hpp"

namespace caffe {

// y = x > 0 ? x : negative_slope * x
template <typename Dtype>
class ReLULayer : public NeuronLayer<Dtype> {
 public:
  explicit ReLULayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  const char* type() const override { return "ReLU"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;
};

}  // namespace caffe
