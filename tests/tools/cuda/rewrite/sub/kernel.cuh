#pragma once
#include "values.h"
__device__ inline int header_thread() { return threadIdx.x; }
__global__ void header_kernel(const int n, int* x) {
  CUDA_KERNEL_LOOP(i, n) { x[i] = HEADER_VALUE; }
}
inline void header_launch(int n, int* x) { header_kernel<<<1, 2>>>(n, x); }
