// As CUDA's: what a .hpp may name outside of kernels' files.
#ifndef CAFFE_HIP_DEVICE_LAUNCH_PARAMETERS_H_
#define CAFFE_HIP_DEVICE_LAUNCH_PARAMETERS_H_

#include "cuda_runtime.h"

extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;

#endif  // CAFFE_HIP_DEVICE_LAUNCH_PARAMETERS_H_
