// The CUDA runtime functions that kernel files call. On the host they are synchronous, and device memory is the
// process's memory.
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>  // clock(), which kernels may call

// The versions that the host's functions are of. (CUDA_VERSION is in <cuda.h>, as in CUDA.)
#define CUDART_VERSION 12000
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 0

typedef struct CUstream_st* cudaStream_t;

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorUnknown = 999,
};

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMultiProcessorCount = 16,
};

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };

namespace cuda_host {
// This thread's last error. As in CUDA, reading it clears it, and peeking does not.
cudaError_t last_error(bool clear);
// The text of cudaErrorInvalidConfiguration: the number and the limit of the last launch that was refused.
const char* why_refused();
int multiprocessor_count();
// Set the most dynamic shared memory that later launches may have, as cudaFuncSetAttribute does.
cudaError_t allow_shared_bytes(int bytes);
// End the kernel: this code is only for a GPU. `why` begins with its file and line.
[[noreturn]] void refuse(const char* why);
[[noreturn]] void trap();  // not thrown here: <stdexcept> is half of what a small kernel includes
}  // namespace cuda_host

inline cudaError_t cudaGetLastError() { return cuda_host::last_error(true); }
inline cudaError_t cudaPeekAtLastError() { return cuda_host::last_error(false); }

// The count of nanoseconds, where a GPU counts its cycles.
inline long long clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

inline const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    default:
      return "cudaErrorUnknown";
  }
}

inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return *cuda_host::why_refused() ? cuda_host::why_refused() : "invalid configuration argument";
    default:
      return "unknown error";
  }
}

inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = nullptr, cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }

// An event holds the time when it was recorded, in milliseconds.
struct CUevent_st {
  double at;
};
typedef CUevent_st* cudaEvent_t;
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2 };
inline cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = new CUevent_st(), cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = nullptr) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return event->at = now.tv_sec * 1e3 + now.tv_nsec * 1e-6, cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return *milliseconds = static_cast<float>(end->at - start->at), cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidValue; }

// Kernel files ask for the architecture. It is that of the branches that the host has (tools/cuda/branches.py).
struct cudaDeviceProp {
  char name[256];
  int major, minor, multiProcessorCount, maxThreadsPerBlock, warpSize;
};
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"host backend", 9, 0, cuda_host::multiprocessor_count(), 1024, 32};
  return cudaSuccess;
}

// The CUDA version whose functions these are.
inline cudaError_t cudaDriverGetVersion(int* version) { return *version = 12000, cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrMaxThreadsPerBlock ? 1024 : cuda_host::multiprocessor_count();
  return cudaSuccess;
}

// On a GPU this concerns one kernel, on the host all kernels of the library.
template <typename Kernel>
inline cudaError_t cudaFuncSetAttribute(Kernel, cudaFuncAttribute, int bytes) {
  return cuda_host::allow_shared_bytes(bytes);
}

template <typename T>
inline cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  *pointer = static_cast<T*>(malloc(bytes ? bytes : 1));
  return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaFree(void* pointer) { return free(pointer), cudaSuccess; }
template <typename T>
inline cudaError_t cudaMallocHost(T** pointer, size_t bytes) {
  return cudaMalloc(pointer, bytes);
}
inline cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }

inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  return memmove(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t = nullptr) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                size_t height, cudaMemcpyKind) {
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
  for (size_t row = 0; row < height; ++row)
    memmove(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
            width);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t = nullptr) {
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

// A variable of the device is one of the process.
template <typename T>
inline cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
  return *address = const_cast<void*>(static_cast<const volatile void*>(&symbol)), cudaSuccess;
}
template <typename T>
inline cudaError_t cudaGetSymbolSize(size_t* bytes, const T&) {
  return *bytes = sizeof(T), cudaSuccess;
}
template <typename T>
inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind = cudaMemcpyHostToDevice) {
  if (offset > sizeof(T) || bytes > sizeof(T) - offset) return cudaErrorInvalidValue;
  void* to;
  cudaGetSymbolAddress(&to, symbol);
  return memmove(static_cast<char*>(to) + offset, from, bytes), cudaSuccess;
}
template <typename T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes, size_t offset = 0,
                                           cudaMemcpyKind kind = cudaMemcpyHostToDevice,
                                           cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <typename T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  if (offset > sizeof(T) || bytes > sizeof(T) - offset) return cudaErrorInvalidValue;
  void* from;
  cudaGetSymbolAddress(&from, symbol);
  return memmove(to, static_cast<const char*>(from) + offset, bytes), cudaSuccess;
}
template <typename T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                             cudaStream_t = nullptr) {
  return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}
// A block of the most threads, and a grid for each core.
template <typename Kernel>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel, size_t = 0,
                                                      int most = 0) {
  *block = most > 0 && most < 1024 ? most : 1024;
  return *grid = cuda_host::multiprocessor_count(), cudaSuccess;
}
template <typename Kernel>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int, size_t) {
  return *blocks = 1, cudaSuccess;
}
inline cudaError_t cudaMemset(void* to, int byte, size_t bytes) {
  return memset(to, byte, bytes), cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t = nullptr) {
  return cudaMemset(to, byte, bytes);
}
