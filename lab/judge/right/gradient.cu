#include "program.h"
__global__ void gradient(const int* words, const float* above, float* table, int n, int width) {
  int i = blockIdx.x, c = threadIdx.x;
  if (c < width) atomicAdd(&table[(words[i] + 8) * width + c], above[i * width + c]);
}
__global__ void greatest(const int* words, int n, int* most, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicMax(most, words[i]);
    atomicInc((unsigned*)count, 1000);
  }
}
int main() {
  const int n = 60, width = 40;
  int *words = given<int>(n), *out;
  float *above = given<float>(n * width, 2), *table;
  cudaMalloc(&table, 16 * width * sizeof(float));
  cudaMalloc(&out, 2 * sizeof(int));
  cudaMemset(table, 0, 16 * width * sizeof(float));
  cudaMemset(out, 0, 2 * sizeof(int));
  gradient<<<n, 64>>>(words, above, table, n, width);
  greatest<<<2, 32>>>(words, n, out, out + 1);
  shown(table, 16 * width);
  shown(out, 2);
}
