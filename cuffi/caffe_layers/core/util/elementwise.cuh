// An operation on each element, written once for both sides: cpu_map runs it in a loop, gpu_map in a kernel.
// Not a header of Caffe's.
#pragma once

#include "caffe/util/device_alternate.hpp"

// An operation of one or two elements. `alpha` and `beta` are its constants.
#define CAFFE_UNARY_OPERATION(Name, result)                                \
  template <typename Dtype>                                                \
  struct Name {                                                            \
    Dtype alpha;                                                           \
    __host__ __device__ Dtype operator()(Dtype x) const { return result; } \
  };
#define CAFFE_BINARY_OPERATION(Name, result)                                        \
  template <typename Dtype>                                                         \
  struct Name {                                                                     \
    Dtype alpha, beta;                                                              \
    __host__ __device__ Dtype operator()(Dtype x, Dtype y) const { return result; } \
  };

namespace caffe {
namespace {

template <typename Dtype, typename Operation>
__global__ void unary_kernel(const int n, const Operation operation, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = operation(x[i]);
  }
}

template <typename A, typename Dtype, typename Operation>
__global__ void binary_kernel(const int n, const Operation operation, const A* a, const Dtype* b, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = operation(a[i], b[i]);
  }
}

// y may be x, a or b. Else it does not overlap them.
template <typename Dtype, typename Operation>
void cpu_map(const int n, const Operation operation, const Dtype* x, Dtype* y) {
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) y[i] = operation(x[i]);
}

template <typename A, typename Dtype, typename Operation>
void cpu_map(const int n, const Operation operation, const A* a, const Dtype* b, Dtype* y) {
#pragma GCC ivdep
  for (int i = 0; i < n; ++i) y[i] = operation(a[i], b[i]);
}

template <typename Dtype, typename Operation>
void gpu_map(const int n, const Operation operation, const Dtype* x, Dtype* y) {
  unary_kernel<<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, operation, x, y);
  CUDA_POST_KERNEL_CHECK;
}

template <typename A, typename Dtype, typename Operation>
void gpu_map(const int n, const Operation operation, const A* a, const Dtype* b, Dtype* y) {
  binary_kernel<<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, operation, a, b, y);
  CUDA_POST_KERNEL_CHECK;
}

}  // namespace
}  // namespace caffe
