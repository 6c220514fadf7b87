#include "caffe/layers/normalize_layer.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "caffe/filler.hpp"

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
  if (this->blobs_.size() > 0) return;  // the blobs exist already, for example in a copied net
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

  const vector<int> groups{num_, across_spatial_ ? 1 : spatial_};
  inverse_norm_.Reshape(groups);
  dot_.Reshape(groups);
  channel_diff_.Reshape(vector<int>(1, channels_));
  // 16 elements per thread are enough work for a block. At most 256 chunks are enough blocks for a large GPU.
  chunks_ = std::max(1, std::min(256, bottom[0]->count(1) / (16 * 512)));
  if (across_spatial_) {
    chunk_squares_.Reshape(vector<int>{num_, chunks_});
    chunk_dots_.Reshape(vector<int>{num_, chunks_});
  }
}

// Sums are in double, because over an image they have a million terms.
template <typename Dtype>
void NormalizeLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const Dtype* scale = this->blobs_[0]->cpu_data();
  const Dtype* x = bottom[0]->cpu_data();
  Dtype* y = top[0]->mutable_cpu_data();
  const int dim = channels_ * spatial_;
  for (int n = 0; n < num_; ++n, x += dim, y += dim) {
    vector<double> squares(across_spatial_ ? 1 : spatial_, eps_);
    for (int i = 0; i < dim; ++i) squares[across_spatial_ ? 0 : i % spatial_] += x[i] * x[i];
    for (int i = 0; i < dim; ++i) {
      const Dtype norm = std::sqrt(squares[across_spatial_ ? 0 : i % spatial_]);
      y[i] = scale[channel_shared_ ? 0 : i / spatial_] * x[i] / norm;
    }
  }
}

// With y = scale * x / norm:
//   dL/dscale = sum top_diff * x / norm
//   dL/dx     = (scale * top_diff - x * (sum scale * top_diff * x) / norm^2) / norm
template <typename Dtype>
void NormalizeLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                         const vector<Blob<Dtype>*>& bottom) {
  const Dtype* scale = this->blobs_[0]->cpu_data();
  const Dtype* x = bottom[0]->cpu_data();
  const Dtype* top_diff = top[0]->cpu_diff();
  Dtype* x_diff = propagate_down[0] ? bottom[0]->mutable_cpu_diff() : NULL;
  vector<double> scale_diffs(this->blobs_[0]->count(), 0);
  const int dim = channels_ * spatial_;
  for (int n = 0; n < num_; ++n, x += dim, top_diff += dim) {
    vector<double> squares(across_spatial_ ? 1 : spatial_, eps_), dots(squares.size(), 0);
    for (int i = 0; i < dim; ++i) {
      const int group = across_spatial_ ? 0 : i % spatial_;
      squares[group] += x[i] * x[i];
      dots[group] += scale[channel_shared_ ? 0 : i / spatial_] * top_diff[i] * x[i];
    }
    for (int i = 0; i < dim; ++i) {
      const int group = across_spatial_ ? 0 : i % spatial_;
      const int c = channel_shared_ ? 0 : i / spatial_;
      const double norm = std::sqrt(squares[group]);
      scale_diffs[c] += top_diff[i] * x[i] / norm;
      if (x_diff) *x_diff++ = (scale[c] * top_diff[i] - x[i] * dots[group] / squares[group]) / norm;
    }
  }
  if (this->param_propagate_down_[0]) {  // adds to the diff, as Caffe does for all parameters
    for (int c = 0; c < scale_diffs.size(); ++c) this->blobs_[0]->mutable_cpu_diff()[c] += scale_diffs[c];
  }
}

#ifdef CPU_ONLY
STUB_GPU(NormalizeLayer);
#endif

INSTANTIATE_CLASS(NormalizeLayer);
REGISTER_LAYER_CLASS(Normalize);

}  // namespace caffe
