#include "caffe/layers/relu_layer.hpp"

namespace caffe {

template <typename Dtype>
void ReLULayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = bottom[0]->count();
  const Dtype* const x = bottom[0]->cpu_data();
  Dtype* const y = top[0]->mutable_cpu_data();
  const Dtype slope = this->layer_param_.relu_param().negative_slope();
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

template <typename Dtype>
void ReLULayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                    const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const int n = bottom[0]->count();
  const Dtype* const dy = top[0]->cpu_diff();
  const Dtype* const x = bottom[0]->cpu_data();
  Dtype* const dx = bottom[0]->mutable_cpu_diff();
  const Dtype slope = this->layer_param_.relu_param().negative_slope();
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) dx[i] = x[i] > 0 ? dy[i] : slope * dy[i];
}

INSTANTIATE_CLASS(ReLULayer);

}  // namespace caffe
