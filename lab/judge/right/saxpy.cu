#include "program.h"
__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
int main() {
  const int n = 1000;
  float *x = given<float>(n), *y = given<float>(n, 2);
  saxpy<<<(n + 255) / 256, 256>>>(n, 3, x, y);
  shown(y, n);
}
