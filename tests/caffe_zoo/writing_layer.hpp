#ifndef CAFFE_WRITING_LAYER_HPP_
#define CAFFE_WRITING_LAYER_HPP_

#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// y = w * a * b * b. Before that, Forward writes to what it was given, and Backward reads what it wrote. `memory` says
// what Forward writes:
//   whole: a and b, clipped to [-1, 1];   part: the first half of b;   host: as whole, from the processor;
//   copy, share, buffer: a, by CopyFrom, ShareData and set_cpu_data of a clipped copy;
//   weight: w, clipped to [-1, 1];   running: w + 1, as a running mean changes with each call.
// The top may be in place of a.
template <typename Dtype>
class WritingLayer : public Layer<Dtype> {
 public:
  explicit WritingLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual inline const char* type() const { return "Writing"; }
  virtual inline int ExactNumBottomBlobs() const { return 2; }
  virtual inline int ExactNumTopBlobs() const { return 1; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
  // Writes on the processor.
  void Write(const vector<Blob<Dtype>*>& bottom);
  Blob<Dtype> clipped_;
};

}  // namespace caffe

#endif  // CAFFE_WRITING_LAYER_HPP_
