#pragma once
#include "caffe/layer.hpp"

namespace caffe {

template <typename Dtype>
class BlendLayer : public Layer<Dtype> {
 public:
  explicit BlendLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual inline const char* type() const { return "Blend"; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>&) {}
  virtual void Backward_cpu(const vector<Blob<Dtype>*>&, const vector<bool>&, const vector<Blob<Dtype>*>&) {}
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);

  Dtype share_;
  Blob<Dtype> sum_;
  cudaStream_t mine_;
};

}  // namespace caffe
