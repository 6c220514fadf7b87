#pragma once

#include "caffe/layers/neuron_layer.hpp"

namespace caffe {

// y = (shift + scale * x)^power
template <typename Dtype>
class PowerLayer : public NeuronLayer<Dtype> {
 public:
  explicit PowerLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  const char* type() const override { return "Power"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;

  Dtype power_;
  Dtype scale_;
  Dtype shift_;
  Dtype diff_scale_;  // power * scale
};

}  // namespace caffe
