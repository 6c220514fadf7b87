#include "caffe_cuda_macro.h"

__global__ void tree_sum_kernel(const float* bottom, float* top) {
  __shared__ float held[256];
  held[threadIdx.x] = bottom[blockIdx.x * 256 + threadIdx.x];
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) held[threadIdx.x] += held[threadIdx.x + half];
  }
  if (threadIdx.x == 0) top[blockIdx.x] = held[0];
}

__global__ void early_return_kernel(const int* bottom, int* top, int alive) {
  __shared__ int held[1024];
  if (threadIdx.x >= alive) return;
  held[threadIdx.x] = bottom[threadIdx.x];
  __syncthreads();
  top[threadIdx.x] = held[(threadIdx.x + 1) % alive];
}

__global__ void votes_kernel(int* top, int below) {
  const int mine = threadIdx.x < below;
  const int count = __syncthreads_count(mine);
  const int all = __syncthreads_and(mine);
  const int any = __syncthreads_or(mine);
  if (threadIdx.x == blockDim.x - 1) top[0] = count, top[1] = all != 0, top[2] = any != 0;
}

__global__ void mismatch_kernel(int* top) {
  if (threadIdx.x < 16)
    __syncthreads();
  else
    __syncwarp();
  top[blockIdx.x] = 1;
}

extern "C" int barriers_tree_sum(const float* bottom, float* top, int64_t blocks, void* stream) {
  tree_sum_kernel<<<blocks, 256, 0, CAFFE_STREAM(stream)>>>(bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int barriers_early_return(const int* bottom, int* top, int alive, int threads, void* stream) {
  early_return_kernel<<<1, threads, 0, CAFFE_STREAM(stream)>>>(bottom, top, alive);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int barriers_votes(int* top, int below, int threads, void* stream) {
  votes_kernel<<<1, threads, 0, CAFFE_STREAM(stream)>>>(top, below);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int barriers_mismatch(int* top, int blocks, void* stream) {
  mismatch_kernel<<<blocks, 32, 0, CAFFE_STREAM(stream)>>>(top);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void branches_kernel(int* top, int count) {
  if (threadIdx.x < count)
    __syncthreads();
  else
    __syncthreads();
  top[threadIdx.x] = 1;
}
extern "C" int barriers_branches(int* top, int count, int threads, void* stream) {
  branches_kernel<<<1, threads, 0, CAFFE_STREAM(stream)>>>(top, count);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void one_line_kernel(int* top, int count) {
  // clang-format off
  if (threadIdx.x < count) { __syncthreads(); } else { __syncthreads(); }
  // clang-format on
  top[threadIdx.x] = 1;
}
extern "C" int barriers_one_line(int* top, int count, int threads, void* stream) {
  one_line_kernel<<<1, threads, 0, CAFFE_STREAM(stream)>>>(top, count);
  return CAFFE_LAUNCH_STATUS();
}
