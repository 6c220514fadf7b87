#include "caffe/layers/softmax_layer.hpp"

namespace caffe {

namespace {

// n: the number of positions before and behind the softmax axis. Each thread goes along the axis
// of one position.
template <typename Dtype>
__global__ void softmax_forward(const int n, const int channels, const int inner, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(position, n) {
    const int64_t first = int64_t(position / inner) * channels * inner + position % inner;
    const int64_t end = first + int64_t(channels) * inner;
    Dtype largest = x[first], sum = 0;
    for (int64_t i = first; i < end; i += inner) largest = x[i] > largest ? x[i] : largest;
    for (int64_t i = first; i < end; i += inner) sum += y[i] = exp(x[i] - largest);
    for (int64_t i = first; i < end; i += inner) y[i] /= sum;
  }
}

template <typename Dtype>
__global__ void softmax_backward(const int n, const int channels, const int inner, const Dtype* dy,
                                 const Dtype* y, Dtype* dx) {
  CUDA_KERNEL_LOOP(position, n) {
    const int64_t first = int64_t(position / inner) * channels * inner + position % inner;
    const int64_t end = first + int64_t(channels) * inner;
    Dtype dot = 0;
    for (int64_t i = first; i < end; i += inner) dot += dy[i] * y[i];
    for (int64_t i = first; i < end; i += inner) dx[i] = (dy[i] - dot) * y[i];
  }
}

}  // namespace

template <typename Dtype>
void SoftmaxLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int channels = bottom[0]->shape(softmax_axis_), n = channels ? outer_num_ * inner_num_ : 0;
  softmax_forward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
      n, channels, inner_num_, bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
}

template <typename Dtype>
void SoftmaxLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                       const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const int channels = top[0]->shape(softmax_axis_), n = outer_num_ * inner_num_;
  softmax_backward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
      n, channels, inner_num_, top[0]->gpu_diff(), top[0]->gpu_data(), bottom[0]->mutable_gpu_diff());
}

INSTANTIATE_LAYER_GPU_FUNCS(SoftmaxLayer);

}  // namespace caffe
