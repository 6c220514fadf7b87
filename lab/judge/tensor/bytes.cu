#include "tensor.h"
__global__ void product(const int8_t* a, const int8_t* b, int* c, int n) {
  __shared__ __align__(16) int8_t as[2][32][48], bs[2][16][48];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = threadIdx.x / 2,
            part = threadIdx.x % 2 * 16;
  a += blockIdx.y * 32 * n, b += blockIdx.x * 16 * n;
  int sum[2][4] = {};
  for (int k = 0, stage = 0; k <= n; k += 32, stage = 1 - stage) {
    if (k < n) {
      copy16(&as[stage][row][part], a + row * n + k + part);
      if (row < 16) copy16(&bs[stage][row][part], b + row * n + k + part);
      commit();
    }
    if (k == 0) continue;
    if (k < n)
      wait<1>();
    else
      wait<0>();
    __syncthreads();
    uint32_t fa[4], fb[2];
    load4(fa, &as[1 - stage][warp * 16 + lane % 16][lane / 16 * 16]);
    for (int tile = 0; tile < 2; ++tile) {
      load2(fb, &bs[1 - stage][tile * 8 + lane % 8][lane % 16 / 8 * 16]);
      mma_bytes(sum[tile], fa, fb);
    }
    __syncthreads();
  }
  for (int tile = 0; tile < 2; ++tile)
    for (int i = 0; i < 4; ++i)
      c[(blockIdx.y * 32 + warp * 16 + lane / 4 + i / 2 * 8) * n + blockIdx.x * 16 + tile * 8 + lane % 4 * 2 +
        i % 2] = sum[tile][i];
}
int main() {
  const int n = 96;
  int8_t *a = given<int8_t>(n * n), *b = given<int8_t>(n * n, 2);
  int* c;
  cudaMalloc(&c, n * n * sizeof(int));
  product<<<dim3(6, 3), 64>>>(a, b, c, n);
  shown(c, n * n);
}
