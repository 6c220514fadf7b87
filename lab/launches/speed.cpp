// The kernels of speed.cu as a person writes them in C++ for one processor.
#include <math.h>
#include <string.h>

extern "C" {
void warp_sums(const float* __restrict x, float* __restrict y, int n) {
  for (int w = 0; w < n / 32; ++w) {
    float s = 0;
    for (int k = 0; k < 32; ++k) s += x[w * 32 + k];
    y[w] = s;
  }
}
void block_sums(const float* __restrict x, float* __restrict y, int n) {
  for (int w = 0; w < n / 256; ++w) {
    float s = 0;
    for (int k = 0; k < 256; ++k) s += x[w * 256 + k];
    y[w] = s;
  }
}
void norm(const float* __restrict x, float* __restrict y, int n) {
  const int d = 1024;
  for (int row = 0; row < n / d; ++row) {
    const float* p = x + row * d;
    float* q = y + row * d;
    float s = 0, v = 0;
    for (int i = 0; i < d; ++i) s += p[i];
    s /= d;
    for (int i = 0; i < d; ++i) v += (p[i] - s) * (p[i] - s);
    v = 1 / sqrtf(v / d + 1e-5f);
    for (int i = 0; i < d; ++i) q[i] = (p[i] - s) * v;
  }
}
void softmax(const float* __restrict x, float* __restrict y, int n) {
  const int d = 1024;
  for (int row = 0; row < n / d; ++row) {
    const float* p = x + row * d;
    float* q = y + row * d;
    float most = p[0], sum = 0;
    for (int i = 1; i < d; ++i) most = p[i] > most ? p[i] : most;
    for (int i = 0; i < d; ++i) sum += q[i] = expf(p[i] - most);
    for (int i = 0; i < d; ++i) q[i] /= sum;
  }
}
// The keys of a tile are turned, so that the scores of 16 keys are computed at once.
void attention(const float* __restrict x, float* __restrict y, int n) {
  const int rows = n / (8 * 64), wide = 64;
  static float turned[64][32];
  for (int head = 0; head < 8; ++head) {
    const float *q = x + head * rows * wide, *k = x + (8 + head) * rows * wide,
                *v = x + (16 + head) * rows * wide;
    float* to = y + head * rows * wide;
    float most[4096], sum[4096];
    for (int r = 0; r < rows; ++r) most[r] = -INFINITY, sum[r] = 0;
    memset(to, 0, sizeof(float) * rows * wide);
    for (int tile = 0; tile < rows; tile += 32) {
      for (int j = 0; j < 32; ++j)
        for (int c = 0; c < wide; ++c) turned[c][j] = k[(tile + j) * wide + c];
      for (int r = 0; r < rows; ++r) {
        float score[32] = {}, next = most[r];
        for (int c = 0; c < wide; ++c)
          for (int j = 0; j < 32; ++j) score[j] += q[r * wide + c] * turned[c][j];
        for (int j = 0; j < 32; ++j) next = fmaxf(next, score[j] * 0.125f);
        const float factor = expf(most[r] - next);
        float row[64];
        for (int c = 0; c < wide; ++c) row[c] = to[r * wide + c] * factor;
        sum[r] *= factor;
        for (int j = 0; j < 32; ++j) {
          const float weight = expf(score[j] * 0.125f - next);
          sum[r] += weight;
          for (int c = 0; c < wide; ++c) row[c] += weight * v[(tile + j) * wide + c];
        }
        memcpy(to + r * wide, row, sizeof row);
        most[r] = next;
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < wide; ++c) to[r * wide + c] /= sum[r];
  }
}
void product(const float* __restrict x, float* __restrict y, int n) {
  const int d = static_cast<int>(lround(cbrt(n)));
  const float* right = x + d * d;
  memset(y, 0, sizeof(float) * d * d);
  for (int row = 0; row < d; ++row)
    for (int k = 0; k < d; ++k)
      for (int c = 0; c < d; ++c) y[row * d + c] += x[row * d + k] * right[k * d + c];
}
void strides(const float* __restrict x, float* __restrict y, int n) {
  for (int i = 0; i < n; ++i) y[i] = 2.f * x[i] + y[i];
}
void histogram(const int* __restrict x, int* __restrict y, int n) {
  for (int i = 0; i < n; ++i) ++y[x[i] & 255];
}
}
