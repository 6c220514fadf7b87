#include "depthwise_backend.h"
#if DEPTHWISE_FAST_KERNELS
#include "backward_fast.cuh"

namespace depthwise {
template Launched backward_fast(const Shape&, const Backward<caffe::bfloat16>&, cudaStream_t);
template int64_t backward_fast_parts<caffe::bfloat16>(const Shape&, bool);
template void add_parts(const Shape&, int64_t, const float*, Parameters<caffe::bfloat16>,
                        Parameters<caffe::bfloat16>, cudaStream_t);
}  // namespace depthwise
#endif
