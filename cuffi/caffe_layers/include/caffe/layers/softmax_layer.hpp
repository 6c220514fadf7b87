#pragma once

#include "caffe/layer.hpp"

namespace caffe {

// Softmax along one axis.
template <typename Dtype>
class SoftmaxLayer : public Layer<Dtype> {
 public:
  explicit SoftmaxLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int ExactNumBottomBlobs() const override { return 1; }
  int ExactNumTopBlobs() const override { return 1; }
  const char* type() const override { return "Softmax"; }

 protected:
  CAFFE_DECLARE_PASSES;

  int outer_num_, inner_num_;  // elements before and behind the axis
  int softmax_axis_;
  Blob<Dtype> sum_multiplier_;  // shaped for the sake of derived classes; not used here
  Blob<Dtype> scale_;
};

}  // namespace caffe
