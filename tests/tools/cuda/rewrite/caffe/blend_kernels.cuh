#pragma once

static __inline__ __device__ double atomicAdd(double* address, double value) {
  *address += value;
  return 0;
}

namespace caffe {

template <typename Dtype>
__global__ void BlendSum(const int n, const Dtype* in, Dtype* out) {
  extern __shared__ char memory[];
  Dtype* sums = reinterpret_cast<Dtype*>(memory);
  sums[threadIdx.x] = threadIdx.x < n ? in[threadIdx.x] : Dtype(0);
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 64; ++i) out[0] += sums[i];
  }
}

template <typename Dtype>
__global__ void BlendBackward(const int n, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, n) { out[i] = in[i]; }
}

template <typename Dtype>
void blend_backward(const int n, const Dtype* in, Dtype* out) {
  BlendBackward<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, in, out);
}

}  // namespace caffe
