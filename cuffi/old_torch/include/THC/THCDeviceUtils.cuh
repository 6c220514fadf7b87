// A function that kernels of torch's extensions use. Torch had it in a header of this name until 1.10.
#ifndef THC_DEVICE_UTILS_INC
#define THC_DEVICE_UTILS_INC

// a / b, rounded up.
template <typename T>
__host__ __device__ __forceinline__ T THCCeilDiv(T a, T b) {
  return (a + b - 1) / b;
}

#endif  // THC_DEVICE_UTILS_INC
