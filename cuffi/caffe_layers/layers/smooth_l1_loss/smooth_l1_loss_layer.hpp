#ifndef CAFFE_SMOOTH_L1_LOSS_LAYER_HPP_
#define CAFFE_SMOOTH_L1_LOSS_LAYER_HPP_

#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layer.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

/**
 * The robust regression loss of Fast R-CNN (Girshick 2015, eq. 3), with sigma as in Faster R-CNN:
 *
 *     loss = 1/num * sum_i outside_i * f(inside_i * (prediction_i - target_i))
 *     f(x) = 0.5 * (sigma * x)^2       where |x| < 1 / sigma^2
 *            |x| - 0.5 / sigma^2       elsewhere
 *
 * Bottoms: prediction, target, and optionally inside weights and outside weights, all of one shape.
 *
 * Backward needs only the bottoms, and nothing that Forward computed. So it may be called any number of
 * times.
 * Each bottom has a gradient.
 */
template <typename Dtype>
class SmoothL1LossLayer : public LossLayer<Dtype> {
 public:
  explicit SmoothL1LossLayer(const LayerParameter& param) : LossLayer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);

  virtual inline const char* type() const { return "SmoothL1Loss"; }
  virtual inline int ExactNumBottomBlobs() const { return -1; }
  virtual inline int MinBottomBlobs() const { return 2; }
  virtual inline int MaxBottomBlobs() const { return 4; }
  virtual inline bool AllowForceBackward(const int bottom_index) const { return true; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);

  Dtype sigma2_;
  Blob<Dtype> block_sums_;  // scratch of Forward_gpu
};

}  // namespace caffe

#endif  // CAFFE_SMOOTH_L1_LOSS_LAYER_HPP_
