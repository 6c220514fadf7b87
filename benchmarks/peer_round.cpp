// The peer: `round` the way of torch.utils.cpp_extension, as its tutorial writes such an operator.
// The CPU half is here, the CUDA half in peer_round.cu.
#include <ATen/Parallel.h>
#include <torch/extension.h>

#ifdef WITH_CUDA
at::Tensor round_forward_cuda(const at::Tensor& bottom);
#endif

static at::Tensor round_forward_cpu(const at::Tensor& bottom) {
  at::Tensor top = at::empty_like(bottom);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, bottom.scalar_type(), "round_forward", [&] {
    const scalar_t* in = bottom.const_data_ptr<scalar_t>();
    scalar_t* out = top.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, bottom.numel(), at::internal::GRAIN_SIZE, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = in[i] >= scalar_t(0.5) ? scalar_t(1) : scalar_t(0);
    });
  });
  return top;
}

at::Tensor round_forward(const at::Tensor& bottom) {
  TORCH_CHECK(bottom.is_contiguous(), "round: bottom must be contiguous");
  TORCH_CHECK(bottom.is_floating_point(), "round: bottom must be floating");
#ifdef WITH_CUDA
  if (bottom.is_cuda()) return round_forward_cuda(bottom);
#endif
  TORCH_CHECK(bottom.is_cpu(), "round: bottom must be on cpu or cuda");
  return round_forward_cpu(bottom);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("round_forward", &round_forward); }
