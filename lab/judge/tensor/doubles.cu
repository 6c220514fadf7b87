#include "tensor.h"
__global__ void product(const double* a, const double* b, double* c, int n) {
  __shared__ double as[16][9], bs[16][9];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  double sum[2][2] = {};
  for (int k = 0; k < n; k += 8) {
    for (int i = threadIdx.x; i < 128; i += 64) {
      as[i / 8][i % 8] = a[(blockIdx.y * 16 + i / 8) * n + k + i % 8];
      bs[i / 8][i % 8] = b[(blockIdx.x * 16 + i / 8) * n + k + i % 8];
    }
    __syncthreads();
    for (int kk = 0; kk < 8; kk += 4)
      for (int tile = 0; tile < 2; ++tile)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(sum[tile][0]), "+d"(sum[tile][1])
                     : "d"(as[warp * 8 + lane / 4][kk + lane % 4]),
                       "d"(bs[tile * 8 + lane / 4][kk + lane % 4]));
    __syncthreads();
  }
  for (int tile = 0; tile < 2; ++tile)
    for (int i = 0; i < 2; ++i)
      c[(blockIdx.y * 16 + warp * 8 + lane / 4) * n + blockIdx.x * 16 + tile * 8 + lane % 4 * 2 + i] =
          sum[tile][i];
}
int main() {
  const int n = 32;
  double *a = given<double>(n * n), *b = given<double>(n * n, 2), *c;
  cudaMalloc(&c, n * n * sizeof(double));
  product<<<dim3(2, 2), 64>>>(a, b, c, n);
  shown(c, n * n);
}
