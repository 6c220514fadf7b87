#pragma once

#include "caffe/layer.hpp"

namespace caffe {

// Copies the bottom to several tops. They share its data, and their diffs are added.
template <typename Dtype>
class SplitLayer : public Layer<Dtype> {
 public:
  explicit SplitLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int ExactNumBottomBlobs() const override { return 1; }
  int MinTopBlobs() const override { return 1; }
  const char* type() const override { return "Split"; }

 protected:
  CAFFE_DECLARE_BOTH_SIDES;

  int count_;
};

}  // namespace caffe
