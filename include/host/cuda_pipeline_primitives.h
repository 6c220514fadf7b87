// CUDA's asynchronous copies to shared memory on the host: a copy is done when it is asked for.
#ifndef CAFFE_HOST_CUDA_PIPELINE_PRIMITIVES_H_
#define CAFFE_HOST_CUDA_PIPELINE_PRIMITIVES_H_

#include "cuda_api.h"
#include "cuda_words.h"

// Copies `size - zeros` bytes, and fills the last `zeros` with 0.
__forceinline__ void __pipeline_memcpy_async(void* to, const void* from, size_t size, size_t zeros = 0) {
  ::cuda_host::memcpy_watched(to, from, size - zeros);
  ::cuda_host::memset_watched(static_cast<char*>(to) + size - zeros, 0, zeros);
}
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(size_t) {}

#endif  // CAFFE_HOST_CUDA_PIPELINE_PRIMITIVES_H_
