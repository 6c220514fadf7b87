// Every way to write a kernel's head.
#include "caffe_cuda_macro.h"
#define WORDY
namespace outer {
namespace {
static __global__ void plain(int n) {}
__global__ static void late_static(int n) {}
void __global__ late_word(int n) {}
}  // namespace
template <typename T, int N = (3 > 2) ? 1 : 0>
__global__ void __launch_bounds__(256)
    bounded(const int n,
            T (*function)(T),
            T* WORDY out = nullptr)
{
  CUDA_KERNEL_LOOP(i, n) out[i] = function(T(N));
}
template <>
__global__ void bounded<double, 2>(const int n, double (*function)(double), double* out) { out[0] = 1; }
__global__ void declared(int n);
}  // namespace outer
extern "C" __global__ void exported(void) {
}  // a comment with }
extern "C" {
__global__ void one_line(int n) { if (n) return; }
}
template __global__ void outer::bounded<float, 1>(const int, float (*)(float), float*);
