// The peer's CUDA half. ATen's headers alone: torch/extension.h would make it compile slower still.
#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

template <typename scalar_t>
__global__ void round_forward_kernel(int64_t count, const scalar_t* bottom, scalar_t* top) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += int64_t(gridDim.x) * blockDim.x)
    top[i] = bottom[i] >= scalar_t(0.5) ? scalar_t(1) : scalar_t(0);
}

at::Tensor round_forward_cuda(const at::Tensor& bottom) {
  const c10::cuda::CUDAGuard guard(bottom.device());
  at::Tensor top = at::empty_like(bottom);
  const int64_t count = bottom.numel();
  if (count == 0) return top;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, bottom.scalar_type(), "round_forward", [&] {
    round_forward_kernel<scalar_t><<<(count + 511) / 512, 512, 0, at::cuda::getCurrentCUDAStream()>>>(
        count, bottom.const_data_ptr<scalar_t>(), top.mutable_data_ptr<scalar_t>());
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return top;
}
