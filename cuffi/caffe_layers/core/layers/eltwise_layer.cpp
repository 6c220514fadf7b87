#include "caffe/layers/eltwise_layer.hpp"

#include "caffe/layers/both_sides.hpp"

namespace caffe {

template <typename Dtype>
void EltwiseLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const EltwiseParameter& param = this->layer_param_.eltwise_param();
  op_ = param.operation();
  stable_prod_grad_ = param.stable_prod_grad();
  const int given = param.coeff_size();
  CHECK(given == 0 || given == static_cast<int>(bottom.size()))
      << "Eltwise Layer takes one coefficient per bottom blob.";
  CHECK(given == 0 || op_ != EltwiseParameter_EltwiseOp_PROD)
      << "Eltwise layer only takes coefficients for summation.";
  coeffs_.assign(bottom.size(), Dtype(1));
  for (int i = 0; i < given; ++i) coeffs_[i] = param.coeff(i);
}

template <typename Dtype>
void EltwiseLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  for (size_t i = 1; i < bottom.size(); ++i)
    CHECK(bottom[0]->shape() == bottom[i]->shape()) << "bottom[0]: " << bottom[0]->shape_string()
                                                    << ", bottom[" << i << "]: " << bottom[i]->shape_string();
  top[0]->ReshapeLike(*bottom[0]);
  if (op_ == EltwiseParameter_EltwiseOp_MAX) max_idx_.Reshape(bottom[0]->shape());
}

template <typename Dtype>
template <typename Side>
void EltwiseLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = top[0]->count();
  Dtype* const y = Side::mutable_data(*top[0]);
  switch (op_) {
    case EltwiseParameter_EltwiseOp_PROD:
      Side::mul(n, Side::data(*bottom[0]), Side::data(*bottom[1]), y);
      for (size_t i = 2; i < bottom.size(); ++i) Side::mul(n, y, Side::data(*bottom[i]), y);
      break;
    case EltwiseParameter_EltwiseOp_SUM:
      Side::scale(n, coeffs_[0], Side::data(*bottom[0]), y);
      for (size_t i = 1; i < bottom.size(); ++i) Side::axpy(n, coeffs_[i], Side::data(*bottom[i]), y);
      break;
    case EltwiseParameter_EltwiseOp_MAX: {
      int* const from = Side::mutable_data(max_idx_);
      for (size_t i = 0; i < bottom.size(); ++i)
        Side::max_step(n, static_cast<int>(i), Side::data(*bottom[i]), y, from);
      break;
    }
  }
}

template <typename Dtype>
template <typename Side>
void EltwiseLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                     const vector<Blob<Dtype>*>& bottom) {
  const int n = top[0]->count();
  const Dtype* const dy = Side::diff(*top[0]);
  for (size_t i = 0; i < bottom.size(); ++i) {
    if (!propagate_down[i]) continue;
    Dtype* const dx = Side::mutable_diff(*bottom[i]);
    switch (op_) {
      case EltwiseParameter_EltwiseOp_PROD:
        if (stable_prod_grad_) {  // multiply the other bottoms: no division by a 0
          bool first = true;
          for (size_t j = 0; j < bottom.size(); ++j) {
            if (j == i) continue;
            if (first) {
              caffe_copy(n, Side::data(*bottom[j]), dx);
            } else {
              Side::mul(n, dx, Side::data(*bottom[j]), dx);
            }
            first = false;
          }
        } else {
          Side::div(n, Side::data(*top[0]), Side::data(*bottom[i]), dx);
        }
        Side::mul(n, dx, dy, dx);
        break;
      case EltwiseParameter_EltwiseOp_SUM:
        Side::scale(n, coeffs_[i], dy, dx);
        break;
      case EltwiseParameter_EltwiseOp_MAX:
        Side::where(n, Side::data(max_idx_), static_cast<int>(i), dy, dx);
        break;
    }
  }
}

CAFFE_BOTH_SIDES(EltwiseLayer)
INSTANTIATE_CLASS(EltwiseLayer);

}  // namespace caffe
