#ifndef CAFFE_LAYERS_POWER_LAYER_HPP_
#define CAFFE_LAYERS_POWER_LAYER_HPP_

#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layers/neuron_layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// y = (shift + scale * x)^power
template <typename Dtype>
class PowerLayer : public NeuronLayer<Dtype> {
 public:
  explicit PowerLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  const char* type() const override { return "Power"; }

 protected:
  void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                    const vector<Blob<Dtype>*>& bottom) override;
  void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                    const vector<Blob<Dtype>*>& bottom) override;

  Dtype power_;
  Dtype scale_;
  Dtype shift_;
  Dtype diff_scale_;  // power * scale

 private:
  // Both sides' passes, written once (caffe/layers/side.hpp).
  template <typename Side>
  void ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  template <typename Side>
  void BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                  const vector<Blob<Dtype>*>& bottom);
};

}  // namespace caffe

#endif  // CAFFE_LAYERS_POWER_LAYER_HPP_
