// What CUDA_KERNEL_LOOP and CAFFE_GET_BLOCKS have always meant: an int that strides by the whole grid,
// and a thread for each element. Stands before the toolkit's header on the include path of the
// comparison; types, dispatch and checks are the toolkit's, so that the loop is the only difference.
#include_next "caffe_cuda_macro.h"

#ifndef CLASSIC_CUDA_MACRO_H_
#define CLASSIC_CUDA_MACRO_H_

#undef CUDA_KERNEL_LOOP
#define CUDA_KERNEL_LOOP(i, n) \
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)

inline int classic_blocks(const int count) { return (count + 512 - 1) / 512; }
#undef CAFFE_GET_BLOCKS
#define CAFFE_GET_BLOCKS classic_blocks

#undef CAFFE_CUDA_NUM_THREADS
#define CAFFE_CUDA_NUM_THREADS 512

#endif  // CLASSIC_CUDA_MACRO_H_
