// The shuffles from before CUDA 9, without a mask, for the whole warp. From sm_70 on nvcc does not have them.
// (nvcc still declares the old votes, and ptxas refuses them, so tools/cuda/for_nvcc.py adds a mask to their calls.)
//
// They are not macros, because CUDA's own headers use these names for other things. The width is a parameter pack:
// then a fork's own template of the same name is a better match, and is called.
#ifndef CAFFE_OLD_WARP_H_
#define CAFFE_OLD_WARP_H_

#ifdef CAFFE_HOST_BACKEND  // a real number becomes an integer as on a GPU
#define CAFFE_OLD_INT ::cuda_host::Int
#define CAFFE_OLD_UINT ::cuda_host::UInt
#else
#define CAFFE_OLD_INT int
#define CAFFE_OLD_UINT unsigned int
#endif

template <typename T, typename... Width>
__device__ inline T __shfl(T value, CAFFE_OLD_INT source, Width... width) {
  return __shfl_sync(0xffffffffu, value, source, width...);
}
template <typename T, typename... Width>
__device__ inline T __shfl_up(T value, CAFFE_OLD_UINT delta, Width... width) {
  return __shfl_up_sync(0xffffffffu, value, delta, width...);
}
template <typename T, typename... Width>
__device__ inline T __shfl_down(T value, CAFFE_OLD_UINT delta, Width... width) {
  return __shfl_down_sync(0xffffffffu, value, delta, width...);
}
template <typename T, typename... Width>
__device__ inline T __shfl_xor(T value, CAFFE_OLD_INT lanes, Width... width) {
  return __shfl_xor_sync(0xffffffffu, value, lanes, width...);
}

#undef CAFFE_OLD_INT
#undef CAFFE_OLD_UINT

#endif  // CAFFE_OLD_WARP_H_
