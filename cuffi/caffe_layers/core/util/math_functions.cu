// Caffe's elementwise functions of both sides.
#include "caffe/util/math_functions.hpp"
#include "util/elementwise.cuh"

namespace caffe {
namespace {

template <typename Dtype>
__global__ void set_kernel(const int n, const Dtype value, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = value;
  }
}

CAFFE_UNARY_OPERATION(Scale, alpha* x)
CAFFE_UNARY_OPERATION(AddScalar, x + alpha)
CAFFE_UNARY_OPERATION(Power, pow(x, alpha))
CAFFE_UNARY_OPERATION(Square, x* x)
CAFFE_UNARY_OPERATION(Absolute, fabs(x))
CAFFE_UNARY_OPERATION(Exponential, exp(x))
CAFFE_UNARY_OPERATION(Logarithm, log(x))
CAFFE_UNARY_OPERATION(SquareRoot, sqrt(x))
CAFFE_UNARY_OPERATION(Sign, Dtype((Dtype(0) < x) - (x < Dtype(0))))
CAFFE_UNARY_OPERATION(SignBit, Dtype(signbit(x) ? 1 : 0))
CAFFE_BINARY_OPERATION(Add, x + y)
CAFFE_BINARY_OPERATION(Subtract, x - y)
CAFFE_BINARY_OPERATION(Multiply, x* y)
CAFFE_BINARY_OPERATION(Divide, x / y)
CAFFE_BINARY_OPERATION(Axpy, alpha* x + y)
CAFFE_BINARY_OPERATION(Axpby, alpha* x + beta * y)

}  // namespace

template <typename Dtype>
void caffe_gpu_set(const int N, const Dtype alpha, Dtype* X) {
  set_kernel<<<CAFFE_GET_BLOCKS(N), CAFFE_CUDA_NUM_THREADS>>>(N, alpha, X);
  CUDA_POST_KERNEL_CHECK;
}
template void caffe_gpu_set(const int, const char, char*);
template void caffe_gpu_set(const int, const int, int*);
template void caffe_gpu_set(const int, const unsigned int, unsigned int*);
template void caffe_gpu_set(const int, const float, float*);
template void caffe_gpu_set(const int, const double, double*);

template <typename Dtype>
void caffe_gpu_scal(const int N, const Dtype alpha, Dtype* X, cudaStream_t stream) {
  unary_kernel<<<CAFFE_GET_BLOCKS(N), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(N, Scale<Dtype>{alpha}, X, X);
  CUDA_POST_KERNEL_CHECK;
}
template void caffe_gpu_scal(const int, const float, float*, cudaStream_t);
template void caffe_gpu_scal(const int, const double, double*, cudaStream_t);

// Functions with constants. Some have another prefix on the CPU. With beta == 0 the output is not read, because it may
// hold NaN.
#define DEFINE_SIDE(map, prefix, other)                                                           \
  template <typename Dtype>                                                                       \
  void prefix##scal(const int n, const Dtype alpha, Dtype* y) {                                   \
    map(n, Scale<Dtype>{alpha}, y, y);                                                            \
  }                                                                                               \
  template <typename Dtype>                                                                       \
  void other##scale(const int n, const Dtype alpha, const Dtype* x, Dtype* y) {                   \
    map(n, Scale<Dtype>{alpha}, x, y);                                                            \
  }                                                                                               \
  template <typename Dtype>                                                                       \
  void prefix##add_scalar(const int n, const Dtype alpha, Dtype* y) {                             \
    map(n, AddScalar<Dtype>{alpha}, y, y);                                                        \
  }                                                                                               \
  template <typename Dtype>                                                                       \
  void prefix##powx(const int n, const Dtype* x, const Dtype alpha, Dtype* y) {                   \
    if (alpha == 2) {                                                                             \
      map(n, Square<Dtype>(), x, y);                                                              \
    } else {                                                                                      \
      map(n, Power<Dtype>{alpha}, x, y);                                                          \
    }                                                                                             \
  }                                                                                               \
  template <typename Dtype>                                                                       \
  void prefix##axpy(const int n, const Dtype alpha, const Dtype* x, Dtype* y) {                   \
    map(n, Axpy<Dtype>{alpha}, x, y, y);                                                          \
  }                                                                                               \
  template <typename Dtype>                                                                       \
  void other##axpby(const int n, const Dtype alpha, const Dtype* x, const Dtype beta, Dtype* y) { \
    if (beta == 0) {                                                                              \
      map(n, Scale<Dtype>{alpha}, x, y);                                                          \
    } else {                                                                                      \
      map(n, Axpby<Dtype>{alpha, beta}, x, y, y);                                                 \
    }                                                                                             \
  }                                                                                               \
  INSTANTIATE_SIDE(prefix, other, float)                                                          \
  INSTANTIATE_SIDE(prefix, other, double)
#define INSTANTIATE_SIDE(prefix, other, Dtype)                              \
  template void prefix##scal(const int, const Dtype, Dtype*);               \
  template void other##scale(const int, const Dtype, const Dtype*, Dtype*); \
  template void prefix##add_scalar(const int, const Dtype, Dtype*);         \
  template void prefix##powx(const int, const Dtype*, const Dtype, Dtype*); \
  template void prefix##axpy(const int, const Dtype, const Dtype*, Dtype*); \
  template void other##axpby(const int, const Dtype, const Dtype*, const Dtype, Dtype*);
DEFINE_SIDE(cpu_map, caffe_, caffe_cpu_)
DEFINE_SIDE(gpu_map, caffe_gpu_, caffe_gpu_)

#define DEFINE_UNARY(name, map, Operation)             \
  template <typename Dtype>                            \
  void name(const int n, const Dtype* x, Dtype* y) {   \
    map(n, Operation<Dtype>(), x, y);                  \
  }                                                    \
  template void name(const int, const float*, float*); \
  template void name(const int, const double*, double*);
DEFINE_UNARY(caffe_sqr, cpu_map, Square)
DEFINE_UNARY(caffe_sqrt, cpu_map, SquareRoot)
DEFINE_UNARY(caffe_exp, cpu_map, Exponential)
DEFINE_UNARY(caffe_log, cpu_map, Logarithm)
DEFINE_UNARY(caffe_abs, cpu_map, Absolute)
DEFINE_UNARY(caffe_gpu_abs, gpu_map, Absolute)
DEFINE_UNARY(caffe_gpu_fabs, gpu_map, Absolute)
DEFINE_UNARY(caffe_gpu_exp, gpu_map, Exponential)
DEFINE_UNARY(caffe_gpu_log, gpu_map, Logarithm)
DEFINE_UNARY(caffe_gpu_sqrt, gpu_map, SquareRoot)
DEFINE_UNARY(caffe_gpu_sign, gpu_map, Sign)
DEFINE_UNARY(caffe_gpu_sgnbit, gpu_map, SignBit)

#define DEFINE_BINARY(name, map, Operation)                          \
  template <typename Dtype>                                          \
  void name(const int n, const Dtype* a, const Dtype* b, Dtype* y) { \
    map(n, Operation<Dtype>(), a, b, y);                             \
  }                                                                  \
  template void name(const int, const float*, const float*, float*); \
  template void name(const int, const double*, const double*, double*);
DEFINE_BINARY(caffe_add, cpu_map, Add)
DEFINE_BINARY(caffe_sub, cpu_map, Subtract)
DEFINE_BINARY(caffe_mul, cpu_map, Multiply)
DEFINE_BINARY(caffe_div, cpu_map, Divide)
DEFINE_BINARY(caffe_gpu_add, gpu_map, Add)
DEFINE_BINARY(caffe_gpu_sub, gpu_map, Subtract)
DEFINE_BINARY(caffe_gpu_mul, gpu_map, Multiply)
DEFINE_BINARY(caffe_gpu_div, gpu_map, Divide)

}  // namespace caffe
