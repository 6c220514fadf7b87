#include "depthwise_backend.h"
#if DEPTHWISE_FAST_KERNELS
#include "forward_fast.cuh"

namespace depthwise {
template bool forward_fast(const Shape&, const float*, Parameters<float>, Epilogue<float>, float*, bool, bool,
                           cudaStream_t);
}  // namespace depthwise
#endif
