// Functions that kernels of torch's extensions use. Torch had them in a header of this name until 1.10.
#ifndef THC_ATOMICS_INC
#define THC_ATOMICS_INC

#include <stdint.h>

// CUDA adds 64-bit integers only if they are unsigned.
__device__ inline int64_t atomicAdd(int64_t* address, int64_t value) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(address), static_cast<unsigned long long>(value));
}

template <typename T>
__device__ inline T gpuAtomicAdd(T* address, T value) {
  return atomicAdd(address, value);
}

#endif  // THC_ATOMICS_INC
