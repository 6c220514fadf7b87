// Does this backend have the fast kernels? They gain from caches, warps and shared memory, none of which the
// host emulation has. To find wrong indices without a GPU, build them there: define DEPTHWISE_EMULATE_FAST_KERNELS.
#ifndef DEPTHWISE_BACKEND_H_
#define DEPTHWISE_BACKEND_H_

#if defined(__CUDACC__) || defined(DEPTHWISE_EMULATE_FAST_KERNELS)
#define DEPTHWISE_FAST_KERNELS 1
#else
#define DEPTHWISE_FAST_KERNELS 0
#endif

#endif  // DEPTHWISE_BACKEND_H_
