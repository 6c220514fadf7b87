// Shuffles and votes by their names of before CUDA 9, without a mask: the whole warp was meant. nvcc has no such shuffles
// from sm_70 on. The votes it still declares, for every GPU, and ptxas then refuses them: tools/cuda/for_nvcc.py gives
// them their mask. (Macros would reach CUDA's own headers, which have other things of these names.) The width is a pack, so
// that a layer's own template of such a name, as forks have for CUDA 9, is another one, and is preferred.
#ifndef CAFFE_OLD_WARP_H_
#define CAFFE_OLD_WARP_H_

#ifndef __HIP__
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
#endif

#endif  // CAFFE_OLD_WARP_H_
