#include "caffe/layers/flatten_layer.hpp"

namespace caffe {

template <typename Dtype>
void FlattenLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  CHECK_NE(top[0], bottom[0]) << this->type() << " Layer does not allow in-place computation.";
  const FlattenParameter& param = this->layer_param_.flatten_param();
  const int start = bottom[0]->CanonicalAxisIndex(param.axis());
  const int last = bottom[0]->CanonicalAxisIndex(param.end_axis());
  const vector<int>& from = bottom[0]->shape();
  vector<int> shape(from.begin(), from.begin() + start);
  shape.push_back(bottom[0]->count(start, last + 1));
  shape.insert(shape.end(), from.begin() + last + 1, from.end());
  top[0]->Reshape(shape);
  CHECK_EQ(top[0]->count(), bottom[0]->count());
}

template <typename Dtype>
void FlattenLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  top[0]->ShareData(*bottom[0]);
}

template <typename Dtype>
void FlattenLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                       const vector<Blob<Dtype>*>& bottom) {
  bottom[0]->ShareDiff(*top[0]);
}

INSTANTIATE_CLASS(FlattenLayer);

}  // namespace caffe
