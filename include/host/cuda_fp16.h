// CUDA's half precision for a host compiler.
#pragma once

#include "cuda_halves.h"

typedef cuda_host::Half<cuffi::types::half_detail::Ieee> __half;
typedef cuda_host::Half2<cuffi::types::half_detail::Ieee> __half2;
typedef __half half;
typedef __half2 half2;
CAFFE_HOST_HALF_NAMES(__half, half, half2)
