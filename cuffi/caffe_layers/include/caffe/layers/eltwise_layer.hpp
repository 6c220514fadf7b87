#pragma once

#include "caffe/layer.hpp"

namespace caffe {

// The elementwise product, weighted sum or maximum of bottoms of the same shape.
template <typename Dtype>
class EltwiseLayer : public Layer<Dtype> {
 public:
  explicit EltwiseLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int ExactNumTopBlobs() const override { return 1; }
  int MinBottomBlobs() const override { return 2; }
  const char* type() const override { return "Eltwise"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;

  EltwiseParameter_EltwiseOp op_;
  vector<Dtype> coeffs_;
  Blob<int> max_idx_;  // the bottom that each maximum is from
  bool stable_prod_grad_;
};

}  // namespace caffe
