// The base class of losses: predictions and labels in, a scalar out.
#ifndef CAFFE_LOSS_LAYER_HPP_
#define CAFFE_LOSS_LAYER_HPP_

#include "caffe/layer.hpp"

namespace caffe {

const float kLOG_THRESHOLD = 1e-20;  // losses clamp probabilities to this before a logarithm

template <typename Dtype>
class LossLayer : public Layer<Dtype> {
 public:
  explicit LossLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);

  virtual inline int ExactNumBottomBlobs() const { return 2; }
  virtual inline bool AutoTopBlobs() const { return true; }
  virtual inline int ExactNumTopBlobs() const { return 1; }
  // Labels have no gradient.
  virtual inline bool AllowForceBackward(const int bottom_index) const { return bottom_index != 1; }
};

}  // namespace caffe

#endif  // CAFFE_LOSS_LAYER_HPP_
