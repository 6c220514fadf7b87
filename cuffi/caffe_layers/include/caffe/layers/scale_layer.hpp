#pragma once

#include "caffe/layer.hpp"

namespace caffe {

// y = x times a blob that spans some of x's axes, plus an optional bias parameter. The blob is a bottom
// or a parameter.
template <typename Dtype>
class ScaleLayer : public Layer<Dtype> {
 public:
  explicit ScaleLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int ExactNumTopBlobs() const override { return 1; }
  int MinBottomBlobs() const override { return 1; }
  int MaxBottomBlobs() const override { return 2; }
  const char* type() const override { return "Scale"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;

  shared_ptr<Layer<Dtype>> bias_layer_;
  vector<Blob<Dtype>*> bias_bottom_vec_;
  vector<bool> bias_propagate_down_;
  int bias_param_id_;

  Blob<Dtype> sum_multiplier_;  // ones
  Blob<Dtype> sum_result_;
  Blob<Dtype> temp_;  // in place: a copy of x. In Backward: x times the top's diff
  int axis_;
  int outer_dim_, scale_dim_, inner_dim_;
};

}  // namespace caffe
