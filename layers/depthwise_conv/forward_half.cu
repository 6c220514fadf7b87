#include "depthwise_backend.h"
#if DEPTHWISE_FAST_KERNELS
#include "conv1d.cuh"
#include "forward_fast.cuh"

namespace depthwise {
template bool forward_fast(const Shape&, const caffe::half*, Parameters<caffe::half>, Parameters<caffe::half>,
                           caffe::half*, bool, bool, cudaStream_t);
template bool line_forward(const Shape&, const caffe::half*, Parameters<caffe::half>, Parameters<caffe::half>,
                           caffe::half*, bool, cudaStream_t);
template Launched line_backward(const Shape&, const Backward<caffe::half>&, cudaStream_t);
template int64_t line_parts<caffe::half>(const Shape&);
}  // namespace depthwise
#endif
