// Caffe declared these layers here until December 2015. Only those that we provide.
#ifndef CAFFE_COMMON_LAYERS_HPP_
#define CAFFE_COMMON_LAYERS_HPP_

#include "caffe/data_layers.hpp"
#include "caffe/layers/concat_layer.hpp"
#include "caffe/layers/eltwise_layer.hpp"
#include "caffe/layers/flatten_layer.hpp"
#include "caffe/layers/inner_product_layer.hpp"
#include "caffe/layers/reshape_layer.hpp"
#include "caffe/layers/slice_layer.hpp"
#include "caffe/layers/softmax_layer.hpp"
#include "caffe/layers/split_layer.hpp"
#include "caffe/loss_layers.hpp"
#include "caffe/neuron_layers.hpp"

#endif  // CAFFE_COMMON_LAYERS_HPP_
