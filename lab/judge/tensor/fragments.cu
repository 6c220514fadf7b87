#include <mma.h>

#include "tensor.h"
using namespace nvcuda::wmma;
__global__ void product(const half* a, const half* b, float* c, int n) {
  __shared__ __align__(32) half as[32][40], bs[16][40];
  __shared__ __align__(32) float out[2][16][20];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  fragment<accumulator, 16, 16, 16, float> sum;
  fill_fragment(sum, 0.f);
  for (int k = 0; k < n; k += 32) {
    for (int i = threadIdx.x; i < 128; i += 64)
      copy16(&as[i / 4][i % 4 * 8], a + (blockIdx.y * 32 + i / 4) * n + k + i % 4 * 8);
    copy16(&bs[threadIdx.x / 4][threadIdx.x % 4 * 8],
           b + (blockIdx.x * 16 + threadIdx.x / 4) * n + k + threadIdx.x % 4 * 8);
    commit();
    wait<0>();
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 16) {
      fragment<matrix_a, 16, 16, 16, half, row_major> fa;
      fragment<matrix_b, 16, 16, 16, half, col_major> fb;
      load_matrix_sync(fa, &as[warp * 16][kk], 40);
      load_matrix_sync(fb, &bs[0][kk], 40);
      mma_sync(sum, fa, fb, sum);
    }
    __syncthreads();
  }
  store_matrix_sync(&out[warp][0][0], sum, 20, mem_row_major);
  __syncwarp();
  for (int i = 0; i < 8; ++i)
    c[(blockIdx.y * 32 + warp * 16 + i * 2 + lane / 16) * n + blockIdx.x * 16 + lane % 16] =
        out[warp][i * 2 + lane / 16][lane % 16];
}
int main() {
  const int n = 64;
  half *a = given<half>(n * n), *b = given<half>(n * n, 2);
  float* c;
  cudaMalloc(&c, n * n * sizeof(float));
  product<<<dim3(4, 2), 64>>>(a, b, c, n);
  shown(c, n * n);
}
