// What whole programs call more seldom: attributes of kernels and pointers, copies in three dimensions, limits, graphs.
#pragma once

#include "cuda_api.h"

struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes,
      preferredShmemCarveout;
};
// What a compiler for GPUs decides, such as registers, has the least value here.
template <typename Kernel>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel) {
  return *attributes = {0, 0, 0, 1024, 32, 90, 90, 0, 48 << 10, -1}, cudaSuccess;
}

enum cudaMemoryType {
  cudaMemoryTypeUnregistered,
  cudaMemoryTypeHost,
  cudaMemoryTypeDevice,
  cudaMemoryTypeManaged
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
};
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  void* const p = const_cast<void*>(pointer);
  switch (cuda_host::memory_kind(pointer)) {
    case cuda_host::kDeviceMemory:
      return *attributes = {cudaMemoryTypeDevice, 0, p, nullptr}, cudaSuccess;
    case cuda_host::kHostMemory:
      return *attributes = {cudaMemoryTypeHost, 0, p, p}, cudaSuccess;
    case cuda_host::kManagedMemory:
      return *attributes = {cudaMemoryTypeManaged, 0, p, p}, cudaSuccess;
  }
  return *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, p}, cudaSuccess;
}

// Three dimensions: a row has a pitch, and a slice has ysize rows.
struct cudaPos {
  size_t x, y, z;
};
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
typedef struct cudaArray* cudaArray_t;
struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};
inline cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  void* memory = nullptr;
  size_t pitch = 0;
  const cudaError_t status = cudaMallocPitch(&memory, &pitch, extent.width, extent.height * extent.depth);
  return *pitched = {memory, pitch, extent.width, extent.height}, status;
}
namespace cuda_host {
inline char* row_of(const cudaPitchedPtr& p, size_t x, size_t y, size_t z) {
  return static_cast<char*>(p.ptr) + (z * p.ysize + y) * p.pitch + x;
}
}  // namespace cuda_host
inline cudaError_t cudaMemset3D(cudaPitchedPtr pitched, int byte, cudaExtent extent) {
  if (extent.width > pitched.pitch) return cudaErrorInvalidValue;
  for (size_t z = 0; z < extent.depth; ++z)
    for (size_t y = 0; y < extent.height; ++y)
      cudaMemset(cuda_host::row_of(pitched, 0, y, z), byte, extent.width);
  return cudaSuccess;
}
inline cudaError_t cudaMemset3DAsync(cudaPitchedPtr pitched, int byte, cudaExtent extent,
                                     cudaStream_t = nullptr) {
  return cudaMemset3D(pitched, byte, extent);
}

inline cudaError_t cudaDeviceGetLimit(size_t* bytes, cudaLimit limit) {
  *bytes = limit == cudaLimitStackSize ? 512 << 10 : limit == cudaLimitMallocHeapSize ? 8 << 20 : 1 << 20;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return *config = cudaFuncCachePreferNone, cudaSuccess;
}
enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault,
  cudaSharedMemBankSizeFourByte,
  cudaSharedMemBankSizeEightByte
};
inline cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return *config = cudaSharedMemBankSizeFourByte, cudaSuccess;
}
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
template <typename Kernel>
inline cudaError_t cudaFuncSetSharedMemConfig(Kernel, cudaSharedMemConfig) {
  return cudaSuccess;
}
template <typename Kernel, typename Bytes>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, Kernel kernel,
                                                                  Bytes bytes, int most = 0) {
  cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, 0, most);
  while (*block > 32 && cuda_host::is_beyond_shared(static_cast<size_t>(bytes(*block)))) *block -= 32;
  return cudaSuccess;
}

// A captured launch would have to wait for its graph, and here a launch runs at once: no capture begins.
typedef struct CUgraph_st* cudaGraph_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;
typedef struct CUgraphNode_st* cudaGraphNode_t;
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone,
  cudaStreamCaptureStatusActive,
  cudaStreamCaptureStatusInvalidated
};
inline cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  return cuda_host::refused(cudaErrorNotSupported);
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  return *graph = nullptr, cuda_host::refused(cudaErrorNotSupported);
}
inline cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
inline cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  return *graph = nullptr, cuda_host::refused(cudaErrorNotSupported);
}
template <typename... Others>
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t, Others...) {
  return *made = nullptr, cuda_host::refused(cudaErrorNotSupported);
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) {
  return cuda_host::refused(cudaErrorNotSupported);
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }
