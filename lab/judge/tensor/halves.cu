#include "tensor.h"
__global__ void product(const half* a, const half* b, float* c, int n) {
  __shared__ __align__(16) half as[2][32][40], bs[2][32][40];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = threadIdx.x / 4,
            part = threadIdx.x % 4 * 8;
  a += blockIdx.y * 32 * n, b += blockIdx.x * 32 * n;
  float sum[2][4] = {};
  copy16(&as[0][row][part], a + row * n + part), copy16(&bs[0][row][part], b + row * n + part);
  commit();
  for (int k = 0, stage = 0; k < n; k += 32, stage = 1 - stage) {
    if (k + 32 < n) {
      copy16(&as[1 - stage][row][part], a + row * n + k + 32 + part);
      copy16(&bs[1 - stage][row][part], b + row * n + k + 32 + part);
    }
    commit();
    wait<1>();
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 16) {
      uint32_t fa[4], fb[2];
      load4(fa, &as[stage][warp / 2 * 16 + lane % 16][kk + lane / 16 * 8]);
      for (int tile = 0; tile < 2; ++tile) {
        load2(fb, &bs[stage][warp % 2 * 16 + tile * 8 + lane % 8][kk + lane % 16 / 8 * 8]);
        mma_halves(sum[tile], fa, fb);
      }
    }
    __syncthreads();
  }
  for (int tile = 0; tile < 2; ++tile)
    for (int i = 0; i < 4; ++i)
      c[(blockIdx.y * 32 + warp / 2 * 16 + lane / 4 + i / 2 * 8) * n + blockIdx.x * 32 + warp % 2 * 16 +
        tile * 8 + lane % 4 * 2 + i % 2] = sum[tile][i];
}
int main() {
  const int n = 96;
  half *a = given<half>(n * n), *b = given<half>(n * n, 2);
  float* c;
  cudaMalloc(&c, n * n * sizeof(float));
  product<<<dim3(3, 3), 128>>>(a, b, c, n);
  shown(c, n * n);
}
