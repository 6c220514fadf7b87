// Kernels as people write them. speed.cpp has the same as loops; speed.py times both.
#include <cooperative_groups.h>
#include <cuda_fp16.h>

__device__ float warp_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);
  return v;
}
__device__ float warp_most(float v) {
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, d));
  return v;
}
__device__ float block_sum(float v) {
  __shared__ float s[32];
  int lane = threadIdx.x % 32, w = threadIdx.x / 32;
  v = warp_sum(v);
  if (lane == 0) s[w] = v;
  __syncthreads();
  v = lane < blockDim.x / 32 ? s[lane] : 0.f;
  v = warp_sum(v);
  __syncthreads();
  return v;
}

__global__ void warp_sums(const float* x, float* y, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < d ? x[i] : 0.f;
  for (int k = 16; k > 0; k /= 2) v += __shfl_down_sync(0xffffffff, v, k);
  if (threadIdx.x % 32 == 0) y[i / 32] = v;
}
__global__ void block_sums(const float* x, float* y, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < d ? x[i] : 0.f;
  v = block_sum(v);
  if (threadIdx.x == 0) y[blockIdx.x] = v;
}
__global__ void norm_of_blocks(const float* x, float* y, int d) {
  const float* p = x + blockIdx.x * d;
  float* q = y + blockIdx.x * d;
  float s = 0;
  for (int i = threadIdx.x; i < d; i += blockDim.x) s += p[i];
  float mean = block_sum(s) / d;
  float v = 0;
  for (int i = threadIdx.x; i < d; i += blockDim.x) {
    float t = p[i] - mean;
    v += t * t;
  }
  float r = 1 / sqrtf(block_sum(v) / d + 1e-5f);
  for (int i = threadIdx.x; i < d; i += blockDim.x) q[i] = (p[i] - mean) * r;
}
__global__ void norm_of_warps(const float* x, float* y, int d) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  const float* p = x + row * d;
  float* q = y + row * d;
  float s = 0;
  for (int i = lane; i < d; i += 32) s += p[i];
  float mean = warp_sum(s) / d;
  float v = 0;
  for (int i = lane; i < d; i += 32) {
    float t = p[i] - mean;
    v += t * t;
  }
  float r = 1 / sqrtf(warp_sum(v) / d + 1e-5f);
  for (int i = lane; i < d; i += 32) q[i] = (p[i] - mean) * r;
}
// A warp a row. Each lane has its own greatest value and sum, until they are put together.
__global__ void online_softmax(const float* x, float* y, int d) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  const float* p = x + row * d;
  float* q = y + row * d;
  float most = -INFINITY, sum = 0;
  for (int i = lane; i < d; i += 32) {
    float v = p[i];
    if (v > most) {
      sum *= expf(most - v);
      most = v;
    }
    sum += expf(v - most);
  }
  float all = warp_most(most);
  sum = warp_sum(sum * expf(most - all));
  for (int i = lane; i < d; i += 32) q[i] = expf(p[i] - all) / sum;
}
__global__ void rms_norm_of_halves(const __half2* x, __half2* y, int d) {
  const __half2* p = x + blockIdx.x * (d / 2);
  __half2* q = y + blockIdx.x * (d / 2);
  float s = 0;
  for (int i = threadIdx.x; i < d / 2; i += blockDim.x) {
    float2 v = __half22float2(p[i]);
    s += v.x * v.x + v.y * v.y;
  }
  float r = rsqrtf(block_sum(s) / d + 1e-5f);
  for (int i = threadIdx.x; i < d / 2; i += blockDim.x) {
    float2 v = __half22float2(p[i]);
    q[i] = __floats2half2_rn(v.x * r, v.y * r);
  }
}
// 8 heads of d rows of 64 numbers. A block has 8 rows of a head, a warp each. Keys and values come in tiles of 32 rows;
// a lane has the score of a key, and two numbers of the row.
__global__ void flash_attention(const float* x, float* y, int d) {
  __shared__ float keys[32][65], values[32][64], rows[8][64];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int head = blockIdx.x / (d / 8), row = blockIdx.x % (d / 8) * 8 + warp;
  const float* q = x + head * d * 64;
  const float* k = x + (8 + head) * d * 64;
  const float* v = x + (16 + head) * d * 64;
  for (int c = lane; c < 64; c += 32) rows[warp][c] = q[row * 64 + c] * 0.125f;
  float most = -INFINITY, sum = 0, low = 0, high = 0;
  for (int tile = 0; tile < d; tile += 32) {
    __syncthreads();
    for (int i = threadIdx.x; i < 32 * 64; i += blockDim.x) {
      keys[i / 64][i % 64] = k[tile * 64 + i];
      values[i / 64][i % 64] = v[tile * 64 + i];
    }
    __syncthreads();
    float score = 0;
    for (int c = 0; c < 64; ++c) score += rows[warp][c] * keys[lane][c];
    float next = fmaxf(most, warp_most(score));
    float p = expf(score - next), factor = expf(most - next);
    sum = sum * factor + warp_sum(p);
    low *= factor;
    high *= factor;
    for (int j = 0; j < 32; ++j) {
      float weight = __shfl_sync(0xffffffff, p, j);
      low += weight * values[j][lane];
      high += weight * values[j][lane + 32];
    }
    most = next;
  }
  y[(head * d + row) * 64 + lane] = low / sum;
  y[(head * d + row) * 64 + lane + 32] = high / sum;
}
// d x d, by tiles of 32 x 32. Each of 8 x 32 threads has four columns.
__global__ void product_of_float4(const float* x, float* y, int d) {
  __shared__ float a[32][32];
  __shared__ float4 b[32][8];
  const int c = threadIdx.x, r = threadIdx.y, row = blockIdx.y * 32 + r;
  const float4* left = reinterpret_cast<const float4*>(x);
  const float4* right = reinterpret_cast<const float4*>(x + d * d);
  float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
  for (int m = 0; m < d / 32; ++m) {
    float4 four = left[row * (d / 4) + m * 8 + c];
    a[r][c * 4] = four.x;
    a[r][c * 4 + 1] = four.y;
    a[r][c * 4 + 2] = four.z;
    a[r][c * 4 + 3] = four.w;
    b[r][c] = right[(m * 32 + r) * (d / 4) + blockIdx.x * 8 + c];
    __syncthreads();
    for (int k = 0; k < 32; ++k) {
      float4 of = b[k][c];
      float one = a[r][k];
      sum.x += one * of.x;
      sum.y += one * of.y;
      sum.z += one * of.z;
      sum.w += one * of.w;
    }
    __syncthreads();
  }
  reinterpret_cast<float4*>(y)[row * (d / 4) + blockIdx.x * 8 + c] = sum;
}
__global__ void strides(const float* x, float* y, int d) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < d; i += blockDim.x * gridDim.x)
    y[i] = 2.f * x[i] + y[i];
}
__global__ void histogram(const int* x, int* y, int d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < d) atomicAdd(&y[x[i] & 255], 1);
}
__device__ int atomic_free(int v) { return v; }
__global__ void beside_atomic(const float* x, float* y, int d) {
  const int no_atomic = 2;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < d) y[i] = no_atomic * x[i] + atomic_free(1);
}
__global__ void without_atomic(const float* x, float* y, int d) {
  const int factor = 2;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < d) y[i] = factor * x[i] + 1;
}
__global__ void sums_of_auto(const float* x, float* y, int d) {
  __shared__ float s[256];
  const auto t = threadIdx.x;
  const auto i = blockIdx.x * blockDim.x + t;
  s[t] = i < d ? x[i] : 0.f;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = s[0];
}
__global__ void sums_of_int(const float* x, float* y, int d) {
  __shared__ float s[256];
  int t = threadIdx.x;
  int i = blockIdx.x * blockDim.x + t;
  s[t] = i < d ? x[i] : 0.f;
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = s[0];
}
