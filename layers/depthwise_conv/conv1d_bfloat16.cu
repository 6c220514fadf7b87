#include "depthwise_backend.h"
#if DEPTHWISE_FAST_KERNELS
#include "conv1d.cuh"

namespace depthwise {
template bool line_forward(const Shape&, const caffe::bfloat16*, Parameters<caffe::bfloat16>,
                           Epilogue<caffe::bfloat16>, caffe::bfloat16*, bool, cudaStream_t);
template Launched line_backward(const Shape&, const Backward<caffe::bfloat16>&, cudaStream_t);
template int64_t line_parts<caffe::bfloat16>(const Shape&);
}  // namespace depthwise
#endif
