#include <curand_kernel.h>

#include "caffe_cuda_macro.h"

__global__ void float_kernel(const int64_t threads, int kind, int64_t seed, int64_t offset, float* top,
                             int64_t count) {
  CUDA_KERNEL_LOOP(i, threads) {
    curandState state;
    curand_init(seed, i, offset, &state);
    for (int64_t k = 0; k < count; ++k) {
      top[i * count + k] = kind == 0   ? curand_uniform(&state)
                           : kind == 1 ? curand_normal(&state)
                                       : curand_log_normal(&state, 0.5f, 0.25f);
    }
  }
}

__global__ void double_kernel(const int64_t threads, int kind, int64_t seed, int64_t offset, double* top,
                              int64_t count) {
  CUDA_KERNEL_LOOP(i, threads) {
    curandState_t state;
    curand_init(seed, i, offset, &state);
    for (int64_t k = 0; k < count; ++k) {
      top[i * count + k] = kind == 0   ? curand_uniform_double(&state)
                           : kind == 1 ? curand_normal_double(&state)
                           : kind == 2
                               ? curand_log_normal_double(&state, 0.5, 0.25)
                               : curand_uniform_double(static_cast<curandStatePhilox4_32_10_t*>(&state));
    }
  }
}

__global__ void bits_kernel(const int64_t threads, int64_t seed, int64_t offset, int64_t skip, int64_t* top,
                            int64_t count) {
  CUDA_KERNEL_LOOP(i, threads) {
    curandStatePhilox4_32_10_t state;
    curand_init(seed, 0, offset, &state);
    skipahead_sequence(i, &state);
    skipahead(skip, &state);
    int64_t* row = top + i * count;
    for (int64_t k = 0; k < count;) {
      if (k % 7 == 2 && k + 4 <= count) {
        const uint4 four = curand4(&state);
        row[k++] = four.x;
        row[k++] = four.y;
        row[k++] = four.z;
        row[k++] = four.w;
      } else {
        row[k++] = curand(&state);
      }
    }
  }
}

extern "C" int random_float(int kind, int64_t seed, int64_t offset, float* top, int64_t threads,
                            int64_t count, void* stream) {
  float_kernel<<<CAFFE_GET_BLOCKS(threads), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
      threads, kind, seed, offset, top, count);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int random_double(int kind, int64_t seed, int64_t offset, double* top, int64_t threads,
                             int64_t count, void* stream) {
  double_kernel<<<CAFFE_GET_BLOCKS(threads), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
      threads, kind, seed, offset, top, count);
  return CAFFE_LAUNCH_STATUS();
}

extern "C" int random_bits(int64_t seed, int64_t offset, int64_t skip, int64_t* top, int64_t threads,
                           int64_t count, void* stream) {
  bits_kernel<<<CAFFE_GET_BLOCKS(threads), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
      threads, seed, offset, skip, top, count);
  return CAFFE_LAUNCH_STATUS();
}
