#include "program.h"
__global__ void rotate(const float* x, float* y, int n) {
  __shared__ float s[4][32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = blockIdx.x * blockDim.x + threadIdx.x;
  s[warp][lane] = i < n ? x[i] : 0;
  __syncwarp();
  float other = s[warp][31 - lane];
  __syncwarp();
  s[warp][lane] = other * 2;
  __syncwarp();
  if (i < n) y[i] = s[warp][(lane + 1) % 32] + other;
}
__global__ void halve(const float* x, float* y) {
  __shared__ float s[64];
  int t = threadIdx.x, lane = t % 32;
  s[t] = x[t];
  __syncwarp();
  for (int o = 16; o > 0; o /= 2) {
    if (lane < o) s[t] += s[t + o];
    __syncwarp();
  }
  if (lane == 0) y[t / 32] = s[t];
}
int main() {
  const int n = 300;
  float *x = given<float>(n), *y, *z;
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&z, 2 * sizeof(float));
  rotate<<<(n + 127) / 128, 128>>>(x, y, n);
  halve<<<1, 64>>>(x, z);
  shown(y, n);
  shown(z, 2);
}
