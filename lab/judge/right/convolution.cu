#include "program.h"
#define T 8
__constant__ float weights[9];
__global__ void convolve(const float* x, float* y, int w, int h) {
  __shared__ float s[T + 2][T + 2];
  int left = blockIdx.x * T - 1, top = blockIdx.y * T - 1;
  for (int i = threadIdx.y * T + threadIdx.x; i < (T + 2) * (T + 2); i += T * T) {
    int a = left + i % (T + 2), b = top + i / (T + 2);
    s[i / (T + 2)][i % (T + 2)] = a >= 0 && a < w && b >= 0 && b < h ? x[b * w + a] : 0;
  }
  __syncthreads();
  int a = blockIdx.x * T + threadIdx.x, b = blockIdx.y * T + threadIdx.y;
  float sum = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) sum += weights[i * 3 + j] * s[threadIdx.y + i][threadIdx.x + j];
  if (a < w && b < h) y[b * w + a] = sum;
}
int main() {
  const int w = 30, h = 21;
  const float kernel[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  float *x = given<float>(w * h), *y;
  cudaMalloc(&y, w * h * sizeof(float));
  cudaMemcpyToSymbol(weights, kernel, sizeof(kernel));
  convolve<<<dim3((w + T - 1) / T, (h + T - 1) / T), dim3(T, T)>>>(x, y, w, h);
  shown(y, w * h);
}
