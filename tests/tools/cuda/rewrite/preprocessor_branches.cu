// Branches of which the host may take either.
#include "caffe_cuda_macro.h"
__global__ void either(const int n,
#ifdef WIDE
                       double* x)
#else
                       float* x)
#endif
{
  CUDA_KERNEL_LOOP(i, n) {
#ifdef NEGATIVE
    if (x[i] < 0) {
#else
    if (x[i] > 0) {
#endif
      x[i] = 1;
    }
  }
}
