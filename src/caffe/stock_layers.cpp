// Makes the core's layers by type name. Only libraries whose layers call CreateLayer are linked with it.
#include <map>
#include <string>

#include "caffe/layer_factory.hpp"
#include "caffe/layers/bias_layer.hpp"
#include "caffe/layers/concat_layer.hpp"
#include "caffe/layers/conv_layer.hpp"
#include "caffe/layers/eltwise_layer.hpp"
#include "caffe/layers/flatten_layer.hpp"
#include "caffe/layers/inner_product_layer.hpp"
#include "caffe/layers/input_layer.hpp"
#include "caffe/layers/pooling_layer.hpp"
#include "caffe/layers/power_layer.hpp"
#include "caffe/layers/reduction_layer.hpp"
#include "caffe/layers/relu_layer.hpp"
#include "caffe/layers/reshape_layer.hpp"
#include "caffe/layers/scale_layer.hpp"
#include "caffe/layers/sigmoid_layer.hpp"
#include "caffe/layers/slice_layer.hpp"
#include "caffe/layers/softmax_layer.hpp"
#include "caffe/layers/split_layer.hpp"
#include "caffe/layers/tanh_layer.hpp"

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
