#include "program.h"
__global__ void compact(const int* x, int n, int* kept, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > -4) {
    int at = atomicAdd(count, 1);
    kept[at] = x[i];
  }
}
__global__ void total(const int* kept, const int* count, int* sum) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < *count) atomicAdd(sum, kept[i]);
}
int main() {
  const int n = 700;
  int *x = given<int>(n), *kept, *counts;
  cudaMalloc(&kept, n * sizeof(int));
  cudaMalloc(&counts, 2 * sizeof(int));
  cudaMemset(counts, 0, 2 * sizeof(int));
  compact<<<(n + 127) / 128, 128>>>(x, n, kept, counts);
  total<<<(n + 127) / 128, 128>>>(kept, counts, counts + 1);
  shown(counts, 2);
}
