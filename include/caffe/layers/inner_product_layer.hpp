#ifndef CAFFE_LAYERS_INNER_PRODUCT_LAYER_HPP_
#define CAFFE_LAYERS_INNER_PRODUCT_LAYER_HPP_

#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// A fully connected layer: y = x W' + b, or x W + b with `transpose`.
template <typename Dtype>
class InnerProductLayer : public Layer<Dtype> {
 public:
  explicit InnerProductLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  int ExactNumBottomBlobs() const override { return 1; }
  int ExactNumTopBlobs() const override { return 1; }
  const char* type() const override { return "InnerProduct"; }

 protected:
  void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                    const vector<Blob<Dtype>*>& bottom) override;
  void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                    const vector<Blob<Dtype>*>& bottom) override;

  int M_, K_, N_;  // rows, inputs, outputs
  bool bias_term_;
  Blob<Dtype> bias_multiplier_;  // ones
  bool transpose_;

 private:
  // Both sides' passes, written once (caffe/layers/side.hpp).
  template <typename Side>
  void ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  template <typename Side>
  void BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                  const vector<Blob<Dtype>*>& bottom);
};

}  // namespace caffe

#endif  // CAFFE_LAYERS_INNER_PRODUCT_LAYER_HPP_
