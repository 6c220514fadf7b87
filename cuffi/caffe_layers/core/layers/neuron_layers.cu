// ReLU, Sigmoid and TanH.
#include "caffe/layers/both_sides.hpp"
#include "caffe/layers/relu_layer.hpp"
#include "caffe/layers/sigmoid_layer.hpp"
#include "caffe/layers/tanh_layer.hpp"
#include "util/elementwise.cuh"

namespace caffe {

namespace {

CAFFE_UNARY_OPERATION(ReluForward, x > 0 ? x : alpha * x)
CAFFE_UNARY_OPERATION(SigmoidForward, Dtype(0.5) * tanh(Dtype(0.5) * x) + Dtype(0.5))
CAFFE_UNARY_OPERATION(TanhForward, tanh(x))
// dx of x = dy, and of y: what Forward read (ReLU), or what it made.
CAFFE_BINARY_OPERATION(ReluBackward, y > 0 ? x : alpha * x)
CAFFE_BINARY_OPERATION(SigmoidBackward, x * y * (1 - y))
CAFFE_BINARY_OPERATION(TanhBackward, x * (1 - y * y))

template <typename Side, typename... Arguments>
void map(Arguments... arguments) {
  if constexpr (std::is_same<Side, CpuSide>::value) {
    cpu_map(arguments...);
  } else {
    gpu_map(arguments...);
  }
}

template <typename Side, typename Operation, typename Dtype>
void forward(const Operation operation, const Blob<Dtype>& bottom, Blob<Dtype>* top) {
  map<Side>(bottom.count(), operation, Side::data(bottom), Side::mutable_data(*top));
}

template <typename Side, typename Operation, typename Dtype>
void backward(const Operation operation, const Blob<Dtype>& top, const Dtype* y, Blob<Dtype>* bottom) {
  map<Side>(bottom->count(), operation, Side::diff(top), y, Side::mutable_diff(*bottom));
}

}  // namespace

template <typename Dtype>
template <typename Side>
void ReLULayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const Dtype slope = this->layer_param_.relu_param().negative_slope();
  forward<Side>(ReluForward<Dtype>{slope}, *bottom[0], top[0]);
}

template <typename Dtype>
template <typename Side>
void ReLULayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                  const vector<Blob<Dtype>*>& bottom) {
  const Dtype slope = this->layer_param_.relu_param().negative_slope();
  if (propagate_down[0])
    backward<Side>(ReluBackward<Dtype>{slope}, *top[0], Side::data(*bottom[0]), bottom[0]);
}

template <typename Dtype>
template <typename Side>
void SigmoidLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  forward<Side>(SigmoidForward<Dtype>(), *bottom[0], top[0]);
}

template <typename Dtype>
template <typename Side>
void SigmoidLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                     const vector<Blob<Dtype>*>& bottom) {
  if (propagate_down[0]) backward<Side>(SigmoidBackward<Dtype>(), *top[0], Side::data(*top[0]), bottom[0]);
}

template <typename Dtype>
template <typename Side>
void TanHLayer<Dtype>::ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  forward<Side>(TanhForward<Dtype>(), *bottom[0], top[0]);
}

template <typename Dtype>
template <typename Side>
void TanHLayer<Dtype>::BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                  const vector<Blob<Dtype>*>& bottom) {
  if (propagate_down[0]) backward<Side>(TanhBackward<Dtype>(), *top[0], Side::data(*top[0]), bottom[0]);
}

CAFFE_BOTH_SIDES(ReLULayer)
CAFFE_BOTH_SIDES(SigmoidLayer)
CAFFE_BOTH_SIDES(TanHLayer)
INSTANTIATE_CLASS(ReLULayer);
INSTANTIATE_CLASS(SigmoidLayer);
INSTANTIATE_CLASS(TanHLayer);

}  // namespace caffe
