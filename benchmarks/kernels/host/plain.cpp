// The kernels of usual.cu as a person writes them in C++ for one processor.
#include <algorithm>

extern "C" {
void guarded(int n, const float* x, float* y) {
  for (int i = 0; i < n; ++i) y[i] = 0.5f * x[i] + y[i];
}
void early_return(int n, const float* x, float* y) {
  for (int i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0.1f * x[i];
}
void gather(int n, const int* at, const float* x, float* y) {
  for (int i = 0; i < n; ++i) y[i] = x[at[i]];
}
void index_function(int n, const float* x, float* y) { guarded(n, x, y); }
void grid_stride(int n, const float* x, float* y) { guarded(n, x, y); }
void caffe_loop(int n, const float* x, float* y) { guarded(n, x, y); }
void two_axes(int w, const float* x, float* y) {
  for (int r = 0; r < w; ++r)
    for (int c = 0; c < w; ++c) y[r * w + c] = 2 * x[r * w + c];
}
void stencil(int w, const float* x, float* y) {
  for (int r = 1; r < w - 1; ++r)
    for (int c = 1; c < w - 1; ++c) {
      float sum = 0;
      for (int dr = -1; dr <= 1; ++dr)
        for (int dc = -1; dc <= 1; ++dc) sum += x[(r + dr) * w + c + dc];
      y[r * w + c] = sum / 9;
    }
}
void histogram(int n, const int* at, float* bins) {
  for (int i = 0; i < n; ++i) bins[at[i] & 255] += 1;
}
// With 16 partial sums, so that the compiler may vectorise.
void block_sum(int n, const float* x, float* y) {
  for (int b = 0; b * 256 < n; ++b) {
    float sums[16] = {}, sum = 0;
    const int end = std::min(n, (b + 1) * 256);
    int i = b * 256;
    for (; i + 16 <= end; i += 16)
      for (int k = 0; k < 16; ++k) sums[k] += x[i + k];
    for (; i < end; ++i) sum += x[i];
    for (float s : sums) sum += s;
    y[b] = sum;
  }
}
void warp_sum(int n, const float* x, float* y) {
  for (int b = 0; b * 32 < n; ++b) {
    float sums[16] = {}, sum = 0;
    const int end = std::min(n, (b + 1) * 32);
    int i = b * 32;
    for (; i + 16 <= end; i += 16)
      for (int k = 0; k < 16; ++k) sums[k] += x[i + k];
    for (; i < end; ++i) sum += x[i];
    for (float s : sums) sum += s;
    y[b] = sum;
  }
}
void tiled_product(int w, const float* x, float* y) {
  for (int r = 0; r < w; ++r) {
    for (int c = 0; c < w; ++c) y[r * w + c] = 0;
    for (int k = 0; k < w; ++k)
      for (int c = 0; c < w; ++c) y[r * w + c] += x[r * w + k] * x[k * w + c];
  }
}
}
