#pragma once

#include "caffe/layer.hpp"

namespace caffe {

// The sum, sum of absolute values, sum of squares or mean over a given axis and all later ones.
template <typename Dtype>
class ReductionLayer : public Layer<Dtype> {
 public:
  explicit ReductionLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int ExactNumBottomBlobs() const override { return 1; }
  int ExactNumTopBlobs() const override { return 1; }
  const char* type() const override { return "Reduction"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;

  ReductionParameter_ReductionOp op_;
  Dtype coeff_;
  int axis_;
  int num_;                     // number of sums
  int dim_;                     // elements of each sum
  Blob<Dtype> sum_multiplier_;  // ones

 private:
  Blob<Dtype> terms_;
};

}  // namespace caffe
