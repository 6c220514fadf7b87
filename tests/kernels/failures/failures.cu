#include <new>

#include "caffe_cuda_macro.h"

__global__ void one_kernel(float* top) { top[blockIdx.x] = 1; }

// Exceptions exist on the host alone: there one must not leave a kernel's thread as std::terminate.
__global__ void throwing_kernel(const int64_t n, float* top, int64_t at) {
  CUDA_KERNEL_LOOP(i, n) {
#ifndef __CUDACC__
    if (i == at) throw std::runtime_error("element " + std::to_string(i));
#endif
    top[i] = 1;
  }
}

extern "C" int failures_threads(float* top, int threads, int blocks, void* stream) {
  one_kernel<<<blocks, threads, 0, CAFFE_STREAM(stream)>>>(top);
  return CAFFE_LAUNCH_STATUS();  // line 19
}

extern "C" int failures_throw(float* top, int what, void* stream) {
  if (what == 0) throw std::runtime_error("a runtime_error on purpose");
  if (what == 1) throw std::bad_alloc();
  if (what == 2) throw 42;
  if (what == 3) throw std::runtime_error(std::string(5000, 'x'));
  return failures_threads(top, 1, 1, stream);
}

extern "C" int failures_check(float* top, void* stream) {
  CUDA_CHECK(cudaErrorInvalidValue);  // line 31
  return failures_threads(top, 1, 1, stream);
}

extern "C" int failures_post_check(float* top, void* stream) {
  one_kernel<<<1, 4096, 0, CAFFE_STREAM(stream)>>>(top);
  CUDA_POST_KERNEL_CHECK;  // line 37
  return 0;
}

extern "C" int failures_status(float* top, int status, void* stream) {
  failures_threads(top, 1, 1, stream);
  return status;
}

extern "C" int failures_dispatch(const void* bottom, void* top, int dtype, void* stream) {
  CAFFE_DISPATCH_FLOAT_DOUBLE(dtype, Dtype, {
    one_kernel<<<1, 1, 0, CAFFE_STREAM(stream)>>>(static_cast<float*>(top));
    (void)sizeof(Dtype);
  });
  return bottom ? CAFFE_LAUNCH_STATUS() : 1;
}

extern "C" int failures_throw_in_kernel(float* top, int64_t count, int64_t at, void* stream) {
  throwing_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, top,
                                                                                                at);
  return CAFFE_LAUNCH_STATUS();
}

#ifndef __CUDACC__
template <int KiB>
__attribute__((noinline)) float deep() {
  volatile float much[KiB * 256];
  for (volatile float& one : much) one = 1;
  return much[KiB];
}
#endif

// The last thread throws, or takes much stack, after all have met once: each has a stack of its own then.
__global__ void meeting_kernel(float* top, int what) {
  __syncthreads();
#ifndef __CUDACC__
  if (threadIdx.x == blockDim.x - 1) {
    if (what == 1) throw std::runtime_error("thread " + std::to_string(threadIdx.x));
    if (what == 2) top[threadIdx.x] = deep<600>();
    if (what == 3) top[threadIdx.x] = deep<700>();
  }
#endif
  __syncthreads();
  top[threadIdx.x] = 1;
}

extern "C" int failures_after_a_barrier(float* top, int threads, int what, void* stream) {
  meeting_kernel<<<1, threads, 0, CAFFE_STREAM(stream)>>>(top, what);
  return CAFFE_LAUNCH_STATUS();
}

#include <assert.h>

#include <cstdlib>
#include <exception>

// What would end the process on the host. On a GPU an assert or a wrong address ends the context.
__device__ int below_three(int n) noexcept {
  assert(n < 3);
  return n;
}
template <int KiB>
__device__ float large_array(int n) {
  volatile float much[KiB * 256];
  much[n] = 1;
  __syncthreads();
  much[KiB * 256 - 1 - n] = 2;
  __syncthreads();
  return much[n] + much[KiB * 256 - 1 - n];
}
__global__ void deadly_kernel(int* top, int what, int n) {
  CUDA_KERNEL_LOOP(i, 1 << 16) {
    if (what == 1) top[i % 2] = i / n;
    if (what == 2) top[i + static_cast<int64_t>(n) * 1000000000000] = i;
    if (what == 3) assert(n < 3);
  }
}
__global__ void deadly_block_kernel(int* top, int what, int n) {
  __syncthreads();
  if (what == 4) top[threadIdx.x] = below_three(n);
  if (what == 5) top[threadIdx.x] = large_array<480>(n) == 3;
  if (what == 6) __trap();
  if (what == 8)
    while (atomicAdd(top, 0) == n) {
    }
#ifndef __CUDACC__
  if (what == 7) top[threadIdx.x] = large_array<900>(n) == 3;
  if (what == 9) exit(n);
  if (what == 10) std::terminate();
#endif
  __syncthreads();
}
extern "C" int failures_deadly(int* top, int what, int n, int blocks, void* stream) {
  if (what == 11) exit(n);
  if (what == 12) std::abort();
  if (what == 13) std::terminate();
  if (what == 14) assert(n == 3);
  if (what <= 3)
    deadly_kernel<<<CAFFE_GET_BLOCKS(1 << 16), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(top, what,
                                                                                                  n);
  else
    deadly_block_kernel<<<blocks, 2, 0, CAFFE_STREAM(stream)>>>(top, what, n);
  return CAFFE_LAUNCH_STATUS();
}
