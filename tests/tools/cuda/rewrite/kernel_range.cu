// A kernel that only loops may run as a plain loop over a range of indices.
#include "caffe_cuda_macro.h"

template <typename Dtype>
__global__ void scale_kernel(const int n, const Dtype* in, const Dtype factor, Dtype* out) {
  CUDA_KERNEL_LOOP(i, n) {
    if (in[i] == Dtype(0)) continue;
    for (int k = 0; k < 3; ++k) {
      if (k == 2) break;
      out[i] = in[i] * factor;
    }
  }
}
