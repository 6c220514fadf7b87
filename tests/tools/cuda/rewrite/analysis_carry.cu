// A variable from outside of the loop that the body changes: the thread's next index would see it.
#include "caffe_cuda_macro.h"
#define ADVANCE(p, by) p += by
#define TWICE(x) ((x) * 2)
struct Pair { float a, b; __device__ float next() { return a++; } __device__ float last() const { return b; } };
__device__ void advance(const float*& p, int by) { p += by; }
template <typename T> __device__ void clear(T (&all)[2]) { all[0] = all[1] = 0; }
__device__ float read(const float* const& p, const float& rest, int by) { return p[by] + rest; }
__global__ void moves_its_parameter(const int n, const float* rois, float* x) {
  CUDA_KERNEL_LOOP(i, n) { rois += i * 5; x[i] = rois[0]; }
}
__global__ void changes_a_number(const int n, float scale, float* x) {
  CUDA_KERNEL_LOOP(i, n) { if (i % 2) (scale) *= 2; x[i] = scale; }
}
__global__ void changes_its_index(const int n, float* x) {
  CUDA_KERNEL_LOOP(i, n) { x[i] = 1; i /= 2; }
}
__global__ void counts_up(const int n, float* x) {
  int seen = 0;
  Pair pair;
  CUDA_KERNEL_LOOP(i, n) { x[i] = seen++; pair.a = 1; }
}
__global__ void fills_a_table(const int n, float* x) {
  float table[2] = {0, 0};
  CUDA_KERNEL_LOOP(i, n) { table[i % 2] = i; x[i] = table[0]; }
}
__global__ void gives_its_address(const int n, float scale, float* x) {
  CUDA_KERNEL_LOOP(i, n) { float* p = &scale; x[i] = (*p)++; }
}
__global__ void gives_it_a_name(const int n, float scale, float* x) {
  CUDA_KERNEL_LOOP(i, n) { float& s = scale; x[i] = s++; }
}
__global__ void by_a_macro(const int n, const float* rois, float* x) {
  CUDA_KERNEL_LOOP(i, n) { ADVANCE(rois, i); x[i] = *rois; }
}
__global__ void by_a_function(const int n, const float* rois, float* x) {
  CUDA_KERNEL_LOOP(i, n) { advance(rois, i); x[i] = *rois; }
}
__global__ void by_a_template(const int n, float* x) {
  float table[2] = {1, 2};
  CUDA_KERNEL_LOOP(i, n) { x[i] = table[1]; clear<float>(table); }
}
__global__ void by_a_swap(const int n, float first, float second, float* x) {
  CUDA_KERNEL_LOOP(i, n) { std::swap(first, second); x[i] = first; }
}
__global__ void by_a_member(const int n, Pair pair, float* x) {
  CUDA_KERNEL_LOOP(i, n) { x[i] = pair.next(); }
}
__global__ void names_a_pointer(const int n, const float* rois, float* x) {
  CUDA_KERNEL_LOOP(i, n) { const float*& p = rois; x[i] = *p++; }
}
__global__ void keeps_within_the_turn(const int n, const float* rois, float* x, float rest, Pair both) {
  CUDA_KERNEL_LOOP(i, n) {
    const float* roi = rois + i;
    roi += 1;
    int c = i, table[2];
    Pair pair;
    pair.a = c /= 2;
    table[0] = TWICE(c);
    const float& head = rest;
    float& place = x[i];
    place = 0;
    for (int k = 0; k < 2; ++k) { place += *roi * table[0] + pair.a + head; }
    *(x + i) += 1;
    float* at = &x[i];
    *at -= 1;
    advance(roi, 1);
    clear(table);
    x[i] += pair.next() + both.last();
    x[i] += read(rois, rest, i) + roi[0];
  }
}
