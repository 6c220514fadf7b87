#include "depthwise_backend.h"
#if DEPTHWISE_FAST_KERNELS
#include "backward_fast.cuh"

namespace depthwise {
template Launched backward_fast(const Shape&, const Backward<caffe::half>&, cudaStream_t);
template int64_t backward_fast_parts<caffe::half>(const Shape&, bool);
template void add_parts(const Shape&, int64_t, const float*, Parameters<caffe::half>, Parameters<caffe::half>,
                        cudaStream_t);
}  // namespace depthwise
#endif
