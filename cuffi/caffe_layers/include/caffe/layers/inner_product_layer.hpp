#pragma once

#include "caffe/layer.hpp"

namespace caffe {

// A fully connected layer: y = x W' + b, or x W + b with `transpose`.
template <typename Dtype>
class InnerProductLayer : public Layer<Dtype> {
 public:
  explicit InnerProductLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int ExactNumBottomBlobs() const override { return 1; }
  int ExactNumTopBlobs() const override { return 1; }
  const char* type() const override { return "InnerProduct"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;

  int M_, K_, N_;  // rows, inputs, outputs
  bool bias_term_;
  Blob<Dtype> bias_multiplier_;  // ones
  bool transpose_;
};

}  // namespace caffe
