#include "program.h"
__global__ void relu(int n, const float* x, float* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    y[i] = x[i] > 0 ? x[i] : 0;
}
int main() {
  const int n = 1000;
  float *x = given<float>(n), *y;
  cudaMalloc(&y, n * sizeof(float));
  relu<<<3, 96>>>(n, x, y);
  shown(y, n);
}
