#include "program.h"
__global__ void sort(int* x, int n) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = t < n ? x[t] * 1000 + t : 1 << 30;
  __syncthreads();
  for (int k = 2; k <= 128; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      int other = t ^ j;
      if (other > t && ((t & k) == 0) == (s[t] > s[other])) {
        int swapped = s[t];
        s[t] = s[other];
        s[other] = swapped;
      }
      __syncthreads();
    }
  if (t < n) x[t] = s[t];
}
int main() {
  const int n = 100;
  int* x = given<int>(n);
  sort<<<1, 128>>>(x, n);
  shown(x, n);
}
