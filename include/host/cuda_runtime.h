// CUDA's names for a host compiler. On the host backend's include path this header replaces CUDA's
// <cuda_runtime.h>, so kernels are plain CUDA without #ifdef.
#ifndef CAFFE_HOST_CUDA_RUNTIME_H_
#define CAFFE_HOST_CUDA_RUNTIME_H_

// nvcc's own includes these, and files rely on it.
#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <utility>

#include "cuda_words.h"
// These headers use the names of cuda_words.h.
#include "cuda_api.h"
#include "cuda_atomic.h"
#include "cuda_launch.h"
#include "cuda_math.h"
#include "cuda_ptx.h"
#include "cuda_rounding.h"
#include "cuda_textures.h"
#include "cuda_warp.h"

#endif  // CAFFE_HOST_CUDA_RUNTIME_H_
