#include "caffe/layers/tanh_layer.hpp"

namespace caffe {

template <typename Dtype>
void TanHLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = bottom[0]->count();
  const Dtype* const x = bottom[0]->cpu_data();
  Dtype* const y = top[0]->mutable_cpu_data();
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

template <typename Dtype>
void TanHLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                    const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const int n = bottom[0]->count();
  const Dtype* const dy = top[0]->cpu_diff();
  const Dtype* const y = top[0]->cpu_data();
  Dtype* const dx = bottom[0]->mutable_cpu_diff();
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

INSTANTIATE_CLASS(TanHLayer);

}  // namespace caffe
