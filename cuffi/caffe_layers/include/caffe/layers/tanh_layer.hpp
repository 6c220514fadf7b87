#pragma once

#include "caffe/layers/neuron_layer.hpp"

namespace caffe {

// y = tanh(x)
template <typename Dtype>
class TanHLayer : public NeuronLayer<Dtype> {
 public:
  explicit TanHLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  const char* type() const override { return "TanH"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;
};

}  // namespace caffe
