#include "tensor.h"
// out = max(Q K^T, 0) V, of 16 queries a warp: the scores stay in registers.
__global__ void attend(const half* q, const half* k, const half* v, float* out, int n) {
  __shared__ __align__(16) half qs[16][24], ks[2][16][24], vs[2][16][24];
  const int lane = threadIdx.x, row = threadIdx.x / 2, part = threadIdx.x % 2 * 8;
  copy16(&qs[row][part], q + (blockIdx.x * 16 + row) * 16 + part);
  copy16(&ks[0][row][part], k + row * 16 + part), copy16(&vs[0][row][part], v + row * 16 + part);
  commit();
  float sum[2][4] = {};
  for (int at = 0, stage = 0; at < n; at += 16, stage = 1 - stage) {
    if (at + 16 < n) {
      copy16(&ks[1 - stage][row][part], k + (at + 16 + row) * 16 + part);
      copy16(&vs[1 - stage][row][part], v + (at + 16 + row) * 16 + part);
    }
    commit();
    wait<1>();
    __syncwarp();
    uint32_t fq[4], fk[2], fv[2], fs[4];
    load4(fq, &qs[lane % 16][lane / 16 * 8]);
    for (int tile = 0; tile < 2; ++tile) {
      float score[4] = {};
      load2(fk, &ks[stage][tile * 8 + lane % 8][lane % 16 / 8 * 8]);
      mma_halves(score, fq, fk);
      for (int i = 0; i < 2; ++i) {
        const half2 both =
            __floats2half2_rn(fminf(fmaxf(score[i * 2], 0.f), 9.f), fminf(fmaxf(score[i * 2 + 1], 0.f), 9.f));
        fs[tile * 2 + i] = reinterpret_cast<const uint32_t&>(both);
      }
    }
    for (int tile = 0; tile < 2; ++tile) {
      load2_turned(fv, &vs[stage][lane % 16][tile * 8]);
      mma_halves(sum[tile], fs, fv);
    }
    __syncwarp();
  }
  for (int tile = 0; tile < 2; ++tile)
    for (int i = 0; i < 4; ++i)
      out[(blockIdx.x * 16 + lane / 4 + i / 2 * 8) * 16 + tile * 8 + lane % 4 * 2 + i % 2] = sum[tile][i];
}
int main() {
  const int n = 64;
  half *q = given<half>(n * 16), *k = given<half>(n * 16, 2), *v = given<half>(n * 16, 3);
  float* out;
  cudaMalloc(&out, n * 16 * sizeof(float));
  attend<<<4, 32>>>(q, k, v, out, n);
  shown(out, n * 16);
}
