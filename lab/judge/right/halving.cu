#include "program.h"
__global__ void reduce(const float* x, float* out, int n) {
  __shared__ float s[128];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
int main() {
  const int n = 1000, blocks = (n + 127) / 128;
  float *x = given<float>(n), *y;
  cudaMalloc(&y, blocks * sizeof(float));
  reduce<<<blocks, 128>>>(x, y, n);
  shown(y, blocks);
}
