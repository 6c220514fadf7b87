// CUDA's bfloat16 for a host compiler.
#pragma once

#include "cuda_fp16.h"

typedef cuda_host::Half<cuffi::types::half_detail::Brain> __nv_bfloat16;
typedef cuda_host::Half2<cuffi::types::half_detail::Brain> __nv_bfloat162;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
CAFFE_HOST_HALF_NAMES(__nv_bfloat16, bfloat16, bfloat162)
