// Caffe declared these layers here until December 2015. Only those that we provide.
#ifndef CAFFE_LOSS_LAYERS_HPP_
#define CAFFE_LOSS_LAYERS_HPP_

#include "caffe/layers/loss_layer.hpp"
#include "caffe/neuron_layers.hpp"

#endif  // CAFFE_LOSS_LAYERS_HPP_
