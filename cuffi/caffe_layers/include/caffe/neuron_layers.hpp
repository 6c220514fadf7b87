// Caffe declared these layers here until December 2015. Only those that we provide.
#ifndef CAFFE_NEURON_LAYERS_HPP_
#define CAFFE_NEURON_LAYERS_HPP_

#include "caffe/layers/neuron_layer.hpp"
#include "caffe/layers/power_layer.hpp"
#include "caffe/layers/relu_layer.hpp"
#include "caffe/layers/sigmoid_layer.hpp"
#include "caffe/layers/tanh_layer.hpp"

#endif  // CAFFE_NEURON_LAYERS_HPP_
