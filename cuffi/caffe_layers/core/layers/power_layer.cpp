#include "caffe/layers/power_layer.hpp"

#include "caffe/layers/both_sides.hpp"

namespace caffe {

template <typename Dtype>
void PowerLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  NeuronLayer<Dtype>::LayerSetUp(bottom, top);
  const PowerParameter& param = this->layer_param_.power_param();
  power_ = param.power();
  scale_ = param.scale();
  shift_ = param.shift();
  diff_scale_ = power_ * scale_;
}

template <typename Dtype>
template <typename Side>
void PowerLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = bottom[0]->count();
  Dtype* const y = Side::mutable_data(*top[0]);
  if (diff_scale_ == 0) {  // y does not depend on x
    Side::set(n, power_ == 0 ? Dtype(1) : Dtype(std::pow(shift_, power_)), y);
    return;
  }
  Side::scale(n, scale_, Side::data(*bottom[0]), y);
  if (shift_ != 0) Side::add_scalar(n, shift_, y);
  if (power_ != 1) Side::powx(n, y, power_, y);
}

template <typename Dtype>
template <typename Side>
void PowerLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                   const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const int n = bottom[0]->count();
  const Dtype* const dy = Side::diff(*top[0]);
  Dtype* const dx = Side::mutable_diff(*bottom[0]);
  if (diff_scale_ == 0) {
    Side::set(n, Dtype(0), dx);
  } else if (power_ == 1) {
    Side::scale(n, diff_scale_, dy, dx);
  } else {  // dx = diff_scale * (shift + scale x)^(power - 1) * dy
    Side::scale(n, scale_, Side::data(*bottom[0]), dx);
    if (shift_ != 0) Side::add_scalar(n, shift_, dx);
    if (power_ != 2) Side::powx(n, dx, power_ - Dtype(1), dx);
    Side::scal(n, diff_scale_, dx);
    Side::mul(n, dx, dy, dx);
  }
}

CAFFE_BOTH_SIDES(PowerLayer)
INSTANTIATE_CLASS(PowerLayer);

}  // namespace caffe
