#include "tensor.h"
typedef __nv_bfloat16 brain;
// One warp makes 16 x 16, with three stages.
__global__ void product(const brain* a, const brain* b, float* c, int n) {
  extern __shared__ __align__(16) brain all[];
  brain(*as)[16][24] = reinterpret_cast<brain(*)[16][24]>(all);
  brain(*bs)[16][24] = as + 3;
  const int lane = threadIdx.x, row = threadIdx.x / 2, part = threadIdx.x % 2 * 8;
  a += blockIdx.y * 16 * n, b += blockIdx.x * 16 * n;
  float sum[2][4] = {};
  for (int k = 0; k < 2; ++k) {
    copy16(&as[k][row][part], a + row * n + k * 16 + part),
        copy16(&bs[k][row][part], b + row * n + k * 16 + part);
    commit();
  }
  for (int k = 0; k < n / 16; ++k) {
    const int stage = k % 3, next = (k + 2) % 3;
    wait<1>();
    __syncthreads();
    if (k + 2 < n / 16) {
      copy16(&as[next][row][part], a + row * n + (k + 2) * 16 + part);
      copy16(&bs[next][row][part], b + row * n + (k + 2) * 16 + part);
    }
    commit();
    uint32_t fa[4], fb[2];
    load4(fa, &as[stage][lane % 16][lane / 16 * 8]);
    for (int tile = 0; tile < 2; ++tile) {
      load2(fb, &bs[stage][tile * 8 + lane % 8][lane % 16 / 8 * 8]);
      mma_brains(sum[tile], fa, fb);
    }
  }
  for (int tile = 0; tile < 2; ++tile)
    for (int i = 0; i < 4; ++i)
      c[(blockIdx.y * 16 + lane / 4 + i / 2 * 8) * n + blockIdx.x * 16 + tile * 8 + lane % 4 * 2 + i % 2] =
          sum[tile][i];
}
int main() {
  const int n = 64;
  brain *a = given<brain>(n * n), *b = given<brain>(n * n, 2);
  float* c;
  cudaMalloc(&c, n * n * sizeof(float));
  product<<<dim3(4, 4), 32, 6 * 16 * 24 * sizeof(brain)>>>(a, b, c, n);
  shown(c, n * n);
}
