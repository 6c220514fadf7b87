#include "tensor.h"
__global__ void product(const float* a, const float* b, float* c, int n) {
  __shared__ __align__(16) float as[32][20], bs[16][20];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum[2][4] = {};
  for (int k = 0; k < n; k += 16) {
    for (int i = threadIdx.x; i < 128; i += 64)
      copy16(&as[i / 4][i % 4 * 4], a + (blockIdx.y * 32 + i / 4) * n + k + i % 4 * 4);
    copy16(&bs[threadIdx.x / 4][threadIdx.x % 4 * 4],
           b + (blockIdx.x * 16 + threadIdx.x / 4) * n + k + threadIdx.x % 4 * 4);
    commit();
    wait<0>();
    __syncthreads();
    for (int kk = 0; kk < 16; kk += 8) {
      uint32_t fa[4], fb[2];
      for (int r = 0; r < 4; ++r)
        fa[r] = __float_as_uint(as[warp * 16 + lane / 4 + r % 2 * 8][kk + lane % 4 + r / 2 * 4]);
      for (int tile = 0; tile < 2; ++tile) {
        for (int r = 0; r < 2; ++r) fb[r] = __float_as_uint(bs[tile * 8 + lane / 4][kk + lane % 4 + r * 4]);
        mma_singles(sum[tile], fa, fb);
      }
    }
    __syncthreads();
  }
  for (int tile = 0; tile < 2; ++tile)
    for (int i = 0; i < 4; ++i)
      c[(blockIdx.y * 32 + warp * 16 + lane / 4 + i / 2 * 8) * n + blockIdx.x * 16 + tile * 8 + lane % 4 * 2 +
        i % 2] = sum[tile][i];
}
int main() {
  const int n = 64;
  float *a = given<float>(n * n), *b = given<float>(n * n, 2), *c;
  cudaMalloc(&c, n * n * sizeof(float));
  product<<<dim3(4, 2), 64>>>(a, b, c, n);
  shown(c, n * n);
}
