#include "caffe_cuda_macro.h"

__global__ void all_kernel(const int* bottom, int* top) {
  const unsigned int everyone = 0xffffffffu;
  const int at = blockIdx.x * blockDim.x + threadIdx.x, value = bottom[at];
  int* own = top + 8 * at;
  own[0] = __shfl_sync(everyone, value, 5);
  own[1] = __shfl_sync(everyone, value, 3, 8);
  own[2] = __shfl_up_sync(everyone, value, 2);
  own[3] = __shfl_down_sync(everyone, value, 3, 16);
  own[4] = __shfl_xor_sync(everyone, value, 1);
  own[5] = static_cast<int>(__ballot_sync(everyone, value % 2));
  own[6] = __any_sync(everyone, value == 7) != 0;
  own[7] = __all_sync(everyone, value < 1000) != 0;
}

// As forks have for CUDA 9: it is taken where the toolkit's template of this name would do, too.
template <typename T>
__device__ inline T __shfl_down(T value, unsigned int delta, int width = warpSize) {
  return __shfl_down_sync(0xffffffffu, value, delta, width);
}

// The same in the words of before CUDA 9.
__global__ void old_kernel(const int* bottom, int* top) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x, value = bottom[at];
  int* own = top + 8 * at;
  own[0] = __shfl(value, 5);
  own[1] = __shfl(value, 3, 8);
  own[2] = __shfl_up(value, 2);
  own[3] = __shfl_down(value, 3, 16);
  own[4] = __shfl_xor(value, 1);
  own[5] = static_cast<int>(__ballot(value % 2));
  own[6] = __any(value == 7) != 0;
  own[7] = __all(value < 1000) != 0;
}

__global__ void sum_kernel(const double* bottom, double* top) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  double value = bottom[at];
#if __CUDA_ARCH__ >= 300
  for (int step = warpSize / 2; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
#else
  // As torch's batch normalisation did it: without barriers, since the threads of a warp ran in step.
  __shared__ volatile double values[1024];
  values[at] = value;
  for (int i = 1; i < warpSize; ++i) value += values[at / warpSize * warpSize + (at + i) % warpSize];
#endif
  if (at % warpSize == 0) top[at / warpSize] = value;
}

__global__ void early_return_warp_kernel(const int* bottom, int* top, int begin, int end) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x, value = bottom[at];
  const int lane = threadIdx.x % warpSize;
  if (lane < begin || lane >= end) return;
  const unsigned int everyone = 0xffffffffu;
  int* own = top + 6 * at;
  own[0] = __shfl_sync(everyone, value, begin);
  own[1] = static_cast<int>(__ballot_sync(everyone, value % 2));
  __syncwarp(everyone);
  const unsigned int living = __activemask();
  own[2] = __any_sync(everyone, value == 7) != 0;
  own[3] = __all_sync(everyone, value < 1000) != 0;
  own[4] = static_cast<int>(living);
  own[5] = static_cast<int>(__ballot_sync(living, value % 2));
}

extern "C" int warp_early_return(const int* bottom, int* top, int begin, int end, int threads, void* stream) {
  early_return_warp_kernel<<<1, threads, 0, CAFFE_STREAM(stream)>>>(bottom, top, begin, end);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int warp_all(const int* bottom, int* top, int threads, int blocks, void* stream) {
  all_kernel<<<blocks, threads / blocks, 0, CAFFE_STREAM(stream)>>>(bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int warp_old(const int* bottom, int* top, int threads, int blocks, void* stream) {
  old_kernel<<<blocks, threads / blocks, 0, CAFFE_STREAM(stream)>>>(bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int warp_sum(const double* bottom, double* top, int threads, void* stream) {
  sum_kernel<<<1, threads, 0, CAFFE_STREAM(stream)>>>(bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void box_kernel(int* top) {
  const int flat = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  top[flat] = __shfl_sync(0xffffffffu, flat, 5);
}
extern "C" int warp_box(int* top, int x, int y, int z, void* stream) {
  box_kernel<<<1, dim3(x, y, z), 0, CAFFE_STREAM(stream)>>>(top);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void partial_kernel(const int* bottom, int* top, int delta) {
  const int value = bottom[threadIdx.x];
  int* own = top + 4 * threadIdx.x;
  own[0] = __shfl_sync(0xffffffffu, value, threadIdx.x + delta);
  own[1] = __shfl_up_sync(0xffffffffu, value, delta, 8);
  own[2] = __shfl_down_sync(0xffffffffu, value, delta);
  own[3] = __shfl_xor_sync(0xffffffffu, value, delta);
}
extern "C" int warp_partial(const int* bottom, int* top, int threads, int delta, void* stream) {
  partial_kernel<<<1, threads, 0, CAFFE_STREAM(stream)>>>(bottom, top, delta);
  return CAFFE_LAUNCH_STATUS();
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__global__ void match_kernel(const int* bottom, int* top) {
  const int value = bottom[threadIdx.x];
  const unsigned int mask = __ballot_sync(0xffffffffu, value >= 0);
  int* own = top + 8 * threadIdx.x;
  if (value < 0) return;
  int all;
  own[0] = static_cast<int>(__match_any_sync(mask, value));
  own[1] = static_cast<int>(__match_all_sync(mask, value > 100, &all));
  own[2] = all;
  own[3] = __reduce_add_sync(mask, value);
  own[4] = __reduce_min_sync(mask, value);
  own[5] = __reduce_max_sync(mask, value);
  own[6] = static_cast<int>(__reduce_xor_sync(mask, static_cast<unsigned int>(value)));
  own[7] = clock64() > 0;
}
#else
__global__ void match_kernel(const int*, int*) {}
#endif
extern "C" int warp_match(const int* bottom, int* top, int threads, void* stream) {
  void* arguments[] = {&bottom, &top};
  CUDA_CHECK(cudaLaunchKernel(match_kernel, dim3(1), dim3(threads), arguments, 0, CAFFE_STREAM(stream)));
  return CAFFE_LAUNCH_STATUS();
}
