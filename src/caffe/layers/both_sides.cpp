// The host's part of caffe/layers/both_sides.hpp, and the copies of both sides.
#include "caffe/layers/both_sides.hpp"

namespace caffe {

namespace {

// y[i] = combine(x[i], v[i / inner % dim])
template <typename Dtype, typename Combine>
void along(int n, const Dtype* x, const Dtype* v, int dim, int inner, Dtype* y, const Combine& combine) {
  for (int start = 0, d = 0; start < n; start += inner, d = d + 1 < dim ? d + 1 : 0) {
    const Dtype value = v[d];
#pragma GCC ivdep
    for (int i = start; i < start + inner; ++i) y[i] = combine(x[i], value);
  }
}

}  // namespace

template <typename Dtype>
void cpu_add_along(int n, const Dtype* x, const Dtype* v, int dim, int inner, Dtype* y) {
  along(n, x, v, dim, inner, y, [](Dtype a, Dtype b) { return a + b; });
}

template <typename Dtype>
void cpu_mul_along(int n, const Dtype* x, const Dtype* v, int dim, int inner, Dtype* y) {
  along(n, x, v, dim, inner, y, [](Dtype a, Dtype b) { return a * b; });
}

template <typename Dtype>
void cpu_max_step(int n, int which, const Dtype* x, Dtype* y, int* from) {
  for (int i = 0; i < n; ++i) {
    if (which == 0 || x[i] > y[i] || (which == 1 && !(y[i] > x[i]))) {
      y[i] = x[i];
      from[i] = which;
    }
  }
}

template <typename Dtype>
void cpu_where(int n, const int* from, int which, const Dtype* x, Dtype* y) {
  for (int i = 0; i < n; ++i) y[i] = from[i] == which ? x[i] : Dtype(0);
}

void cpu_copy_rows(int rows, size_t bytes, const void* x, size_t x_pitch, void* y, size_t y_pitch) {
  for (int row = 0; row < rows; ++row)
    memcpy(static_cast<char*>(y) + row * y_pitch, static_cast<const char*>(x) + row * x_pitch, bytes);
}

void gpu_copy_rows(int rows, size_t bytes, const void* x, size_t x_pitch, void* y, size_t y_pitch) {
  if (rows && bytes)
    CUDA_CHECK(
        cudaMemcpy2DAsync(y, y_pitch, x, x_pitch, bytes, rows, cudaMemcpyDeviceToDevice, current_stream()));
}

#define INSTANTIATE(Dtype)                                                        \
  template void cpu_add_along(int, const Dtype*, const Dtype*, int, int, Dtype*); \
  template void cpu_mul_along(int, const Dtype*, const Dtype*, int, int, Dtype*); \
  template void cpu_max_step(int, int, const Dtype*, Dtype*, int*);               \
  template void cpu_where(int, const int*, int, const Dtype*, Dtype*);
INSTANTIATE(float)
INSTANTIATE(double)

}  // namespace caffe
