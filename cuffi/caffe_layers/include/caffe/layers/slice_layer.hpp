#pragma once

#include "caffe/layer.hpp"

namespace caffe {

// Cuts the bottom into tops along an axis.
template <typename Dtype>
class SliceLayer : public Layer<Dtype> {
 public:
  explicit SliceLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int ExactNumBottomBlobs() const override { return 1; }
  int MinTopBlobs() const override { return 1; }
  const char* type() const override { return "Slice"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;

  int num_slices_;  // elements before the axis
  int slice_size_;  // elements behind it
  int slice_axis_;
  vector<int> slice_point_;
};

}  // namespace caffe
