#include "program.h"
__global__ void step(const int* from, int count, int* seen, int* to, int* more, int n, int level) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  for (int d = 1; d < 5; ++d) {
    int next = (from[i] * 3 + d) % n;
    if (atomicCAS(&seen[next], 0, level) == 0) to[atomicAdd(more, 1)] = next;
  }
}
__global__ void mark(const int* seen, int* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && seen[i] > 0) atomicAdd(&counts[i % 5], 1);
}
int main() {
  const int n = 400;
  int *queues[2], *seen, *counts, *more, count = 1;
  cudaMalloc(&queues[0], n * sizeof(int));
  cudaMalloc(&queues[1], n * sizeof(int));
  cudaMalloc(&seen, n * sizeof(int));
  cudaMalloc(&counts, 5 * sizeof(int));
  cudaMalloc(&more, sizeof(int));
  cudaMemset(counts, 0, 5 * sizeof(int));
  for (int first = 0; first < 2; ++first) {
    cudaMemset(queues[first], 0, sizeof(int));
    cudaMemset(seen, 0, n * sizeof(int));
    count = 1;
    for (int now = first, level = 1; count > 0; now = 1 - now, ++level) {
      cudaMemset(more, 0, sizeof(int));
      step<<<(count + 63) / 64, 64>>>(queues[now], count, seen, queues[1 - now], more, n, level);
      cudaMemcpy(&count, more, sizeof(int), cudaMemcpyDeviceToHost);
    }
  }
  mark<<<(n + 63) / 64, 64>>>(seen, counts, n);
  shown(counts, 5);
  shown(seen, n);
}
