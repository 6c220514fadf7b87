#include "caffe/layers/sigmoid_layer.hpp"

namespace caffe {

template <typename Dtype>
void SigmoidLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = bottom[0]->count();
  const Dtype* const x = bottom[0]->cpu_data();
  Dtype* const y = top[0]->mutable_cpu_data();
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) y[i] = Dtype(0.5) * std::tanh(Dtype(0.5) * x[i]) + Dtype(0.5);
}

template <typename Dtype>
void SigmoidLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                       const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const int n = bottom[0]->count();
  const Dtype* const dy = top[0]->cpu_diff();
  const Dtype* const y = top[0]->cpu_data();
  Dtype* const dx = bottom[0]->mutable_cpu_diff();
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) dx[i] = dy[i] * y[i] * (1 - y[i]);
}

INSTANTIATE_CLASS(SigmoidLayer);

}  // namespace caffe
