// Launches as people write them.
#include "caffe_cuda_macro.h"
template <typename T>
__global__ void fill(const int n, T* x) { CUDA_KERNEL_LOOP(i, n) { x[i] = T(1); } }
namespace ns {
template <typename T, bool B> __global__ void pick(T* x) { x[0] = B; }
}
typedef void (*Kernel)(const int, float*);
void launches(const int n, float* x, cudaStream_t stream) {
  fill<float><<<1, 2>>>(n, x);
  fill<float><<<dim3(1), dim3(2), 0, stream>>>(n, x);
  fill<float>  // NOLINT_NEXT_LINE(whitespace/operators)
      <<<CAFFE_GET_BLOCKS(n),  // as many as it takes
         CAFFE_CUDA_NUM_THREADS // no more
         >>> /* gap */ (
          n,
          x);  // the end
  fill<float> << <1, 2>> >(n, x);
  fill<float><<
      <1, 2>>
      >(n, x);
  fill<float> <<< 1, 2 >>> (n, x);
  ns::pick<float, (3 > 2)><<<1, 2>>>(x);
  ns::pick<float, (sizeof(int) > 2)><<<dim3(n > 3 ? 1 : 2, (n, 4)), [&] { return n << 1 >> 1; }()>>>(x);
  Kernel kernel = n > 3 ? fill<float> : &fill<float>;
  kernel<<<1, 2>>>(n, x);
  (*kernel)<<<1, 2>>>(n, x);
  Kernel kernels[2] = {kernel, kernel};
  kernels[n & 1]<<<1, static_cast<int>(n)>>>((int)n, static_cast<float*>(x));
  if (n) fill<float><<<1, 2>>>(n, x); else fill<float><<<1, 3>>>(n, x);
  for (int i = 0; i < 2; ++i) fill<<<1, 2>>>(n, x + (1 << i));
  switch (n) {
    case 1: fill<<<1, 2>>>(n, x);
    default: fill<<<1, 3>>>(n, x);
  }
  auto later = [=] { fill<<<1, 2>>>(n, x); };
  later();
#if defined(SOMETHING)
  fill<<<1, 2>>>(n, x);
#else
  fill<<<1, 3>>>(n,
#ifdef OTHER_THING
                 x + 1
#else
                 x
#endif
                 );
#endif
  return fill<<<1, 2>>>(n, x);
}
