#include "program.h"
__global__ void scan(float* out, const float* in, int n) {
  extern __shared__ float temp[];
  int t = threadIdx.x, now = 0, before = 1;
  temp[t] = t > 0 ? in[t - 1] : 0;
  __syncthreads();
  for (int o = 1; o < n; o *= 2) {
    now = 1 - now;
    before = 1 - now;
    if (t >= o)
      temp[now * n + t] = temp[before * n + t] + temp[before * n + t - o];
    else
      temp[now * n + t] = temp[before * n + t];
    __syncthreads();
  }
  out[t] = temp[now * n + t];
}
int main() {
  const int n = 200;
  float *x = given<float>(n), *y;
  cudaMalloc(&y, n * sizeof(float));
  scan<<<1, n, 2 * n * sizeof(float)>>>(y, x, n);
  shown(y, n);
}
