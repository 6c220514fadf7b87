// Shuffles and votes by their names of before CUDA 9, without a mask: the whole warp was meant. From sm_70 on nvcc has no
// such shuffles. It still declares the votes, for every GPU, and ptxas then refuses them: so these are macros.
#ifndef CAFFE_OLD_WARP_H_
#define CAFFE_OLD_WARP_H_

#ifndef __HIP__
template <typename T>
__device__ inline T __shfl(T value, int source, int width = warpSize) {
  return __shfl_sync(0xffffffffu, value, source, width);
}
template <typename T>
__device__ inline T __shfl_up(T value, unsigned int delta, int width = warpSize) {
  return __shfl_up_sync(0xffffffffu, value, delta, width);
}
template <typename T>
__device__ inline T __shfl_down(T value, unsigned int delta, int width = warpSize) {
  return __shfl_down_sync(0xffffffffu, value, delta, width);
}
template <typename T>
__device__ inline T __shfl_xor(T value, int lanes, int width = warpSize) {
  return __shfl_xor_sync(0xffffffffu, value, lanes, width);
}
#define __ballot(...) __ballot_sync(0xffffffffu, __VA_ARGS__)
#define __any(...) __any_sync(0xffffffffu, __VA_ARGS__)
#define __all(...) __all_sync(0xffffffffu, __VA_ARGS__)
#endif

#endif  // CAFFE_OLD_WARP_H_
