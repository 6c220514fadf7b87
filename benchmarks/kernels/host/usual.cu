// Kernels of the usual kinds, over n elements or over a w x w image or matrix. plain.cpp has the same as loops.
__device__ int index() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void guarded(int n, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 0.5f * x[i] + y[i];
}
__global__ void early_return(int n, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = x[i] > 0 ? x[i] : 0.1f * x[i];
}
__global__ void gather(int n, const int* at, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[at[i]];
}
__global__ void index_function(int n, const float* x, float* y) {
  int i = index();
  if (i < n) y[i] = 0.5f * x[i] + y[i];
}
__global__ void grid_stride(int n, const float* x, float* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = 0.5f * x[i] + y[i];
}
__global__ void caffe_loop(int n, const float* x, float* y) {
  CUDA_KERNEL_LOOP(i, n) {
    y[i] = 0.5f * x[i] + y[i];
  }
}
__global__ void two_axes(int w, const float* x, float* y) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c < w && r < w) y[r * w + c] = 2 * x[r * w + c];
}
__global__ void stencil(int w, const float* x, float* y) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (c > 0 && r > 0 && c < w - 1 && r < w - 1) {
    float sum = 0;
    for (int dr = -1; dr <= 1; ++dr)
      for (int dc = -1; dc <= 1; ++dc) sum += x[(r + dr) * w + c + dc];
    y[r * w + c] = sum / 9;
  }
}
__global__ void histogram(int n, const int* at, float* bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[at[i] & 255], 1.f);
}
__global__ void block_sum(int n, const float* x, float* y) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d >>= 1) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = s[0];
}
__global__ void warp_sum(int n, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.f;
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
  if (threadIdx.x % 32 == 0) y[i / 32] = v;
}
__global__ void tiled_product(int w, const float* x, float* y) {
  __shared__ float a[16][16], b[16][16];
  int c = threadIdx.x, r = threadIdx.y;
  int row = blockIdx.y * 16 + r, column = blockIdx.x * 16 + c;
  float sum = 0;
  for (int m = 0; m < w / 16; ++m) {
    a[r][c] = x[row * w + m * 16 + c];
    b[r][c] = x[(m * 16 + r) * w + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += a[r][k] * b[k][c];
    __syncthreads();
  }
  y[row * w + column] = sum;
}
