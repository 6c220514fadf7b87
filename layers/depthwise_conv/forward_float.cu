#include "depthwise_backend.h"
#if DEPTHWISE_FAST_KERNELS
#include "conv1d.cuh"
#include "forward_fast.cuh"

namespace depthwise {
template bool forward_fast(const Shape&, const float*, Parameters<float>, Parameters<float>, float*, bool,
                           bool, cudaStream_t);
template bool line_forward(const Shape&, const float*, Parameters<float>, Parameters<float>, float*, bool,
                           cudaStream_t);
template Launched line_backward(const Shape&, const Backward<float>&, cudaStream_t);
template int64_t line_parts<float>(const Shape&);
}  // namespace depthwise
#endif
