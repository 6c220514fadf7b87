#include "caffe_cuda_macro.h"

__device__ int flat(uint3 at, dim3 size) { return (at.z * size.y + at.y) * size.x + at.x; }

__global__ void triples_kernel(int* top) {
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  int* own = top + 12 * (flat(blockIdx, gridDim) * threads + flat(threadIdx, blockDim));
  own[0] = threadIdx.x, own[1] = threadIdx.y, own[2] = threadIdx.z;
  own[3] = blockIdx.x, own[4] = blockIdx.y, own[5] = blockIdx.z;
  own[6] = blockDim.x, own[7] = blockDim.y, own[8] = blockDim.z;
  own[9] = gridDim.x, own[10] = gridDim.y, own[11] = gridDim.z;
}

extern "C" int indexing_triples(int* top, int gx, int gy, int gz, int bx, int by, int bz, void* stream) {
  triples_kernel<<<dim3(gx, gy, gz), dim3(bx, by, bz), 0, CAFFE_STREAM(stream)>>>(top);
  return CAFFE_LAUNCH_STATUS();
}
