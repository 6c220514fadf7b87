// What CUDA's words mean to a host compiler. Stands in for the toolkit's <cuda_runtime.h> on the
// host backend's include path only; kernels speak plain CUDA and carry no #ifdef.
#ifndef CAFFE_HOST_CUDA_RUNTIME_H_
#define CAFFE_HOST_CUDA_RUNTIME_H_

#include "cuda_words.h"
// After the words, each of these uses them.
#include "cuda_api.h"
#include "cuda_atomic.h"
#include "cuda_launch.h"
#include "cuda_math.h"
#include "cuda_warp.h"

#endif  // CAFFE_HOST_CUDA_RUNTIME_H_
