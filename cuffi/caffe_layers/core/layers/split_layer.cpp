#include "caffe/layers/split_layer.hpp"

#include "caffe/layers/both_sides.hpp"

namespace caffe {

template <typename Dtype>
void SplitLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  count_ = bottom[0]->count();
  for (Blob<Dtype>* blob : top) {
    CHECK_NE(blob, bottom[0]) << this->type() << " Layer does not allow in-place computation.";
    blob->ReshapeLike(*bottom[0]);
  }
}

template <typename Dtype>
template <typename Side>
void SplitLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  for (Blob<Dtype>* blob : top) blob->ShareData(*bottom[0]);
}

template <typename Dtype>
template <typename Side>
void SplitLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                   const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  Dtype* const dx = Side::mutable_diff(*bottom[0]);
  if (top.size() == 1) {
    caffe_copy(count_, Side::diff(*top[0]), dx);
    return;
  }
  Side::add(count_, Side::diff(*top[0]), Side::diff(*top[1]), dx);
  for (size_t i = 2; i < top.size(); ++i) Side::axpy(count_, Dtype(1), Side::diff(*top[i]), dx);
}

CAFFE_BOTH_SIDES(SplitLayer)
INSTANTIATE_CLASS(SplitLayer);

}  // namespace caffe
