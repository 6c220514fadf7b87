// CUDA's runtime for an extension's C files on the host backend, whose own header is C++. Elsewhere the next header of
// this name serves.
#if defined(__cplusplus) || !defined(CAFFE_HOST_BACKEND)
#include_next <cuda_runtime.h>
#elif !defined(TH_HOST_CUDA_INC)
#define TH_HOST_CUDA_INC

#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef int cudaError_t;
typedef struct dim3 {
  unsigned x, y, z;
} dim3;
enum { cudaSuccess = 0 };
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
static inline cudaError_t cudaGetLastError(void) { return cudaSuccess; }
static inline cudaError_t cudaPeekAtLastError(void) { return cudaSuccess; }
static inline const char* cudaGetErrorString(cudaError_t error) {
  return error ? "unknown error" : "no error";
}
static inline cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }
static inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return (void)stream, cudaSuccess; }
static inline cudaError_t cudaSetDevice(int device) { return device != 0; }
static inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
static inline cudaError_t cudaFree(void* memory) { return free(memory), cudaSuccess; }
static inline cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return (*memory = malloc(bytes ? bytes : 1)) ? cudaSuccess : 2;
}
static inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) {
  return (void)kind, memmove(to, from, bytes), cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                                          cudaStream_t stream) {
  return (void)stream, cudaMemcpy(to, from, bytes, kind);
}
static inline cudaError_t cudaMemset(void* to, int byte, size_t bytes) {
  return memset(to, byte, bytes), cudaSuccess;
}
static inline cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t stream) {
  return (void)stream, cudaMemset(to, byte, bytes);
}

#endif
