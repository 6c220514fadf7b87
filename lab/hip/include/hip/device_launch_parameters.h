// As CUDA's: what a .hpp may name outside of kernels' files.
#pragma once

#include "cuda_runtime.h"

extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
