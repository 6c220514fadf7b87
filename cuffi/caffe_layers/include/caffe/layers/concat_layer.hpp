#pragma once

#include "caffe/layer.hpp"

namespace caffe {

// Concatenates the bottoms along an axis.
template <typename Dtype>
class ConcatLayer : public Layer<Dtype> {
 public:
  explicit ConcatLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int ExactNumTopBlobs() const override { return 1; }
  int MinBottomBlobs() const override { return 1; }
  const char* type() const override { return "Concat"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;

  int num_concats_;        // elements before the axis
  int concat_input_size_;  // elements behind it
  int concat_axis_;
};

}  // namespace caffe
