// Caffe declared these layers here until December 2015. Only those that we provide.
#ifndef CAFFE_VISION_LAYERS_HPP_
#define CAFFE_VISION_LAYERS_HPP_

#include "caffe/common_layers.hpp"
#include "caffe/data_layers.hpp"
#include "caffe/layers/base_conv_layer.hpp"
#include "caffe/layers/conv_layer.hpp"
#include "caffe/layers/pooling_layer.hpp"
#include "caffe/loss_layers.hpp"
#include "caffe/neuron_layers.hpp"

#endif  // CAFFE_VISION_LAYERS_HPP_
