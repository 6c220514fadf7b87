#include "caffe_cuda_macro.h"

template <typename Dtype>
__global__ void add_kernel(const int64_t n, const Dtype* bottom, Dtype* top) {
  CUDA_KERNEL_LOOP(i, n) {
    caffe_gpu_atomic_add(bottom[i], top);
  }
}

__global__ void add_plain_kernel(const int64_t n, const float* bottom, float* top) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(top, bottom[i]);
}

__global__ void others_kernel(const int64_t n, const int* bottom, int* top) {
  CUDA_KERNEL_LOOP(i, n) {
    atomicMax(top, bottom[i]);
    atomicMin(top + 1, bottom[i]);
    if (bottom[i] > 0) {
      int seen = top[2], expected;
      do {
        expected = seen;
        seen = atomicCAS(top + 2, expected, expected + 1);
      } while (seen != expected);
    }
  }
}

extern "C" int atomics_add_float(const float* bottom, float* top, int64_t count, void* stream) {
  add_plain_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count,
                                                                                                 bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int atomics_add_double(const double* bottom, double* top, int64_t count, void* stream) {
  add_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, bottom,
                                                                                           top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int atomics_add_int(const int* bottom, int* top, int64_t count, void* stream) {
  add_kernel<int>
      <<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int atomics_others(const int* bottom, int* top, int64_t count, void* stream) {
  others_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, bottom,
                                                                                              top);
  return CAFFE_LAUNCH_STATUS();
}
