// Caffe declares caffe_gpu_atomic_add(value, address) here. We define it with the kernel macros.
#ifndef CAFFE_UTIL_GPU_UTIL_CUH_
#define CAFFE_UTIL_GPU_UTIL_CUH_

#include "caffe/util/device_alternate.hpp"

#endif  // CAFFE_UTIL_GPU_UTIL_CUH_
