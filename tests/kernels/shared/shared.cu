#include "caffe_cuda_macro.h"

constexpr int kBlock = 64;

__global__ void static_kernel(const float* bottom, float* top) {
  __shared__ float held[kBlock];
  const int64_t base = int64_t(blockIdx.x) * blockDim.x;
  held[threadIdx.x] = bottom[base + threadIdx.x];
  __syncthreads();
  top[base + threadIdx.x] = held[kBlock - 1 - threadIdx.x];
}

__global__ void dynamic_kernel(const double* bottom, double* top) {
  extern __shared__ double held_dynamic[];
  const int64_t base = int64_t(blockIdx.x) * blockDim.x;
  held_dynamic[threadIdx.x] = bottom[base + threadIdx.x];
  __syncthreads();
  top[base + threadIdx.x] = held_dynamic[blockDim.x - 1 - threadIdx.x];
}

extern __shared__ int held_at_file_scope[];

__global__ void file_scope_kernel(const int* bottom, int* top) {
  const int64_t base = int64_t(blockIdx.x) * blockDim.x;
  held_at_file_scope[threadIdx.x] = bottom[base + threadIdx.x];
  __syncthreads();
  top[base + threadIdx.x] = held_at_file_scope[blockDim.x - 1 - threadIdx.x];
}

template <typename T>
__device__ T of_pointer(const T* values, int i) {
  return values[i];
}

// The same memory as an array is used in each way: cast, and as the pointer that a template takes.
__global__ void file_scope_cast_kernel(const float* bottom, float* top) {
  const int64_t base = int64_t(blockIdx.x) * blockDim.x;
  ((float*)held_at_file_scope)[threadIdx.x] = bottom[base + threadIdx.x];
  __syncthreads();
  const int other = blockDim.x - 1 - threadIdx.x;
  const float same = __int_as_float(of_pointer(held_at_file_scope, other));
  top[base + threadIdx.x] = (reinterpret_cast<float*>(held_at_file_scope)[other] + same) / 2;
}

__global__ void large_kernel(float* top, int count) {
  extern __shared__ float filled[];
  for (int i = threadIdx.x; i < count; i += blockDim.x) filled[i] = float(blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < count; ++i) sum += filled[i];
    top[blockIdx.x] = sum;
  }
}

extern "C" int shared_static(const float* bottom, float* top, int64_t count, void* stream) {
  static_kernel<<<count / kBlock, kBlock, 0, CAFFE_STREAM(stream)>>>(bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int shared_dynamic(const double* bottom, double* top, int64_t count, void* stream) {
  dynamic_kernel<<<count / kBlock, kBlock, kBlock * sizeof(double), CAFFE_STREAM(stream)>>>(bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int shared_file_scope(const int* bottom, int* top, int64_t count, void* stream) {
  file_scope_kernel<<<count / kBlock, kBlock, kBlock * sizeof(int), CAFFE_STREAM(stream)>>>(bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int shared_file_scope_cast(const float* bottom, float* top, int64_t count, void* stream) {
  file_scope_cast_kernel<<<count / kBlock, kBlock, kBlock * sizeof(int), CAFFE_STREAM(stream)>>>(bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int shared_large(float* top, int64_t blocks, int bytes, void* stream) {
  large_kernel<<<blocks, 128, bytes, CAFFE_STREAM(stream)>>>(top, bytes / sizeof(float));
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int shared_allow(float* top, int bytes, void* stream) {
  CUDA_CHECK(cudaFuncSetAttribute(large_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  return shared_large(top, 1, 48, stream);
}
