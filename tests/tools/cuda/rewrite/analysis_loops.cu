// Only one CUDA_KERNEL_LOOP at a time can run over a range.
#include "caffe_cuda_macro.h"
__global__ void inside_another(const int n, float* x) {
  CUDA_KERNEL_LOOP(i, n) {
    CUDA_KERNEL_LOOP(j, n) { x[i] += j; }
  }
}
__global__ void two_axes(const int n, const int m, float* x) {
  CUDA_2D_KERNEL_LOOP(i, n, j, m) { x[i * m + j] = 1; }
}
__global__ void one_after_another(const int n, float* x) {
  CUDA_KERNEL_LOOP(i, n) x[i] = 1;
  CUDA_KERNEL_LOOP(i, n)
    if (x[i] > 0)
      x[i] += 1;
    else
      x[i] -= 1;
}
