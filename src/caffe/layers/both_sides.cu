// The GPU's part of caffe/layers/both_sides.hpp.
#include "caffe/util/device_alternate.hpp"

namespace caffe {

namespace {

template <typename Dtype>
__global__ void add_along_kernel(const int n, const Dtype* x, const Dtype* v, const int dim, const int inner,
                                 Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = x[i] + v[i / inner % dim];
  }
}

template <typename Dtype>
__global__ void mul_along_kernel(const int n, const Dtype* x, const Dtype* v, const int dim, const int inner,
                                 Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = x[i] * v[i / inner % dim];
  }
}

template <typename Dtype>
__global__ void max_step_kernel(const int n, const int which, const Dtype* x, Dtype* y, int* from) {
  CUDA_KERNEL_LOOP(i, n) {
    if (which == 0 || x[i] > y[i] || (which == 1 && !(y[i] > x[i]))) {
      y[i] = x[i];
      from[i] = which;
    }
  }
}

template <typename Dtype>
__global__ void where_kernel(const int n, const int* from, const int which, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = from[i] == which ? x[i] : Dtype(0);
  }
}

}  // namespace

template <typename Dtype>
void gpu_add_along(int n, const Dtype* x, const Dtype* v, int dim, int inner, Dtype* y) {
  add_along_kernel<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, x, v, dim, inner, y);
}

template <typename Dtype>
void gpu_mul_along(int n, const Dtype* x, const Dtype* v, int dim, int inner, Dtype* y) {
  mul_along_kernel<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, x, v, dim, inner, y);
}

template <typename Dtype>
void gpu_max_step(int n, int which, const Dtype* x, Dtype* y, int* from) {
  max_step_kernel<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, which, x, y, from);
}

template <typename Dtype>
void gpu_where(int n, const int* from, int which, const Dtype* x, Dtype* y) {
  where_kernel<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, from, which, x, y);
}

#define INSTANTIATE(Dtype)                                                        \
  template void gpu_add_along(int, const Dtype*, const Dtype*, int, int, Dtype*); \
  template void gpu_mul_along(int, const Dtype*, const Dtype*, int, int, Dtype*); \
  template void gpu_max_step(int, int, const Dtype*, Dtype*, int*);               \
  template void gpu_where(int, const int*, int, const Dtype*, Dtype*);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace caffe
