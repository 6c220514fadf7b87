// Knowing one's thread, directly or through the functions, macros and functors that are called.
#include "caffe_cuda_macro.h"
__device__ int which() { return threadIdx.x; }
__device__ int indirectly() { return which() + 1; }
#define WHICH_BLOCK blockIdx.x
struct Shift {
  __device__ float operator()(float v) const { return v + which(); }
};
__global__ void calls(const int n, float* x) {
  CUDA_KERNEL_LOOP(i, n) { x[i] = indirectly(); }
}
__global__ void by_macro(const int n, float* x) {
  CUDA_KERNEL_LOOP(i, n) { x[i] = WHICH_BLOCK; }
}
template <typename F>
__global__ void apply(const int n, float* x, F f) {
  CUDA_KERNEL_LOOP(i, n) { x[i] = f(x[i]); }
}
void launch(int n, float* x) { apply<<<1, 32>>>(n, x, Shift()); }
__global__ void no_identity(const int n, float* x) {
  CUDA_KERNEL_LOOP(i, n) { x[i] = 1; }
}
