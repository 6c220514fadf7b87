// Launches as arguments of macros.
#include "caffe_cuda_macro.h"
#define TWICE(...) __VA_ARGS__ __VA_ARGS__
#define ONCE(statement) statement
#define PICK(type, ...) do { typedef type T; __VA_ARGS__ } while (0)
template <typename T>
__global__ void fill(const int n, T* x) { CUDA_KERNEL_LOOP(i, n) { x[i] = T(1); } }
void launches(const int n, float* x) {
  ONCE((fill<float><<<1, 2>>>(n, x)));
  ONCE(fill<<<dim3(1), 2>>>(n, x););
  TWICE(fill<float><<<1, 2>>>(n, x););
  PICK(float, int k = 0; fill<T><<<1, 2>>>(n, x););
  PICK(float, {
    fill<T><<<1, 2>>>(n, x);
    if (n > 2) {
      fill<T>
          <<<1, 2>>>(n, x);
    }
  });
}
