// Local headers are rewritten beside the output, each once; others are the include path's business.
#include "caffe_cuda_macro.h"
#include "sub/kernel.cuh"
#include "sub/values.h"
#ifdef __CUDACC__
#include "sub/nvcc_only.cuh"
#endif
#include <vector>
extern "C" {
#include "sub/values.h"
}
__global__ void from_header(const int n, int* x) {
  CUDA_KERNEL_LOOP(i, n) { x[i] = header_thread(); }
}
void run(int n, int* x) { header_launch(n, x); }
