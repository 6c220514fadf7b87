#pragma once

#include "caffe/layer.hpp"

namespace caffe {

// y = x plus a blob that spans some of x's axes. The blob is a bottom or a parameter.
template <typename Dtype>
class BiasLayer : public Layer<Dtype> {
 public:
  explicit BiasLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int ExactNumTopBlobs() const override { return 1; }
  int MinBottomBlobs() const override { return 1; }
  int MaxBottomBlobs() const override { return 2; }
  const char* type() const override { return "Bias"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;

  Blob<Dtype> bias_multiplier_;  // ones
  int outer_dim_, bias_dim_, inner_dim_, dim_;
};

}  // namespace caffe
