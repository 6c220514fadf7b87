// Upstream's place for caffe_gpu_atomic_add(value, address); it comes with the kernel macros here.
#ifndef CAFFE_UTIL_GPU_UTIL_CUH_
#define CAFFE_UTIL_GPU_UTIL_CUH_

#include "caffe/util/device_alternate.hpp"

#endif  // CAFFE_UTIL_GPU_UTIL_CUH_
