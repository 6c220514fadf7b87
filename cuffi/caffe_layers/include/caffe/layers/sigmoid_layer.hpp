#pragma once

#include "caffe/layers/neuron_layer.hpp"

namespace caffe {

// y = 1 / (1 + exp(-x))
template <typename Dtype>
class SigmoidLayer : public NeuronLayer<Dtype> {
 public:
  explicit SigmoidLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  const char* type() const override { return "Sigmoid"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;
};

}  // namespace caffe
