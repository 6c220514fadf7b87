#include "caffe/layers/inner_product_layer.hpp"

#include "caffe/filler.hpp"
#include "caffe/layers/both_sides.hpp"

namespace caffe {

template <typename Dtype>
void InnerProductLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom,
                                          const vector<Blob<Dtype>*>& top) {
  const InnerProductParameter& param = this->layer_param_.inner_product_param();
  N_ = param.num_output();
  bias_term_ = param.bias_term();
  transpose_ = param.transpose();
  K_ = bottom[0]->count(bottom[0]->CanonicalAxisIndex(param.axis()));
  if (this->blobs_.empty()) {
    const vector<int> weight_shape = transpose_ ? vector<int>{K_, N_} : vector<int>{N_, K_};
    this->blobs_.resize(bias_term_ ? 2 : 1);
    this->blobs_[0].reset(new Blob<Dtype>(weight_shape));
    shared_ptr<Filler<Dtype>>(GetFiller<Dtype>(param.weight_filler()))->Fill(this->blobs_[0].get());
    if (bias_term_) {
      this->blobs_[1].reset(new Blob<Dtype>(vector<int>(1, N_)));
      shared_ptr<Filler<Dtype>>(GetFiller<Dtype>(param.bias_filler()))->Fill(this->blobs_[1].get());
    }
  }
  this->param_propagate_down_.resize(this->blobs_.size(), true);
}

template <typename Dtype>
void InnerProductLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int axis = bottom[0]->CanonicalAxisIndex(this->layer_param_.inner_product_param().axis());
  const int inputs = bottom[0]->count(axis);
  CHECK_EQ(K_, inputs) << "Input size incompatible with inner product parameters.";
  M_ = bottom[0]->count(0, axis);
  vector<int> top_shape(bottom[0]->shape().begin(), bottom[0]->shape().begin() + axis);
  top_shape.push_back(N_);
  top[0]->Reshape(top_shape);
  if (bias_term_) reshape_to_ones(M_, &bias_multiplier_);
}

template <typename Dtype>
template <typename Side>
void InnerProductLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom,
                                         const vector<Blob<Dtype>*>& top) {
  Dtype* const y = Side::mutable_data(*top[0]);
  Side::gemm(CblasNoTrans, transpose_ ? CblasNoTrans : CblasTrans, M_, N_, K_, Dtype(1),
             Side::data(*bottom[0]), Side::data(*this->blobs_[0]), Dtype(0), y);
  if (bias_term_) Side::add_along(M_ * N_, y, Side::data(*this->blobs_[1]), N_, 1, y);
}

template <typename Dtype>
template <typename Side>
void InnerProductLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                          const vector<Blob<Dtype>*>& bottom) {
  const Dtype* const dy = Side::diff(*top[0]);
  if (this->param_propagate_down_[0]) {
    const Dtype* const x = Side::data(*bottom[0]);
    Dtype* const dw = Side::mutable_diff(*this->blobs_[0]);
    if (transpose_) {
      Side::gemm(CblasTrans, CblasNoTrans, K_, N_, M_, Dtype(1), x, dy, Dtype(1), dw);
    } else {
      Side::gemm(CblasTrans, CblasNoTrans, N_, K_, M_, Dtype(1), dy, x, Dtype(1), dw);
    }
  }
  if (bias_term_ && this->param_propagate_down_[1])
    Side::gemv(CblasTrans, M_, N_, Dtype(1), dy, Side::data(bias_multiplier_), Dtype(1),
               Side::mutable_diff(*this->blobs_[1]));
  if (propagate_down[0])
    Side::gemm(CblasNoTrans, transpose_ ? CblasTrans : CblasNoTrans, M_, K_, N_, Dtype(1), dy,
               Side::data(*this->blobs_[0]), Dtype(0), Side::mutable_diff(*bottom[0]));
}

CAFFE_BOTH_SIDES(InnerProductLayer)
INSTANTIATE_CLASS(InnerProductLayer);

}  // namespace caffe
