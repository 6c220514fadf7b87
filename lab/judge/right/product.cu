#include "program.h"
#define B 8
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float s[B][B], t[B][B];
  int row = blockIdx.y * B + threadIdx.y, col = blockIdx.x * B + threadIdx.x;
  float sum = 0;
  for (int at = 0; at < k; at += B) {
    s[threadIdx.y][threadIdx.x] = row < m ? a[row * k + at + threadIdx.x] : 0;
    t[threadIdx.y][threadIdx.x] = col < n ? b[(at + threadIdx.y) * n + col] : 0;
    __syncthreads();
    for (int q = 0; q < B; ++q) sum += s[threadIdx.y][q] * t[q][threadIdx.x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
int main() {
  const int m = 19, n = 27, k = 24;
  float *a = given<float>(m * k), *b = given<float>(k * n, 2), *c;
  cudaMalloc(&c, m * n * sizeof(float));
  product<<<dim3((n + B - 1) / B, (m + B - 1) / B), dim3(B, B)>>>(a, b, c, m, n, k);
  shown(c, m * n);
}
