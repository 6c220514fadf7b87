// Makes the core's layers by type name. Only libraries whose layers call CreateLayer are linked with it.

#include "caffe/layer_factory.hpp"
#include "caffe/layers/bias_layer.hpp"
#include "caffe/layers/input_layer.hpp"
#include "caffe/layers/reduction_layer.hpp"
#include "caffe/layers/scale_layer.hpp"
#include "caffe/vision_layers.hpp"

namespace caffe {

namespace {

template <typename Dtype, template <typename> class SomeLayer>
shared_ptr<Layer<Dtype>> make(const LayerParameter& param) {
  return shared_ptr<Layer<Dtype>>(new SomeLayer<Dtype>(param));
}

}  // namespace

template <typename Dtype>
shared_ptr<Layer<Dtype>> StockLayer(const LayerParameter& param) {
  using Maker = shared_ptr<Layer<Dtype>> (*)(const LayerParameter&);
  static const std::map<std::string, Maker>* const makers = new std::map<std::string, Maker>{
      {"Bias", make<Dtype, BiasLayer>},
      {"Concat", make<Dtype, ConcatLayer>},
      {"Convolution", make<Dtype, ConvolutionLayer>},
      {"Eltwise", make<Dtype, EltwiseLayer>},
      {"Flatten", make<Dtype, FlattenLayer>},
      {"Input", make<Dtype, InputLayer>},
      {"InnerProduct", make<Dtype, InnerProductLayer>},
      {"Pooling", make<Dtype, PoolingLayer>},
      {"Power", make<Dtype, PowerLayer>},
      {"ReLU", make<Dtype, ReLULayer>},
      {"Reduction", make<Dtype, ReductionLayer>},
      {"Reshape", make<Dtype, ReshapeLayer>},
      {"Scale", make<Dtype, ScaleLayer>},
      {"Sigmoid", make<Dtype, SigmoidLayer>},
      {"Slice", make<Dtype, SliceLayer>},
      {"Softmax", make<Dtype, SoftmaxLayer>},
      {"Split", make<Dtype, SplitLayer>},
      {"TanH", make<Dtype, TanHLayer>},
  };
  const auto found = makers->find(param.type());
  return found == makers->end() ? shared_ptr<Layer<Dtype>>() : found->second(param);
}

template shared_ptr<Layer<float>> StockLayer(const LayerParameter& param);
template shared_ptr<Layer<double>> StockLayer(const LayerParameter& param);

}  // namespace caffe
