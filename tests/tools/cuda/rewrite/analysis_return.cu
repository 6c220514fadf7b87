// `return` inside the loop means "this thread is done"; in a lambda it means something else.
#include "caffe_cuda_macro.h"
__global__ void leaves(const int n, float* x) {
  CUDA_KERNEL_LOOP(i, n) {
    if (x[i] > 0) return;
    x[i] = 1;
  }
}
__global__ void returns_before(const int n, float* x) {
  if (n == 0) return;
  CUDA_KERNEL_LOOP(i, n) {
    auto twice = [](float v) { return 2 * v; };
    x[i] = twice(x[i]);
  }
}
#define LEAVE_IF(condition) if (condition) return
__global__ void leaves_by_macro(const int n, float* x) {
  CUDA_KERNEL_LOOP(i, n) {
    LEAVE_IF(x[i] > 0);
    x[i] = 1;
  }
}
