#pragma once

#include "caffe/layer.hpp"

namespace caffe {

// Maximum, average or (on the GPU) stochastic pooling of [num, channels, height, width].
template <typename Dtype>
class PoolingLayer : public Layer<Dtype> {
 public:
  explicit PoolingLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int ExactNumBottomBlobs() const override { return 1; }
  int MinTopBlobs() const override { return 1; }
  // The second top of maximum pooling gets the place of each maximum.
  int MaxTopBlobs() const override {
    return this->layer_param_.pooling_param().pool() == PoolingParameter_PoolMethod_MAX ? 2 : 1;
  }
  const char* type() const override { return "Pooling"; }

 protected:
  CAFFE_DECLARE_PASSES;

  int kernel_h_, kernel_w_;
  int stride_h_, stride_w_;
  int pad_h_, pad_w_;
  int channels_;
  int height_, width_;
  int pooled_height_, pooled_width_;
  bool global_pooling_;
  int round_mode_;        // PoolingParameter_RoundMode, as an int because Caffe before 2018 has no such enum
  Blob<Dtype> rand_idx_;  // stochastic: a random number, later replaced by the chosen element's place
  Blob<int> max_idx_;
};

}  // namespace caffe
