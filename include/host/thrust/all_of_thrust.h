// thrust for programs and kernels of CUDA's: device memory is that of cudaMalloc().
#pragma once

#include "../cuda_runtime.h"
#define CAFFE_THRUST_OF_CUDA
#include "caffe_thrust/thrust.h"
