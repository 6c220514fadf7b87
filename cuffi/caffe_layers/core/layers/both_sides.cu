// The functions of caffe/layers/both_sides.hpp.
#include "caffe/layers/both_sides.hpp"
#include "util/elementwise.cuh"

namespace caffe {

namespace {

CAFFE_BINARY_OPERATION(Add, x + y)
CAFFE_BINARY_OPERATION(Multiply, x* y)

template <typename Dtype>
struct Where {
  int which;
  __host__ __device__ Dtype operator()(int from, Dtype x) const { return from == which ? x : Dtype(0); }
};

template <typename Dtype>
struct MaxStep {
  int which;
  __host__ __device__ void operator()(Dtype x, Dtype* y, int* from) const {
    if (which == 0 || x > *y || (which == 1 && !(*y > x))) {
      *y = x;
      *from = which;
    }
  }
};

template <typename Dtype>
__global__ void max_step_kernel(const int n, const MaxStep<Dtype> step, const Dtype* x, Dtype* y, int* from) {
  CUDA_KERNEL_LOOP(i, n) {
    step(x[i], y + i, from + i);
  }
}

// y[i] = operation(x[i], v[i / inner % dim])
template <typename Dtype, typename Operation>
__global__ void along_kernel(const int n, const Operation operation, const Dtype* x, const Dtype* v,
                             const int dim, const int inner, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = operation(x[i], v[i / inner % dim]);
  }
}

template <typename Dtype, typename Operation>
void cpu_along(int n, const Operation& operation, const Dtype* x, const Dtype* v, int dim, int inner,
               Dtype* y) {
  for (int start = 0, d = 0; start < n; start += inner, d = d + 1 < dim ? d + 1 : 0) {
    const Dtype value = v[d];
#pragma GCC ivdep
    for (int i = start; i < start + inner; ++i) y[i] = operation(x[i], value);
  }
}

template <typename Dtype, typename Operation>
void gpu_along(int n, const Operation operation, const Dtype* x, const Dtype* v, int dim, int inner,
               Dtype* y) {
  along_kernel<<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, operation, x, v, dim, inner, y);
}

}  // namespace

template <typename Dtype>
void cpu_max_step(int n, int which, const Dtype* x, Dtype* y, int* from) {
  const MaxStep<Dtype> step{which};
  for (int i = 0; i < n; ++i) step(x[i], y + i, from + i);
}

template <typename Dtype>
void gpu_max_step(int n, int which, const Dtype* x, Dtype* y, int* from) {
  max_step_kernel<<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, MaxStep<Dtype>{which}, x, y, from);
}

#define DEFINE_SIDE(side)                                                                      \
  template <typename Dtype>                                                                    \
  void side##_add_along(int n, const Dtype* x, const Dtype* v, int dim, int inner, Dtype* y) { \
    side##_along(n, Add<Dtype>(), x, v, dim, inner, y);                                        \
  }                                                                                            \
  template <typename Dtype>                                                                    \
  void side##_mul_along(int n, const Dtype* x, const Dtype* v, int dim, int inner, Dtype* y) { \
    side##_along(n, Multiply<Dtype>(), x, v, dim, inner, y);                                   \
  }                                                                                            \
  template <typename Dtype>                                                                    \
  void side##_where(int n, const int* from, int which, const Dtype* x, Dtype* y) {             \
    side##_map(n, Where<Dtype>{which}, from, x, y);                                            \
  }                                                                                            \
  INSTANTIATE_SIDE(side, float)                                                                \
  INSTANTIATE_SIDE(side, double)
#define INSTANTIATE_SIDE(side, Dtype)                                                \
  template void side##_add_along(int, const Dtype*, const Dtype*, int, int, Dtype*); \
  template void side##_mul_along(int, const Dtype*, const Dtype*, int, int, Dtype*); \
  template void side##_max_step(int, int, const Dtype*, Dtype*, int*);               \
  template void side##_where(int, const int*, int, const Dtype*, Dtype*);
DEFINE_SIDE(cpu)
DEFINE_SIDE(gpu)

void cpu_copy_rows(int rows, size_t bytes, const void* x, size_t x_pitch, void* y, size_t y_pitch) {
  for (int row = 0; row < rows; ++row)
    memcpy(static_cast<char*>(y) + row * y_pitch, static_cast<const char*>(x) + row * x_pitch, bytes);
}

void gpu_copy_rows(int rows, size_t bytes, const void* x, size_t x_pitch, void* y, size_t y_pitch) {
  if (rows && bytes)
    CUDA_CHECK(
        cudaMemcpy2DAsync(y, y_pitch, x, x_pitch, bytes, rows, cudaMemcpyDeviceToDevice, current_stream()));
}

}  // namespace caffe
