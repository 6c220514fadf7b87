#include "depthwise_backend.h"
#if DEPTHWISE_FAST_KERNELS
#include "forward_fast.cuh"

namespace depthwise {
template bool forward_fast(const Shape&, const caffe::bfloat16*, Parameters<caffe::bfloat16>,
                           Epilogue<caffe::bfloat16>, caffe::bfloat16*, bool, bool, cudaStream_t);
}  // namespace depthwise
#endif
