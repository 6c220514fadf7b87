// The GPU side of Sigmoid, TanH and ReLU.
#include "caffe/layers/relu_layer.hpp"
#include "caffe/layers/sigmoid_layer.hpp"
#include "caffe/layers/tanh_layer.hpp"

namespace caffe {

namespace {

template <typename Dtype>
__global__ void sigmoid_forward(const int n, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = Dtype(0.5) * tanh(Dtype(0.5) * x[i]) + Dtype(0.5);
  }
}

template <typename Dtype>
__global__ void sigmoid_backward(const int n, const Dtype* dy, const Dtype* y, Dtype* dx) {
  CUDA_KERNEL_LOOP(i, n) {
    dx[i] = dy[i] * y[i] * (1 - y[i]);
  }
}

template <typename Dtype>
__global__ void tanh_forward(const int n, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = tanh(x[i]);
  }
}

template <typename Dtype>
__global__ void tanh_backward(const int n, const Dtype* dy, const Dtype* y, Dtype* dx) {
  CUDA_KERNEL_LOOP(i, n) {
    dx[i] = dy[i] * (1 - y[i] * y[i]);
  }
}

template <typename Dtype>
__global__ void relu_forward(const int n, const Dtype slope, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = x[i] > 0 ? x[i] : slope * x[i];
  }
}

template <typename Dtype>
__global__ void relu_backward(const int n, const Dtype slope, const Dtype* dy, const Dtype* x, Dtype* dx) {
  CUDA_KERNEL_LOOP(i, n) {
    dx[i] = x[i] > 0 ? dy[i] : slope * dy[i];
  }
}

}  // namespace

template <typename Dtype>
void SigmoidLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = bottom[0]->count();
  sigmoid_forward<Dtype>
      <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
}

template <typename Dtype>
void SigmoidLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                       const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const int n = bottom[0]->count();
  sigmoid_backward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
      n, top[0]->gpu_diff(), top[0]->gpu_data(), bottom[0]->mutable_gpu_diff());
}

template <typename Dtype>
void TanHLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = bottom[0]->count();
  tanh_forward<Dtype>
      <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
}

template <typename Dtype>
void TanHLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                    const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const int n = bottom[0]->count();
  tanh_backward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
      n, top[0]->gpu_diff(), top[0]->gpu_data(), bottom[0]->mutable_gpu_diff());
}

template <typename Dtype>
void ReLULayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = bottom[0]->count();
  const Dtype slope = this->layer_param_.relu_param().negative_slope();
  relu_forward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, slope, bottom[0]->gpu_data(),
                                                                       top[0]->mutable_gpu_data());
}

template <typename Dtype>
void ReLULayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                    const vector<Blob<Dtype>*>& bottom) {
  if (!propagate_down[0]) return;
  const int n = bottom[0]->count();
  const Dtype slope = this->layer_param_.relu_param().negative_slope();
  relu_backward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(
      n, slope, top[0]->gpu_diff(), bottom[0]->gpu_data(), bottom[0]->mutable_gpu_diff());
}

INSTANTIATE_LAYER_GPU_FUNCS(SigmoidLayer);
INSTANTIATE_LAYER_GPU_FUNCS(TanHLayer);
INSTANTIATE_LAYER_GPU_FUNCS(ReLULayer);

}  // namespace caffe
