// Does this backend have the fast kernels? They use caches, warps and shared memory, so they gain nothing in
// the host emulation. To find wrong indices without a GPU, define DEPTHWISE_EMULATE_FAST_KERNELS: then the
// host has them.
#ifndef DEPTHWISE_BACKEND_H_
#define DEPTHWISE_BACKEND_H_

#if !defined(CAFFE_HOST_BACKEND) || defined(DEPTHWISE_EMULATE_FAST_KERNELS)
#define DEPTHWISE_FAST_KERNELS 1
#else
#define DEPTHWISE_FAST_KERNELS 0
#endif

#endif  // DEPTHWISE_BACKEND_H_
