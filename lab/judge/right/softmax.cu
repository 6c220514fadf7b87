#include "program.h"
__global__ void softmax(const float* x, float* y, int columns) {
  __shared__ float s[64];
  int row = blockIdx.x, t = threadIdx.x;
  float m = -1e30f;
  for (int c = t; c < columns; c += blockDim.x) m = fmaxf(m, x[row * columns + c]);
  s[t] = m;
  __syncthreads();
  for (int o = 32; o > 0; o >>= 1) {
    if (t < o) s[t] = fmaxf(s[t], s[t + o]);
    __syncthreads();
  }
  m = s[0];
  __syncthreads();
  float sum = 0;
  for (int c = t; c < columns; c += blockDim.x) sum += expf(x[row * columns + c] - m);
  s[t] = sum;
  __syncthreads();
  for (int o = 32; o > 0; o >>= 1) {
    if (t < o) s[t] += s[t + o];
    __syncthreads();
  }
  for (int c = t; c < columns; c += blockDim.x) y[row * columns + c] = expf(x[row * columns + c] - m) / s[0];
}
int main() {
  const int rows = 5, columns = 150;
  float *x = given<float>(rows * columns), *y;
  cudaMalloc(&y, rows * columns * sizeof(float));
  softmax<<<rows, 64>>>(x, y, columns);
  shown(y, rows * columns);
}
