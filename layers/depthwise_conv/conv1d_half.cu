#include "depthwise_backend.h"
#if DEPTHWISE_FAST_KERNELS
#include "conv1d.cuh"

namespace depthwise {
template bool line_forward(const Shape&, const caffe::half*, Parameters<caffe::half>, Epilogue<caffe::half>,
                           caffe::half*, bool, cudaStream_t);
template Launched line_backward(const Shape&, const Backward<caffe::half>&, cudaStream_t);
template int64_t line_parts<caffe::half>(const Shape&);
}  // namespace depthwise
#endif
