#include "program.h"
__global__ void positions(const int* x, int* y, int* count, int n) {
  __shared__ int starts[5];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  bool is_kept = t < n && x[t] > 0;
  unsigned votes = __ballot_sync(0xffffffff, is_kept);
  if (lane == 0) starts[warp + 1] = __popc(votes);
  if (t == 0) starts[0] = 0;
  __syncthreads();
  if (t == 0)
    for (int i = 1; i < 5; ++i) starts[i] += starts[i - 1];
  __syncthreads();
  if (is_kept) y[starts[warp] + __popc(votes & ((1u << lane) - 1))] = x[t];
  if (t == 0) *count = starts[4];
}
__global__ void broadcast(const int* x, int* y, int n) {
  int t = threadIdx.x;
  int first = __shfl_sync(0xffffffff, t < n ? x[t] : 0, 0);
  int next = __shfl_sync(0xffffffff, t < n ? x[t] : 0, (t + 1) % 32);
  if (t < n) y[t] = first * 10 + next;
}
int main() {
  const int n = 120;
  int *x = given<int>(n), *y, *z, *count;
  cudaMalloc(&y, n * sizeof(int));
  cudaMalloc(&z, n * sizeof(int));
  cudaMalloc(&count, sizeof(int));
  cudaMemset(y, 0, n * sizeof(int));
  positions<<<1, 128>>>(x, y, count, n);
  broadcast<<<1, 128>>>(x, z, n);
  shown(y, n);
  shown(z, n);
  shown(count, 1);
}
