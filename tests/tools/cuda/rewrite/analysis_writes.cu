// Memory written outside the loop is written once for each thread.
#include "caffe_cuda_macro.h"
__global__ void writes(const int n, float* x) {
  x[n] = 0;
  CUDA_KERNEL_LOOP(i, n) { x[i] = 1; }
}
__global__ void counts(const int n, float* x, int* threads) {
  atomicAdd(threads, 1);
  CUDA_KERNEL_LOOP(i, n) { x[i] = 1; }
}
__global__ void writes_reference(const int n, float* x) {
  float& last = *(x + n);
  last = 2;
  CUDA_KERNEL_LOOP(i, n) { x[i] = 1; }
}
__global__ void keeps_to_itself(int n, float* x) {
  float table[2];
  table[0] = 1;
  for (int k = 1; k < 2; ++k) table[k] = k;
  n -= 1;
  const float* end = x + max(n, 2);
  end -= 1;
  CUDA_KERNEL_LOOP(i, n) { x[i] = table[i % 2] + *end; atomicAdd(x, 1.f); }
}
