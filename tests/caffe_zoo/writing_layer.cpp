#include "caffe/layers/writing_layer.hpp"

#include <algorithm>
#include <vector>

#include "caffe/filler.hpp"
#include "caffe/util/math_functions.hpp"

namespace caffe {

template <typename Dtype>
static void Clip(int n, const Dtype* x, Dtype* y) {
  for (int i = 0; i < n; ++i) y[i] = std::min(Dtype(1), std::max(Dtype(-1), x[i]));
}

template <typename Dtype>
void WritingLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  this->blobs_.resize(1);
  this->blobs_[0].reset(new Blob<Dtype>(vector<int>(1, 1)));
  this->blobs_[0]->mutable_cpu_data()[0] = 3;
}

template <typename Dtype>
void WritingLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  top[0]->ReshapeLike(*bottom[0]);
  clipped_.ReshapeLike(*bottom[0]);
}

template <typename Dtype>
void WritingLayer<Dtype>::Write(const vector<Blob<Dtype>*>& bottom) {
  const string what = this->layer_param_.zoo_param().memory();
  const int n = bottom[0]->count();
  if (what == "whole" || what == "host") {
    for (Blob<Dtype>* blob : bottom) Clip(n, blob->cpu_data(), blob->mutable_cpu_data());
  } else if (what == "part") {
    Clip(n / 2, bottom[1]->cpu_data(), bottom[1]->mutable_cpu_data());
  } else if (what == "weight") {
    Clip(1, this->blobs_[0]->cpu_data(), this->blobs_[0]->mutable_cpu_data());
  } else if (what == "running") {
    this->blobs_[0]->mutable_cpu_data()[0] += 1;
  } else {
    Clip(n, bottom[0]->cpu_data(), clipped_.mutable_cpu_data());
    if (what == "copy") bottom[0]->CopyFrom(clipped_);
    if (what == "share") bottom[0]->ShareData(clipped_);
    if (what == "buffer") bottom[0]->set_cpu_data(clipped_.mutable_cpu_data());
  }
}

template <typename Dtype>
void WritingLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  Write(bottom);
  const Dtype w = this->blobs_[0]->cpu_data()[0];
  const Dtype* a = bottom[0]->cpu_data();
  const Dtype* b = bottom[1]->cpu_data();
  Dtype* y = top[0]->mutable_cpu_data();
  for (int i = 0; i < bottom[0]->count(); ++i) y[i] = w * a[i] * b[i] * b[i];
}

template <typename Dtype>
void WritingLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                       const vector<Blob<Dtype>*>& bottom) {
  const bool in_place = top[0] == bottom[0];
  const int n = bottom[0]->count();
  const Dtype w = this->blobs_[0]->cpu_data()[0];
  const Dtype* dy = top[0]->cpu_diff();
  const Dtype* y = top[0]->cpu_data();
  const Dtype* a = bottom[0]->cpu_data();
  const Dtype* b = bottom[1]->cpu_data();
  if (this->param_propagate_down_[0])
    for (int i = 0; i < n; ++i)
      this->blobs_[0]->mutable_cpu_diff()[0] += dy[i] * (in_place ? y[i] / w : a[i] * b[i] * b[i]);
  if (propagate_down[1])
    for (int i = 0; i < n; ++i)
      bottom[1]->mutable_cpu_diff()[i] = 2 * dy[i] * (in_place ? y[i] / b[i] : w * a[i] * b[i]);
  if (propagate_down[0])
    for (int i = 0; i < n; ++i) bottom[0]->mutable_cpu_diff()[i] = dy[i] * w * b[i] * b[i];
}

INSTANTIATE_CLASS(WritingLayer);
REGISTER_LAYER_CLASS(Writing);

}  // namespace caffe
