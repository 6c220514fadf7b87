#include "caffe/layers/reduction_layer.hpp"

#include "caffe/layers/both_sides.hpp"

namespace caffe {

template <typename Dtype>
void ReductionLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  op_ = this->layer_param_.reduction_param().operation();
}

template <typename Dtype>
void ReductionLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const ReductionParameter& param = this->layer_param_.reduction_param();
  axis_ = bottom[0]->CanonicalAxisIndex(param.axis());
  num_ = bottom[0]->count(0, axis_);
  dim_ = bottom[0]->count(axis_);
  coeff_ = param.coeff();
  if (op_ == ReductionParameter_ReductionOp_MEAN) coeff_ /= dim_;
  top[0]->Reshape(vector<int>(bottom[0]->shape().begin(), bottom[0]->shape().begin() + axis_));
  reshape_to_ones(dim_, &sum_multiplier_);
  terms_.ReshapeLike(*bottom[0]);
}

template <typename Dtype>
template <typename Side>
void ReductionLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = bottom[0]->count();
  const Dtype* terms = Side::data(*bottom[0]);
  if (op_ == ReductionParameter_ReductionOp_ASUM) {
    Side::abs(n, terms, Side::mutable_data(terms_));
    terms = Side::data(terms_);
  } else if (op_ == ReductionParameter_ReductionOp_SUMSQ) {
    Side::mul(n, terms, terms, Side::mutable_data(terms_));
    terms = Side::data(terms_);
  }
  Side::gemv(CblasNoTrans, num_, dim_, coeff_, terms, Side::data(sum_multiplier_), Dtype(0),
             Side::mutable_data(*top[0]));
}

template <typename Dtype>
template <typename Side>
void ReductionLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                       const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const int n = bottom[0]->count();
  Dtype* const dx = Side::mutable_diff(*bottom[0]);
  switch (op_) {  // dx: the derivative of a sum by its terms
    case ReductionParameter_ReductionOp_SUM:
    case ReductionParameter_ReductionOp_MEAN:
      Side::set(n, coeff_, dx);
      break;
    case ReductionParameter_ReductionOp_ASUM:
      Side::sign(n, Side::data(*bottom[0]), dx);
      Side::scal(n, coeff_, dx);
      break;
    case ReductionParameter_ReductionOp_SUMSQ:
      Side::scale(n, 2 * coeff_, Side::data(*bottom[0]), dx);
      break;
  }
  Side::mul_along(n, dx, Side::diff(*top[0]), num_, dim_, dx);  // times the gradient of the sum
}

CAFFE_BOTH_SIDES(ReductionLayer)
INSTANTIATE_CLASS(ReductionLayer);

}  // namespace caffe
