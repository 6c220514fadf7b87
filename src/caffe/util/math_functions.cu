// Caffe's elementwise functions on the GPU: one kernel for each number of inputs. It takes the operation as
// an argument.
#include "caffe/util/math_functions.hpp"

namespace caffe {
namespace {

template <typename Dtype>
__global__ void set_kernel(const int n, const Dtype value, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = value;
  }
}

template <typename Dtype, typename Operation>
__global__ void unary_kernel(const int n, const Operation operation, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = operation(x[i]);
  }
}

template <typename Dtype, typename Operation>
__global__ void binary_kernel(const int n, const Operation operation, const Dtype* a, const Dtype* b,
                              Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = operation(a[i], b[i]);
  }
}

template <typename Dtype, typename Operation>
void unary(const int n, const Operation operation, const Dtype* x, Dtype* y) {
  unary_kernel<<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, operation, x, y);
  CUDA_POST_KERNEL_CHECK;
}

template <typename Dtype, typename Operation>
void binary(const int n, const Operation operation, const Dtype* a, const Dtype* b, Dtype* y) {
  binary_kernel<<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, operation, a, b, y);
  CUDA_POST_KERNEL_CHECK;
}

// An operation by name; `alpha` and `beta` are its constants.
#define UNARY_OPERATION(Name, result)                             \
  template <typename Dtype>                                       \
  struct Name {                                                   \
    Dtype alpha;                                                  \
    __device__ Dtype operator()(Dtype x) const { return result; } \
  };
#define BINARY_OPERATION(Name, result)                                     \
  template <typename Dtype>                                                \
  struct Name {                                                            \
    Dtype alpha, beta;                                                     \
    __device__ Dtype operator()(Dtype x, Dtype y) const { return result; } \
  };

UNARY_OPERATION(Scale, alpha* x)
UNARY_OPERATION(AddScalar, x + alpha)
UNARY_OPERATION(Power, pow(x, alpha))
UNARY_OPERATION(Absolute, fabs(x))
UNARY_OPERATION(Exponential, exp(x))
UNARY_OPERATION(Logarithm, log(x))
UNARY_OPERATION(SquareRoot, sqrt(x))
UNARY_OPERATION(Sign, Dtype((Dtype(0) < x) - (x < Dtype(0))))
UNARY_OPERATION(SignBit, Dtype(signbit(x) ? 1 : 0))
BINARY_OPERATION(Add, x + y)
BINARY_OPERATION(Subtract, x - y)
BINARY_OPERATION(Multiply, x* y)
BINARY_OPERATION(Divide, x / y)
BINARY_OPERATION(Axpy, alpha* x + y)
BINARY_OPERATION(Axpby, alpha* x + beta * y)

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
void caffe_gpu_scal(const int N, const Dtype alpha, Dtype* X) {
  unary(N, Scale<Dtype>{alpha}, X, X);
}

template <typename Dtype>
void caffe_gpu_scal(const int N, const Dtype alpha, Dtype* X, cudaStream_t stream) {
  unary_kernel<<<CAFFE_GET_BLOCKS(N), CAFFE_CUDA_NUM_THREADS, 0, stream>>>(N, Scale<Dtype>{alpha}, X, X);
  CUDA_POST_KERNEL_CHECK;
}

template <typename Dtype>
void caffe_gpu_scale(const int n, const Dtype alpha, const Dtype* x, Dtype* y) {
  unary(n, Scale<Dtype>{alpha}, x, y);
}

template <typename Dtype>
void caffe_gpu_add_scalar(const int N, const Dtype alpha, Dtype* X) {
  unary(N, AddScalar<Dtype>{alpha}, X, X);
}

template <typename Dtype>
void caffe_gpu_powx(const int n, const Dtype* a, const Dtype b, Dtype* y) {
  unary(n, Power<Dtype>{b}, a, y);
}

template <typename Dtype>
void caffe_gpu_axpy(const int N, const Dtype alpha, const Dtype* X, Dtype* Y) {
  binary(N, Axpy<Dtype>{alpha}, X, Y, Y);
}

template <typename Dtype>
void caffe_gpu_axpby(const int N, const Dtype alpha, const Dtype* X, const Dtype beta, Dtype* Y) {
  if (beta == 0) {  // do not read Y: it may hold NaN
    unary(N, Scale<Dtype>{alpha}, X, Y);
  } else {
    binary(N, Axpby<Dtype>{alpha, beta}, X, Y, Y);
  }
}

#define INSTANTIATE(Dtype)                                                     \
  template void caffe_gpu_scal(const int, const Dtype, Dtype*);                \
  template void caffe_gpu_scal(const int, const Dtype, Dtype*, cudaStream_t);  \
  template void caffe_gpu_scale(const int, const Dtype, const Dtype*, Dtype*); \
  template void caffe_gpu_add_scalar(const int, const Dtype, Dtype*);          \
  template void caffe_gpu_powx(const int, const Dtype*, const Dtype, Dtype*);  \
  template void caffe_gpu_axpy(const int, const Dtype, const Dtype*, Dtype*);  \
  template void caffe_gpu_axpby(const int, const Dtype, const Dtype*, const Dtype, Dtype*);
INSTANTIATE(float)
INSTANTIATE(double)

#define DEFINE_UNARY(name, Operation)                  \
  template <typename Dtype>                            \
  void name(const int n, const Dtype* x, Dtype* y) {   \
    unary(n, Operation<Dtype>(), x, y);                \
  }                                                    \
  template void name(const int, const float*, float*); \
  template void name(const int, const double*, double*);
DEFINE_UNARY(caffe_gpu_abs, Absolute)
DEFINE_UNARY(caffe_gpu_fabs, Absolute)
DEFINE_UNARY(caffe_gpu_exp, Exponential)
DEFINE_UNARY(caffe_gpu_log, Logarithm)
DEFINE_UNARY(caffe_gpu_sqrt, SquareRoot)
DEFINE_UNARY(caffe_gpu_sign, Sign)
DEFINE_UNARY(caffe_gpu_sgnbit, SignBit)

#define DEFINE_BINARY(name, Operation)                               \
  template <typename Dtype>                                          \
  void name(const int n, const Dtype* a, const Dtype* b, Dtype* y) { \
    binary(n, Operation<Dtype>(), a, b, y);                          \
  }                                                                  \
  template void name(const int, const float*, const float*, float*); \
  template void name(const int, const double*, const double*, double*);
DEFINE_BINARY(caffe_gpu_add, Add)
DEFINE_BINARY(caffe_gpu_sub, Subtract)
DEFINE_BINARY(caffe_gpu_mul, Multiply)
DEFINE_BINARY(caffe_gpu_div, Divide)

}  // namespace caffe
