// The shuffles from before CUDA 9, without a mask, for the whole warp. From sm_70 on nvcc does not have them.
// (nvcc still declares the old votes, and ptxas refuses them, so tools/cuda/for_nvcc.py adds a mask to their calls.)
//
// They are not macros, because CUDA's own headers use these names for other things. The width is a parameter pack:
// then a fork's own template of the same name is a better match, and is called.
#ifndef CAFFE_OLD_WARP_H_
#define CAFFE_OLD_WARP_H_

template <typename T, typename... Width>
__device__ inline T __shfl(T value, int source, Width... width) {
  return __shfl_sync(0xffffffffu, value, source, width...);
}
template <typename T, typename... Width>
__device__ inline T __shfl_up(T value, unsigned int delta, Width... width) {
  return __shfl_up_sync(0xffffffffu, value, delta, width...);
}
template <typename T, typename... Width>
__device__ inline T __shfl_down(T value, unsigned int delta, Width... width) {
  return __shfl_down_sync(0xffffffffu, value, delta, width...);
}
template <typename T, typename... Width>
__device__ inline T __shfl_xor(T value, int lanes, Width... width) {
  return __shfl_xor_sync(0xffffffffu, value, lanes, width...);
}

#endif  // CAFFE_OLD_WARP_H_
