// Shared variables of fixed size and of the launch's size.
#include "caffe_cuda_macro.h"
extern __shared__ float file_scope[];
namespace ns {
extern __shared__ __align__(16) unsigned char bytes[];
}
template <typename T>
__global__ void sums(int n, const T* in, T* out) {
  extern __shared__ __align__(sizeof(double))
      unsigned char raw[];  // comment stays
  extern volatile __shared__ float watched[];
  extern __shared__ int a[], b[];
  __shared__ T fixed[32];
  static __shared__ T also_fixed[2][2];
  __shared__ static int counter;
  T* typed = reinterpret_cast<T*>(raw);
  typed[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x == 0) counter = 0;
  fixed[threadIdx.x % 32] = also_fixed[0][0] = T(0);
  __syncthreads();
  watched[0] = file_scope[0] + ns::bytes[0] + a[0] + b[0];
  out[0] = typed[0];
}
#define SCRATCH(T, name) extern __shared__ T name[]
__global__ void by_macro(float* out) {
  SCRATCH(float, scratch);
  out[threadIdx.x] = scratch[threadIdx.x];
}
__device__ int own_local(int i) {
  int file_scope[2] = {i, 1};
  return file_scope[0];
}
__device__ float own_parameter(const float* file_scope) { return *file_scope; }
template <typename T>
__device__ T first(const T* values) {
  return values[0];
}
__global__ void cast(double* out) {
  double* wide = reinterpret_cast<double*>(file_scope);
  out[0] = wide[0] + *(double*)file_scope + first(file_scope) + sizeof(*file_scope);
}
