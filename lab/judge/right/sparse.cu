#include "program.h"
__global__ void starts_of(const int* x, int* lengths, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) lengths[i] = x[i] < 0 ? 1 : x[i] * 7;
}
__global__ void multiply(const int* lengths, const float* values, const float* x, float* y, int rows,
                         int width) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  float sum = 0;
  if (row < rows)
    for (int i = lane; i < lengths[row]; i += 32) sum += values[row * width + i] * x[i];
  for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(0xffffffff, sum, o);
  if (row < rows && lane == 0) y[row] = sum;
}
int main() {
  const int rows = 21, width = 49;
  int *x = given<int>(rows), *lengths;
  float *values = given<float>(rows * width, 2), *v = given<float>(width, 3), *y;
  cudaMalloc(&lengths, rows * sizeof(int));
  cudaMalloc(&y, rows * sizeof(float));
  starts_of<<<3, 8>>>(x, lengths, rows);
  multiply<<<6, 128>>>(lengths, values, v, y, rows, width);
  shown(y, rows);
}
