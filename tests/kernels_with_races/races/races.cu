#include "caffe_cuda_macro.h"

__global__ void upsample_backward_kernel(const int64_t n, const float* bottom, float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    top[i / 2] += bottom[i];
  }
}
extern "C" int races_upsample_backward(const float* bottom, float* top, int64_t count, void* stream) {
  upsample_backward_kernel<<<CAFFE_GET_BLOCKS(2 * count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(
      2 * count, bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void upsample_backward_atomic_kernel(const int64_t n, const float* bottom, float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    atomicAdd(top + i / 2, bottom[i]);
  }
}
extern "C" int races_upsample_backward_atomic(const float* bottom, float* top, int64_t count, void* stream) {
  upsample_backward_atomic_kernel<<<CAFFE_GET_BLOCKS(2 * count), CAFFE_CUDA_NUM_THREADS, 0,
                                    CAFFE_STREAM(stream)>>>(2 * count, bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

__device__ inline unsigned long long bits_of(double value) {
  union {
    double value;
    unsigned long long bits;
  } either;
  either.value = value;
  return either.bits;
}
__device__ inline double value_of(unsigned long long bits) {
  union {
    unsigned long long bits;
    double value;
  } either;
  either.bits = bits;
  return either.value;
}
__device__ inline void swap_until_added(double* address, double value) {
  unsigned long long* bits = reinterpret_cast<unsigned long long*>(address);
  unsigned long long old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, bits_of(value_of(assumed) + value));
  } while (assumed != old);
}
__global__ void upsample_backward_swap_kernel(const int64_t n, const double* bottom, double* top) {
  CUDA_KERNEL_LOOP(i, n) {
    swap_until_added(top + i / 2, bottom[i]);
  }
}
extern "C" int races_upsample_backward_swap(const double* bottom, double* top, int64_t count, void* stream) {
  upsample_backward_swap_kernel<<<CAFFE_GET_BLOCKS(2 * count), CAFFE_CUDA_NUM_THREADS, 0,
                                  CAFFE_STREAM(stream)>>>(2 * count, bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void set_then_add_kernel(int* top) {
  if (threadIdx.x == 0) top[0] = 1;
  atomicAdd(top, 1);
}
extern "C" int races_set_then_add(int* top, int64_t count, void* stream) {
  set_then_add_kernel<<<static_cast<int>(count), 32, 0, CAFFE_STREAM(stream)>>>(top);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void same_value_kernel(int* top) { top[0] = 1; }
extern "C" int races_same_value(int* top, int64_t count, void* stream) {
  same_value_kernel<<<static_cast<int>(count), 32, 0, CAFFE_STREAM(stream)>>>(top);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void last_one_wins_kernel(int* top) { top[0] = threadIdx.x; }
extern "C" int races_last_one_wins(int* top, int64_t count, void* stream) {
  last_one_wins_kernel<<<static_cast<int>(count), 32, 0, CAFFE_STREAM(stream)>>>(top);
  return CAFFE_LAUNCH_STATUS();
}

template <bool kFenced>
__global__ void reverse_kernel(const float* bottom, float* top) {
  __shared__ float part[64];
  extern __shared__ float more[];
  const int64_t first = int64_t(blockIdx.x) * 64;
  part[threadIdx.x] = bottom[first + threadIdx.x];
  more[threadIdx.x] = 2 * bottom[first + threadIdx.x];
  if (kFenced) __syncthreads();
  top[first + threadIdx.x] = part[63 - threadIdx.x] + more[63 - threadIdx.x];
}
extern "C" int races_reverse(const float* bottom, float* top, int64_t count, int fenced, void* stream) {
  const int blocks = static_cast<int>(count / 64);
  if (fenced)
    reverse_kernel<true><<<blocks, 64, 64 * sizeof(float), CAFFE_STREAM(stream)>>>(bottom, top);
  else
    reverse_kernel<false><<<blocks, 64, 64 * sizeof(float), CAFFE_STREAM(stream)>>>(bottom, top);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void neighbour_kernel(float* top, float* sums, int64_t count, int across_blocks) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t step = across_blocks ? blockDim.x : 1;
  top[i] = 1;
  __syncthreads();
  if (across_blocks ? i + step < count : threadIdx.x + step < blockDim.x) sums[i] = top[i] + top[i + step];
}
extern "C" int races_neighbour(float* top, float* sums, int64_t count, int across_blocks, void* stream) {
  neighbour_kernel<<<static_cast<int>(count / 64), 64, 0, CAFFE_STREAM(stream)>>>(top, sums, count,
                                                                                  across_blocks);
  return CAFFE_LAUNCH_STATUS();
}

template <bool kSynchronized>
__global__ void warp_kernel(int* top, int* sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  top[i] = i;
  // A vote meets, but does not say that what was written is seen.
  const unsigned int all = __ballot_sync(0xffffffffu, 1);
  if (kSynchronized) __syncwarp(all);
  sums[i] = top[i ^ 1];
}
extern "C" int races_warp(int* top, int* sums, int64_t count, int synchronized, void* stream) {
  const int blocks = static_cast<int>(count / 64);
  if (synchronized)
    warp_kernel<true><<<blocks, 64, 0, CAFFE_STREAM(stream)>>>(top, sums);
  else
    warp_kernel<false><<<blocks, 64, 0, CAFFE_STREAM(stream)>>>(top, sums);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void half_warps_kernel(int* top, int* sums, int across) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  top[i] = i;
  __syncwarp(threadIdx.x % 32 < 16 ? 0x0000ffffu : 0xffff0000u);
  sums[i] = top[i ^ (across ? 16 : 8)];
}
extern "C" int races_half_warps(int* top, int* sums, int64_t count, int across, void* stream) {
  half_warps_kernel<<<static_cast<int>(count / 64), 64, 0, CAFFE_STREAM(stream)>>>(top, sums, across);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void last_block_kernel(const float* bottom, float* parts, int* counter, float* top, int fenced) {
  __shared__ bool last;
  atomicAdd(parts + blockIdx.x, bottom[blockIdx.x * blockDim.x + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    parts[blockIdx.x] *= 2;
    if (fenced) __threadfence();
    last = atomicAdd(counter, 1) == static_cast<int>(gridDim.x) - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 7) {
    float sum = 0;
    for (unsigned int block = 0; block < gridDim.x; ++block) sum += parts[block];
    top[0] = sum;
  }
}
extern "C" int races_last_block(const float* bottom, float* parts, int* counter, float* top, int64_t count,
                                int fenced, void* stream) {
  last_block_kernel<<<static_cast<int>(count / 64), 64, 0, CAFFE_STREAM(stream)>>>(bottom, parts, counter,
                                                                                   top, fenced);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void relay_kernel(int* value, int* flags, int* top, int fenced) {
  if (blockIdx.x == 0) {
    value[0] = 5;
    __threadfence();
    atomicAdd(flags, 1);
  } else if (blockIdx.x == 1) {
    atomicAdd(flags, 1);
    if (fenced) __threadfence();
    atomicAdd(flags + 1, 1);
  } else {
    atomicAdd(flags + 1, 1);
    top[0] = value[0];
  }
}
extern "C" int races_relay(int* value, int* flags, int* top, int fenced, void* stream) {
  relay_kernel<<<3, 1, 0, CAFFE_STREAM(stream)>>>(value, flags, top, fenced);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void bytes_kernel(const int64_t n, int8_t* top) {
  CUDA_KERNEL_LOOP(i, n) {
    top[i] = static_cast<int8_t>(i);
    top[i] += 1;
  }
}
extern "C" int races_bytes(int8_t* top, int64_t count, void* stream) {
  bytes_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, top);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void in_place_kernel(const int64_t n, const float* bottom, float* top) {
  CUDA_KERNEL_LOOP(i, n) {
    top[i] = top[i] * bottom[0];
  }
}
extern "C" int races_in_place(const float* bottom, float* top, int64_t count, void* stream) {
  in_place_kernel<<<CAFFE_GET_BLOCKS(count), CAFFE_CUDA_NUM_THREADS, 0, CAFFE_STREAM(stream)>>>(count, bottom,
                                                                                                top);
  return CAFFE_LAUNCH_STATUS();
}

__global__ void short_warp_kernel(int* top) {
  const int lane = threadIdx.x;
  top[lane] += __shfl_down_sync(0xffffffffu, lane, 16);
  top[lane] += __shfl_sync(0xffffffffu, lane, 3);
}
extern "C" int races_short_warp(int* top, int threads, void* stream) {
  short_warp_kernel<<<1, threads, 0, CAFFE_STREAM(stream)>>>(top);
  return CAFFE_LAUNCH_STATUS();
}

#include <string>
// Instrumented here, as kernels are; of the standard library's functions in it the linker keeps one copy, for the
// finder's own use as well.
__attribute__((used)) static std::string text_of(const char* text) { return text; }
