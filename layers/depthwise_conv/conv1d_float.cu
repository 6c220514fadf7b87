#include "depthwise_backend.h"
#if DEPTHWISE_FAST_KERNELS
#include "conv1d.cuh"

namespace depthwise {
template bool line_forward(const Shape&, const float*, Parameters<float>, Epilogue<float>, float*, bool,
                           cudaStream_t);
template Launched line_backward(const Shape&, const Backward<float>&, cudaStream_t);
template int64_t line_parts<float>(const Shape&);
}  // namespace depthwise
#endif
