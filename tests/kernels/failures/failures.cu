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
    if (what == 2) top[threadIdx.x] = deep<100>();
    if (what == 3) top[threadIdx.x] = deep<150>();
  }
#endif
  __syncthreads();
  top[threadIdx.x] = 1;
}

extern "C" int failures_after_a_barrier(float* top, int threads, int what, void* stream) {
  meeting_kernel<<<1, threads, 0, CAFFE_STREAM(stream)>>>(top, what);
  return CAFFE_LAUNCH_STATUS();
}
