#include "program.h"
__global__ void scan_blocks(const int* x, int* y, int* ends, int n) {
  __shared__ int s[64];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int o = 1; o < 64; o *= 2) {
    int below = t >= o ? s[t - o] : 0;
    __syncthreads();
    s[t] += below;
    __syncthreads();
  }
  if (i < n) y[i] = s[t];
  if (t == 63) ends[blockIdx.x] = s[t];
}
__global__ void add(int* y, const int* ends, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = 0;
  for (int b = 0; b < blockIdx.x; ++b) sum += ends[b];
  if (i < n) y[i] += sum;
}
int main() {
  const int n = 300, blocks = (n + 63) / 64;
  int *x = given<int>(n), *y, *ends;
  cudaMalloc(&y, n * sizeof(int));
  cudaMalloc(&ends, blocks * sizeof(int));
  scan_blocks<<<blocks, 64>>>(x, y, ends, n);
  add<<<blocks, 64>>>(y, ends, n);
  shown(y, n);
}
