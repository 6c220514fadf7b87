#include "program.h"
__global__ void softmax(const float* x, float* y, float* top, int columns) {
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
  if (t == 0) top[row] = m;
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
  const int rows = 40, columns = 70;
  float *x = given<float>(rows * columns), *y, *top;
  cudaMalloc(&y, rows * columns * sizeof(float));
  cudaMalloc(&top, rows * sizeof(float));
  softmax<<<rows, 64>>>(x, y, top, columns);
  shown(y, rows * columns);
  shown(top, rows);
}
