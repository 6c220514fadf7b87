#include "program.h"
__global__ void scan(const int* x, int* y, int n) {
  __shared__ int ends[4];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int v = t < n ? x[t] : 0;
  for (int o = 1; o < 32; o *= 2) {
    int below = __shfl_up_sync(0xffffffff, v, o);
    if (lane >= o) v += below;
  }
  if (lane == 31) ends[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int sum = lane < 4 ? ends[lane] : 0;
    for (int o = 1; o < 32; o *= 2) {
      int below = __shfl_up_sync(0xffffffff, sum, o);
      if (lane >= o) sum += below;
    }
    if (lane < 4) ends[lane] = sum;
  }
  __syncthreads();
  if (t < n) y[t] = v + (warp > 0 ? ends[warp - 1] : 0);
}
int main() {
  const int n = 110;
  int *x = given<int>(n), *y;
  cudaMalloc(&y, n * sizeof(int));
  scan<<<1, 128>>>(x, y, n);
  shown(y, n);
}
