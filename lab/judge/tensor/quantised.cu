#include "tensor.h"
// Weights of 4 bits, two columns of which are made halves by lop3: (x & 15 | 0x6400) - 1032.
__global__ void product(const half* a, const uint32_t* packed, float* c, int n) {
  __shared__ __align__(16) half as[16][24], bs[8][24];
  const int lane = threadIdx.x, row = threadIdx.x / 2, part = threadIdx.x % 2 * 8;
  float sum[4] = {};
  for (int k = 0; k < n; k += 16) {
    copy16(&as[row][part], a + row * n + k + part);
    commit();
    if (lane < 16) {
      const uint32_t word = packed[(blockIdx.x * 8 + lane / 2) * n / 8 + k / 8 + lane % 2];
      for (int i = 0; i < 4; ++i) {
        uint32_t both;
        asm("lop3.b32 %0, %1, 0x000f000f, 0x64006400, 0xea;" : "=r"(both) : "r"(word >> i * 4));
        const half2 two = __hsub2(reinterpret_cast<const half2&>(both), __half2half2(__float2half(1032.f)));
        bs[lane / 2][lane % 2 * 8 + i] = __low2half(two),
                                    bs[lane / 2][lane % 2 * 8 + i + 4] = __high2half(two);
      }
    }
    wait<0>();
    __syncwarp();
    uint32_t fa[4], fb[2];
    load4(fa, &as[lane % 16][lane / 16 * 8]);
    load2(fb, &bs[lane % 8][lane % 16 / 8 * 8]);
    mma_halves(sum, fa, fb);
    __syncwarp();
  }
  for (int i = 0; i < 4; ++i) c[(lane / 4 + i / 2 * 8) * 32 + blockIdx.x * 8 + lane % 4 * 2 + i % 2] = sum[i];
}
int main() {
  const int n = 64;
  half* a = given<half>(16 * n);
  std::vector<uint32_t> host(32 * n / 8);
  for (unsigned i = 0; i < host.size(); ++i) host[i] = i * 2654435761u;
  uint32_t* packed;
  cudaMalloc(&packed, host.size() * 4);
  cudaMemcpy(packed, host.data(), host.size() * 4, cudaMemcpyHostToDevice);
  float* c;
  cudaMalloc(&c, 16 * 32 * sizeof(float));
  product<<<4, 32>>>(a, packed, c, n);
  shown(c, 16 * 32);
}
