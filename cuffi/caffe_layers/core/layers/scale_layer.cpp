#include "caffe/layers/scale_layer.hpp"

#include "caffe/filler.hpp"
#include "caffe/layers/both_sides.hpp"

namespace caffe {

template <typename Dtype>
void ScaleLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const ScaleParameter& param = this->layer_param_.scale_param();
  if (bottom.size() == 1 && this->blobs_.empty()) {
    axis_ = bottom[0]->CanonicalAxisIndex(param.axis());
    this->blobs_.resize(1);
    this->blobs_[0].reset(new Blob<Dtype>(shape_along(*bottom[0], axis_, param.num_axes(), "scale")));
    FillerParameter filler(param.filler());
    if (!param.has_filler()) filler.set_value(1);
    shared_ptr<Filler<Dtype>>(GetFiller<Dtype>(filler))->Fill(this->blobs_[0].get());
  }
  if (param.bias_term()) {
    LayerParameter layer_param(this->layer_param_);
    layer_param.set_type("Bias");
    BiasParameter* const bias_param = layer_param.mutable_bias_param();
    bias_param->set_axis(param.axis());
    bias_param->set_num_axes(bottom.size() > 1 ? bottom[1]->num_axes() : param.num_axes());
    bias_param->mutable_filler()->CopyFrom(param.bias_filler());
    bias_layer_ = LayerRegistry<Dtype>::CreateLayer(layer_param);
    bias_bottom_vec_.assign(1, bottom[0]);
    bias_layer_->SetUp(bias_bottom_vec_, top);
    if (this->blobs_.size() + bottom.size() < 3) {
      bias_param_id_ = static_cast<int>(this->blobs_.size());
      this->blobs_.push_back(bias_layer_->blobs()[0]);
    } else {  // the blobs exist already, and the bias is the last one
      bias_param_id_ = static_cast<int>(this->blobs_.size()) - 1;
      bias_layer_->blobs()[0] = this->blobs_[bias_param_id_];
    }
    bias_propagate_down_.assign(1, false);
  }
  this->param_propagate_down_.resize(this->blobs_.size(), true);
}

template <typename Dtype>
void ScaleLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const Blob<Dtype>& scale = bottom.size() > 1 ? *bottom[1] : *this->blobs_[0];
  axis_ = check_along(*bottom[0], scale, this->layer_param_.scale_param().axis(), "scale");
  outer_dim_ = bottom[0]->count(0, axis_);
  scale_dim_ = scale.count();
  inner_dim_ = bottom[0]->count(axis_ + scale.num_axes());
  temp_.ReshapeLike(*bottom[0]);
  if (bottom[0] != top[0]) top[0]->ReshapeLike(*bottom[0]);
  sum_result_.Reshape(vector<int>(1, outer_dim_ * scale_dim_));
  reshape_to_ones(std::max(outer_dim_, inner_dim_), &sum_multiplier_);
  if (bias_layer_) {
    bias_bottom_vec_[0] = top[0];
    bias_layer_->Reshape(bias_bottom_vec_, top);
  }
}

template <typename Dtype>
template <typename Side>
void ScaleLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = bottom[0]->count();
  if (bottom[0] == top[0]) caffe_copy(n, Side::data(*bottom[0]), Side::mutable_data(temp_));
  Side::mul_along(n, Side::data(*bottom[0]), Side::data(bottom.size() > 1 ? *bottom[1] : *this->blobs_[0]),
                  scale_dim_, inner_dim_, Side::mutable_data(*top[0]));
  if (bias_layer_) bias_layer_->Forward(bias_bottom_vec_, top);
}

template <typename Dtype>
template <typename Side>
void ScaleLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                   const vector<Blob<Dtype>*>& bottom) {
  if (bias_layer_ && this->param_propagate_down_.back())
    bias_layer_->Backward(top, bias_propagate_down_, bias_bottom_vec_);
  const bool learned = bottom.size() == 1;
  Blob<Dtype>& scale = learned ? *this->blobs_[0] : *bottom[1];
  const int n = bottom[0]->count();
  const Dtype* const dy = Side::diff(*top[0]);
  if (learned ? this->param_propagate_down_[0] : propagate_down[1]) {
    // Sum dy * x, first over the inner axes, then over the outer ones.
    const Dtype* const x = Side::data(bottom[0] == top[0] ? temp_ : *bottom[0]);
    Dtype* const product = Side::mutable_data(temp_);
    Dtype* const sums = Side::mutable_data(sum_result_);
    const Dtype* const ones = Side::data(sum_multiplier_);
    Side::mul(n, dy, x, product);
    Side::gemv(CblasNoTrans, outer_dim_ * scale_dim_, inner_dim_, Dtype(1), product, ones, Dtype(0), sums);
    Side::gemv(CblasTrans, outer_dim_, scale_dim_, Dtype(1), sums, ones, Dtype(learned),
               Side::mutable_diff(scale));
  }
  if (propagate_down[0])
    Side::mul_along(n, dy, Side::data(scale), scale_dim_, inner_dim_, Side::mutable_diff(*bottom[0]));
}

CAFFE_BOTH_SIDES(ScaleLayer)
INSTANTIATE_CLASS(ScaleLayer);

}  // namespace caffe
