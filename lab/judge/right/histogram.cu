#include "program.h"
__global__ void histogram(const int* x, int n, int* all, int bins) {
  extern __shared__ int own[];
  for (int i = threadIdx.x; i < bins; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    atomicAdd(&own[x[i] + 8], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < bins; i += blockDim.x) atomicAdd(&all[i], own[i]);
}
int main() {
  const int n = 1000, bins = 16;
  int *x = given<int>(n), *y;
  cudaMalloc(&y, bins * sizeof(int));
  cudaMemset(y, 0, bins * sizeof(int));
  histogram<<<4, 64, bins * sizeof(int)>>>(x, n, y, bins);
  shown(y, bins);
}
