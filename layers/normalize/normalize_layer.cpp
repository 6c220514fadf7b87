#include "caffe/layers/normalize_layer.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "caffe/filler.hpp"
#include "caffe/util/math_functions.hpp"

namespace caffe {

template <typename Dtype>
void NormalizeLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const NormalizeParameter& param = this->layer_param_.norm_param();
  across_spatial_ = param.across_spatial();
  channel_shared_ = param.channel_shared();
  eps_ = param.eps();
  CHECK_NE(bottom[0], top[0]) << "Normalize cannot work in place: Backward needs its bottom";
  CHECK_GE(bottom[0]->num_axes(), 2) << "expected images x channels x ...";
  channels_ = bottom[0]->shape(1);
  this->param_propagate_down_.resize(1, true);
  if (this->blobs_.size() > 0) return;  // given, as when a net is copied
  this->blobs_.resize(1);
  this->blobs_[0].reset(
      new Blob<Dtype>(channel_shared_ ? vector<int>() : vector<int>(1, bottom[0]->shape(1))));
  FillerParameter filler_param;
  if (param.has_scale_filler()) {
    filler_param.CopyFrom(param.scale_filler());
  } else {
    filler_param.set_type("constant");
    filler_param.set_value(1.0);
  }
  shared_ptr<Filler<Dtype> > filler(GetFiller<Dtype>(filler_param));
  filler->Fill(this->blobs_[0].get());
}

template <typename Dtype>
void NormalizeLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  CHECK_EQ(bottom[0]->shape(1), channels_) << "the number of channels may not change";
  CHECK_EQ(this->blobs_[0]->count(), channel_shared_ ? 1 : channels_) << "of scales";
  num_ = bottom[0]->shape(0);
  spatial_ = bottom[0]->count(2);
  top[0]->ReshapeLike(*bottom[0]);

  const vector<int> groups(1, across_spatial_ ? num_ : num_ * spatial_);
  inverse_norm_.Reshape(groups);
  dot_.Reshape(groups);
  channel_diff_.Reshape(vector<int>(1, channels_));
  // 16 elements a thread, so that a block has something to do, but enough blocks for a large GPU.
  chunks_ = std::max(1, std::min(256, channels_ * spatial_ / (16 * 512)));
  if (across_spatial_) {
    chunk_squares_.Reshape(vector<int>(1, num_ * chunks_));
    chunk_dots_.Reshape(vector<int>(1, num_ * chunks_));
  }
}

template <typename Dtype>
void NormalizeLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const Dtype* scale = this->blobs_[0]->cpu_data();
  const Dtype* x = bottom[0]->cpu_data();
  Dtype* y = top[0]->mutable_cpu_data();
  const int groups = across_spatial_ ? 1 : spatial_;
  Dtype* inverse_norm = inverse_norm_.mutable_cpu_data();
  for (int n = 0; n < num_; ++n) {
    caffe_set(groups, eps_, inverse_norm);
    for (int i = 0; i < channels_ * spatial_; ++i) {
      inverse_norm[across_spatial_ ? 0 : i % spatial_] += x[i] * x[i];
    }
    for (int g = 0; g < groups; ++g) inverse_norm[g] = 1 / std::sqrt(inverse_norm[g]);
    for (int c = 0; c < channels_; ++c) {
      const Dtype channel_scale = scale[channel_shared_ ? 0 : c];
      for (int s = 0; s < spatial_; ++s) {
        *y++ = channel_scale * *x++ * inverse_norm[across_spatial_ ? 0 : s];
      }
    }
  }
}

// With y = scale * x / norm:
//   dL/dscale = sum top_diff * x / norm
//   dL/dx     = scale * top_diff / norm - x * (sum scale * top_diff * x) / norm^3
template <typename Dtype>
void NormalizeLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                         const vector<Blob<Dtype>*>& bottom) {
  const Dtype* scale = this->blobs_[0]->cpu_data();
  const Dtype* x = bottom[0]->cpu_data();
  const Dtype* top_diff = top[0]->cpu_diff();
  Dtype* scale_diff = this->param_propagate_down_[0] ? this->blobs_[0]->mutable_cpu_diff() : NULL;
  Dtype* x_diff = propagate_down[0] ? bottom[0]->mutable_cpu_diff() : NULL;
  const int groups = across_spatial_ ? 1 : spatial_;
  Dtype* inverse_norm = inverse_norm_.mutable_cpu_data();
  Dtype* dot = dot_.mutable_cpu_data();
  for (int n = 0; n < num_; ++n) {
    caffe_set(groups, eps_, inverse_norm);
    caffe_set(groups, Dtype(0), dot);
    for (int i = 0; i < channels_ * spatial_; ++i) {
      const int g = across_spatial_ ? 0 : i % spatial_;
      inverse_norm[g] += x[i] * x[i];
      dot[g] += scale[channel_shared_ ? 0 : i / spatial_] * top_diff[i] * x[i];
    }
    for (int g = 0; g < groups; ++g) inverse_norm[g] = 1 / std::sqrt(inverse_norm[g]);
    for (int i = 0; i < channels_ * spatial_; ++i) {
      const int g = across_spatial_ ? 0 : i % spatial_;
      const int c = channel_shared_ ? 0 : i / spatial_;
      const Dtype unit = x[i] * inverse_norm[g];
      if (scale_diff) scale_diff[c] += top_diff[i] * unit;
      if (x_diff) {
        x_diff[i] = inverse_norm[g] * (scale[c] * top_diff[i] - unit * dot[g] * inverse_norm[g]);
      }
    }
    x += channels_ * spatial_;
    top_diff += channels_ * spatial_;
    if (x_diff) x_diff += channels_ * spatial_;
  }
}

#ifdef CPU_ONLY
STUB_GPU(NormalizeLayer);
#endif

INSTANTIATE_CLASS(NormalizeLayer);
REGISTER_LAYER_CLASS(Normalize);

}  // namespace caffe
