#include <cuda_runtime.h>
#include <curand.h>
#include <stdio.h>
#include <stdlib.h>

#include <vector>

#include "old_kernels.h"

__global__ void round_kernel(const int n, const float* bottom, float* top) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    top[i] = bottom[i] >= THRESHOLD ? 1 : 0;
}

__global__ void count_kernel(const float* matrix, int rows, int columns, int row_step, int step, int* counts,
                             long* places) {
  const int row = blockIdx.x;
  if (threadIdx.x == 0) places[row] = row;
  for (int j = threadIdx.x; j < columns; j += blockDim.x)
    if (matrix[row * row_step + j * step] > 0) atomicAdd(counts + row, 1);
}

void round_launcher(const float* bottom, float* top, int n, cudaStream_t stream) {
  round_kernel<<<(n + 511) / 512, 512, 0, stream>>>(n, bottom, top);
}

void count_launcher(const float* matrix, int rows, int columns, int row_step, int step, int* counts,
                    long* places, cudaStream_t stream) {
  count_kernel<<<rows, 32, 0, stream>>>(matrix, rows, columns, row_step, step, counts, places);
}

void launcher_that_exits() {
  std::vector<float> held(3);
  if (held.size() == 3) exit(-1);
}
