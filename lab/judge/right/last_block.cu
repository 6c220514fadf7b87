#include "program.h"
__global__ void sum(const int* x, int n, volatile int* parts, int* counter, int* out) {
  __shared__ int s[64];
  __shared__ bool is_last;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int k = 32; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) {
    parts[blockIdx.x] = s[0];
    __threadfence();
    is_last = atomicAdd(counter, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && t == 0) {
    int all = 0;
    for (int b = 0; b < gridDim.x; ++b) all += parts[b];
    *out = all;
  }
}
int main() {
  const int n = 500, blocks = (n + 63) / 64;
  int *x = given<int>(n), *parts, *counter, *out;
  cudaMalloc(&parts, blocks * sizeof(int));
  cudaMalloc(&counter, sizeof(int));
  cudaMalloc(&out, sizeof(int));
  cudaMemset(counter, 0, sizeof(int));
  sum<<<blocks, 64>>>(x, n, parts, counter, out);
  shown(out, 1);
}
