#include "caffe/layers/softmax_layer.hpp"

namespace caffe {

template <typename Dtype>
void SoftmaxLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  softmax_axis_ = bottom[0]->CanonicalAxisIndex(this->layer_param_.softmax_param().axis());
  top[0]->ReshapeLike(*bottom[0]);
  outer_num_ = bottom[0]->count(0, softmax_axis_);
  inner_num_ = bottom[0]->count(softmax_axis_ + 1);
  sum_multiplier_.Reshape(vector<int>(1, bottom[0]->shape(softmax_axis_)));
  vector<int> scale_shape = bottom[0]->shape();
  scale_shape[softmax_axis_] = 1;
  scale_.Reshape(scale_shape);
}

// Goes through rows of inner_num_ elements, so that memory is read in order for every axis.
template <typename Dtype>
void SoftmaxLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int channels = bottom[0]->shape(softmax_axis_), inner = inner_num_;
  if (bottom[0]->count() == 0) return;
  const Dtype* x = bottom[0]->cpu_data();
  Dtype* y = top[0]->mutable_cpu_data();
  Dtype* const scale = scale_.mutable_cpu_data();
  for (int o = 0; o < outer_num_; ++o, x += channels * inner, y += channels * inner) {
    std::copy_n(x, inner, scale);
    for (int c = 1; c < channels; ++c)
      for (int i = 0; i < inner; ++i) scale[i] = std::max(scale[i], x[c * inner + i]);
    for (int c = 0; c < channels; ++c)
      for (int i = 0; i < inner; ++i) y[c * inner + i] = std::exp(x[c * inner + i] - scale[i]);
    std::fill_n(scale, inner, Dtype(0));
    for (int c = 0; c < channels; ++c)
      for (int i = 0; i < inner; ++i) scale[i] += y[c * inner + i];
    for (int c = 0; c < channels; ++c)
      for (int i = 0; i < inner; ++i) y[c * inner + i] /= scale[i];
  }
}

template <typename Dtype>
void SoftmaxLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                       const vector<Blob<Dtype>*>& bottom) {
  const int channels = top[0]->shape(softmax_axis_), inner = inner_num_;
  if (!propagate_down[0] || top[0]->count() == 0) return;
  const Dtype* dy = top[0]->cpu_diff();
  const Dtype* y = top[0]->cpu_data();
  Dtype* dx = bottom[0]->mutable_cpu_diff();
  Dtype* const scale = scale_.mutable_cpu_data();
  for (int o = 0; o < outer_num_;
       ++o, y += channels * inner, dy += channels * inner, dx += channels * inner) {
    std::fill_n(scale, inner, Dtype(0));
    for (int c = 0; c < channels; ++c)
      for (int i = 0; i < inner; ++i) scale[i] += dy[c * inner + i] * y[c * inner + i];
    for (int c = 0; c < channels; ++c)
      for (int i = 0; i < inner; ++i) dx[c * inner + i] = (dy[c * inner + i] - scale[i]) * y[c * inner + i];
  }
}

INSTANTIATE_CLASS(SoftmaxLayer);

}  // namespace caffe
