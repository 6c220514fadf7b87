#include "caffe/layers/bias_layer.hpp"

#include "caffe/filler.hpp"
#include "caffe/layers/both_sides.hpp"

namespace caffe {

template <typename Dtype>
void BiasLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (bottom.size() == 1 && this->blobs_.empty()) {
    const BiasParameter& param = this->layer_param_.bias_param();
    const vector<int> shape =
        shape_along(*bottom[0], bottom[0]->CanonicalAxisIndex(param.axis()), param.num_axes(), "bias");
    this->blobs_.resize(1);
    this->blobs_[0].reset(new Blob<Dtype>(shape));
    shared_ptr<Filler<Dtype>>(GetFiller<Dtype>(param.filler()))->Fill(this->blobs_[0].get());
  }
  this->param_propagate_down_.resize(this->blobs_.size(), true);
}

template <typename Dtype>
void BiasLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const Blob<Dtype>& bias = bottom.size() > 1 ? *bottom[1] : *this->blobs_[0];
  const int axis = check_along(*bottom[0], bias, this->layer_param_.bias_param().axis(), "bias");
  outer_dim_ = bottom[0]->count(0, axis);
  bias_dim_ = bias.count();
  inner_dim_ = bottom[0]->count(axis + bias.num_axes());
  dim_ = bias_dim_ * inner_dim_;
  if (bottom[0] != top[0]) top[0]->ReshapeLike(*bottom[0]);
  reshape_to_ones(inner_dim_, &bias_multiplier_);
}

template <typename Dtype>
template <typename Side>
void BiasLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const Dtype* const bias = Side::data(bottom.size() > 1 ? *bottom[1] : *this->blobs_[0]);
  Side::add_along(bottom[0]->count(), Side::data(*bottom[0]), bias, bias_dim_, inner_dim_,
                  Side::mutable_data(*top[0]));
}

template <typename Dtype>
template <typename Side>
void BiasLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                  const vector<Blob<Dtype>*>& bottom) {
  const bool learned = bottom.size() == 1;
  const Dtype* dy = Side::diff(*top[0]);
  if (learned ? this->param_propagate_down_[0] : propagate_down[1]) {
    Dtype* const db = Side::mutable_diff(learned ? *this->blobs_[0] : *bottom[1]);
    for (int n = 0; n < outer_dim_; ++n)  // adds to the diff, as for all parameters
      Side::gemv(CblasNoTrans, bias_dim_, inner_dim_, Dtype(1), dy + n * dim_, Side::data(bias_multiplier_),
                 Dtype(learned || n > 0), db);
  }
  if (propagate_down[0] && bottom[0] != top[0])
    caffe_copy(bottom[0]->count(), dy, Side::mutable_diff(*bottom[0]));
}

CAFFE_BOTH_SIDES(BiasLayer)
INSTANTIATE_CLASS(BiasLayer);

}  // namespace caffe
