// `break` of the kernel's own loop, and of an inner one.
#include "caffe_cuda_macro.h"
__global__ void breaks(const int n, float* x) {
  CUDA_KERNEL_LOOP(i, n) {
    if (x[i] > 0) { break; }
    x[i] = 1;
  }
}
__global__ void breaks_inner(const int n, float* x) {
  CUDA_KERNEL_LOOP(i, n) {
    switch (i) {
      case 0: x[i] = 1; break;
      default: x[i] = 2;
    }
    do { break; } while (true);
  }
}
