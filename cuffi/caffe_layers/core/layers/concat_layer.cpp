#include "caffe/layers/concat_layer.hpp"

#include "caffe/layers/both_sides.hpp"

namespace caffe {

template <typename Dtype>
void ConcatLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const ConcatParameter& param = this->layer_param_.concat_param();
  CHECK(!(param.has_axis() && param.has_concat_dim()))
      << "Either axis or concat_dim should be specified; not both.";
}

template <typename Dtype>
void ConcatLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const ConcatParameter& param = this->layer_param_.concat_param();
  const int num_axes = bottom[0]->num_axes();
  concat_axis_ = param.has_concat_dim() ? static_cast<int>(param.concat_dim())
                                        : bottom[0]->CanonicalAxisIndex(param.axis());
  CHECK_GE(concat_axis_, 0) << "concat_dim is not an axis.";
  CHECK_LT(concat_axis_, num_axes) << "concat_dim out of range.";
  num_concats_ = bottom[0]->count(0, concat_axis_);
  concat_input_size_ = bottom[0]->count(concat_axis_ + 1);
  vector<int> top_shape = bottom[0]->shape();
  for (size_t i = 1; i < bottom.size(); ++i) {
    CHECK_EQ(num_axes, bottom[i]->num_axes()) << "All inputs must have the same #axes.";
    for (int axis = 0; axis < num_axes; ++axis)
      if (axis != concat_axis_)
        CHECK_EQ(top_shape[axis], bottom[i]->shape(axis))
            << "All inputs must have the same shape, except at concat_axis.";
    CHECK_LE(bottom[i]->shape(concat_axis_), INT_MAX - top_shape[concat_axis_]) << "the inputs together";
    top_shape[concat_axis_] += bottom[i]->shape(concat_axis_);
  }
  top[0]->Reshape(top_shape);
  if (bottom.size() == 1) {
    top[0]->ShareData(*bottom[0]);
    top[0]->ShareDiff(*bottom[0]);
  }
}

template <typename Dtype>
template <typename Side>
void ConcatLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (bottom.size() == 1) return;
  const size_t pitch = sizeof(Dtype) * top[0]->count(concat_axis_);
  Dtype* y = Side::mutable_data(*top[0]);
  for (Blob<Dtype>* blob : bottom) {
    const int size = blob->count(concat_axis_);
    Side::copy_rows(num_concats_, sizeof(Dtype) * size, Side::data(*blob), sizeof(Dtype) * size, y, pitch);
    y += size;
  }
}

template <typename Dtype>
template <typename Side>
void ConcatLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                    const vector<Blob<Dtype>*>& bottom) {
  if (bottom.size() == 1) return;
  const size_t pitch = sizeof(Dtype) * top[0]->count(concat_axis_);
  const Dtype* dy = Side::diff(*top[0]);
  for (size_t i = 0; i < bottom.size(); ++i) {
    const int size = bottom[i]->count(concat_axis_);
    if (propagate_down[i])
      Side::copy_rows(num_concats_, sizeof(Dtype) * size, dy, pitch, Side::mutable_diff(*bottom[i]),
                      sizeof(Dtype) * size);
    dy += size;
  }
}

CAFFE_BOTH_SIDES(ConcatLayer)
INSTANTIATE_CLASS(ConcatLayer);

}  // namespace caffe
