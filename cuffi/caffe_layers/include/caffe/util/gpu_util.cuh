// Caffe declares caffe_gpu_atomic_add(value, address) here. We define it with the kernel macros.
#pragma once

#include "caffe/util/device_alternate.hpp"
