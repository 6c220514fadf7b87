// Launches in macros' bodies, as statements and as expressions.
#include "caffe_cuda_macro.h"
template <typename T>
__global__ void fill(const int n, T* x) { CUDA_KERNEL_LOOP(i, n) { x[i] = T(1); } }
#define FILL(T, n, x) fill<T><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, x)
#define FILL_CHECKED(T, n, x)                             \
  do {                                                    \
    fill<T> /* which */                                   \
        <<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(\
            n, x);                                        \
    CUDA_POST_KERNEL_CHECK;                               \
  } while (0)  // done
#define FILL_CASE(code, T) \
  case code:               \
    fill<T><<<1, 2>>>(n, (T*)x); \
    break;
#define DEFINE_FILLER(name, T) \
  void name##_filler(const int n, T* x) { \
    fill<T><<<1, 2>>>(n, x); \
  }
DEFINE_FILLER(float, float)
void launches(int code, const int n, void* x) {
  FILL(float, n, (float*)x);
  FILL_CHECKED(double, n, (double*)x);
  switch (code) {
    FILL_CASE(1, float)
    FILL_CASE(2, double)
  }
}
