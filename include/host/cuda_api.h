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

// CUDA's errors: _(name, number, text).
#define CAFFE_HOST_ERRORS(_)                                                                         \
  _(InvalidValue, 1, "invalid argument")                                                             \
  _(MemoryAllocation, 2, "out of memory")                                                            \
  _(InitializationError, 3, "initialization error")                                                  \
  _(CudartUnloading, 4, "driver shutting down")                                                      \
  _(InvalidConfiguration, 9, "invalid configuration argument")                                       \
  _(InvalidPitchValue, 12, "invalid pitch argument")                                                 \
  _(InvalidSymbol, 13, "invalid device symbol")                                                      \
  _(InvalidDevicePointer, 17, "invalid device pointer")                                              \
  _(InvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                                 \
  _(InsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")          \
  _(InvalidDeviceFunction, 98, "invalid device function")                                            \
  _(NoDevice, 100, "no CUDA-capable device is detected")                                             \
  _(InvalidDevice, 101, "invalid device ordinal")                                                    \
  _(InvalidResourceHandle, 400, "invalid resource handle")                                           \
  _(NotReady, 600, "device not ready")                                                               \
  _(IllegalAddress, 700, "an illegal memory access was encountered")                                 \
  _(LaunchOutOfResources, 701, "too many resources requested for launch")                            \
  _(LaunchTimeout, 702, "the launch timed out and was terminated")                                   \
  _(PeerAccessAlreadyEnabled, 704, "peer access is already enabled")                                 \
  _(PeerAccessNotEnabled, 705, "peer access has not been enabled")                                   \
  _(Assert, 710, "device-side assert triggered")                                                     \
  _(HostMemoryAlreadyRegistered, 712, "part or all of the requested memory range is already mapped") \
  _(HostMemoryNotRegistered, 713, "pointer does not correspond to a registered memory region")       \
  _(LaunchFailure, 719, "unspecified launch failure")                                                \
  _(CooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")                         \
  _(NotPermitted, 800, "operation not permitted")                                                    \
  _(NotSupported, 801, "operation not supported")                                                    \
  _(Unknown, 999, "unknown error")
// Those that the host never returns.
// clang-format off
#define CAFFE_HOST_OTHER_ERRORS(_) \
  _(ProfilerDisabled, 5) _(ProfilerNotInitialized, 6) _(ProfilerAlreadyStarted, 7) \
  _(ProfilerAlreadyStopped, 8) _(InvalidHostPointer, 16) _(InvalidTexture, 18) \
  _(InvalidTextureBinding, 19) _(InvalidChannelDescriptor, 20) _(AddressOfConstant, 22) \
  _(TextureFetchFailed, 23) _(TextureNotBound, 24) _(SynchronizationError, 25) _(InvalidFilterSetting, 26) \
  _(InvalidNormSetting, 27) _(MixedDeviceExecution, 28) _(NotYetImplemented, 31) \
  _(MemoryValueTooLarge, 32) _(StubLibrary, 34) _(CallRequiresNewerDriver, 36) _(InvalidSurface, 37) \
  _(DuplicateVariableName, 43) _(DuplicateTextureName, 44) _(DuplicateSurfaceName, 45) \
  _(DevicesUnavailable, 46) _(IncompatibleDriverContext, 49) _(MissingConfiguration, 52) \
  _(PriorLaunchFailure, 53) _(LaunchMaxDepthExceeded, 65) _(LaunchFileScopedTex, 66) \
  _(LaunchFileScopedSurf, 67) _(SyncDepthExceeded, 68) _(LaunchPendingCountExceeded, 69) \
  _(DeviceNotLicensed, 102) _(SoftwareValidityNotEstablished, 103) _(StartupFailure, 127) \
  _(InvalidKernelImage, 200) _(DeviceUninitialized, 201) _(MapBufferObjectFailed, 205) \
  _(UnmapBufferObjectFailed, 206) _(ArrayIsMapped, 207) _(AlreadyMapped, 208) \
  _(NoKernelImageForDevice, 209) _(AlreadyAcquired, 210) _(NotMapped, 211) _(NotMappedAsArray, 212) \
  _(NotMappedAsPointer, 213) _(ECCUncorrectable, 214) _(UnsupportedLimit, 215) _(DeviceAlreadyInUse, 216) \
  _(PeerAccessUnsupported, 217) _(InvalidPtx, 218) _(InvalidGraphicsContext, 219) \
  _(NvlinkUncorrectable, 220) _(JitCompilerNotFound, 221) _(UnsupportedPtxVersion, 222) \
  _(JitCompilationDisabled, 223) _(UnsupportedExecAffinity, 224) _(UnsupportedDevSideSync, 225) \
  _(Contained, 226) _(InvalidSource, 300) _(FileNotFound, 301) _(SharedObjectSymbolNotFound, 302) \
  _(SharedObjectInitFailed, 303) _(OperatingSystem, 304) _(IllegalState, 401) _(LossyQuery, 402) \
  _(SymbolNotFound, 500) _(LaunchIncompatibleTexturing, 703) _(SetOnActiveProcess, 708) \
  _(ContextIsDestroyed, 709) _(TooManyPeers, 711) _(HardwareStackError, 714) _(IllegalInstruction, 715) \
  _(MisalignedAddress, 716) _(InvalidAddressSpace, 717) _(InvalidPc, 718) _(TensorMemoryLeak, 721) \
  _(SystemNotReady, 802) _(SystemDriverMismatch, 803) _(CompatNotSupportedOnDevice, 804) \
  _(MpsConnectionFailed, 805) _(MpsRpcFailure, 806) _(MpsServerNotReady, 807) _(MpsMaxClientsReached, 808) \
  _(MpsMaxConnectionsReached, 809) _(MpsClientTerminated, 810) _(CdpNotSupported, 811) \
  _(CdpVersionMismatch, 812) _(StreamCaptureUnsupported, 900) _(StreamCaptureInvalidated, 901) \
  _(StreamCaptureMerge, 902) _(StreamCaptureUnmatched, 903) _(StreamCaptureUnjoined, 904) \
  _(StreamCaptureIsolation, 905) _(StreamCaptureImplicit, 906) _(CapturedEvent, 907) \
  _(StreamCaptureWrongThread, 908) _(Timeout, 909) _(GraphExecUpdateFailure, 910) _(ExternalDevice, 911) \
  _(InvalidClusterSize, 912) _(FunctionNotLoaded, 913) _(InvalidResourceType, 914) \
  _(InvalidResourceConfiguration, 915) _(ApiFailureBase, 10000)
// clang-format on
enum cudaError {
  cudaSuccess = 0,
#define CAFFE_HOST_ERROR(name, number, ...) cudaError##name = number,
  CAFFE_HOST_ERRORS(CAFFE_HOST_ERROR) CAFFE_HOST_OTHER_ERRORS(CAFFE_HOST_ERROR)
#undef CAFFE_HOST_ERROR
};
typedef cudaError cudaError_t;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrIntegrated = 18,
  cudaDevAttrComputeMode = 20,
  cudaDevAttrConcurrentKernels = 31,
  cudaDevAttrMemoryClockRate = 36,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrManagedMemory = 83,
  cudaDevAttrConcurrentManagedAccess = 89,
  cudaDevAttrCooperativeLaunch = 95,
};

enum { cudaComputeModeDefault = 0, cudaComputeModeExclusive = 1, cudaComputeModeProhibited = 2 };
#define __DRIVER_TYPES_H__ 1  // helper headers ask whether the runtime's header came first
#define __CUDA_RUNTIME_H__ 1

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};

namespace cuda_host {
// This thread's last error. As in CUDA, reading it clears it, and peeking does not.
cudaError_t last_error(bool clear);
// The text of cudaErrorInvalidConfiguration: the number and the limit of the last launch that was refused.
const char* why_refused();
int multiprocessor_count();
// Set the most dynamic shared memory that all later launches may have.
cudaError_t allow_shared_bytes(int bytes);
bool is_too_much_shared(int bytes);
inline bool is_beyond_shared(size_t bytes) { return bytes > 227 << 10; }
cudaError_t refused(cudaError_t error);  // which becomes the last error
// Memory of the host's, or of a GPU's. To free what is not there, or no longer, is an error, as in CUDA.
enum MemoryKind { kDeviceMemory, kHostMemory, kManagedMemory };
void* make_memory(size_t bytes, MemoryKind kind);
void memory_known(const void* memory, size_t bytes,
                  bool is_known);     // memory of the host's that kernels may use
int memory_kind(const void* memory);  // a MemoryKind; -1 for memory that was not made so
cudaError_t free_memory(void* memory, bool of_host);
// End the kernel: this code is only for a GPU. `why` begins with its file and line.
[[noreturn]] void refuse(const char* why);
#ifdef CAFFE_HOST_RACES  // what the host made, wrote and freed, for reads of memory that nobody wrote
void memory_made(const void* memory, size_t bytes);
void memory_set(const void* memory, size_t bytes, const void* from = nullptr);
void memory_filled(const void* from);  // as far as the memory goes
void memory_freed(const void* memory);
// The host waits for all that it has asked for; or asks for a copy to its own memory, and does not wait.
void host_waits();
void host_copies(const void* to, size_t bytes);
// What kernels call as memcpy, memmove and memset: the compiler inserts no call to the race finder into these.
void* memcpy_watched(void* to, const void* from, size_t bytes);
void* memset_watched(void* to, int byte, size_t bytes);
#else
inline void memory_made(const void*, size_t) {}
inline void memory_set(const void*, size_t, const void* = nullptr) {}
inline void memory_filled(const void*) {}
inline void memory_freed(const void*) {}
inline void host_waits() {}
inline void host_copies(const void*, size_t) {}
inline void* memcpy_watched(void* to, const void* from, size_t bytes) { return memmove(to, from, bytes); }
inline void* memset_watched(void* to, int byte, size_t bytes) { return memset(to, byte, bytes); }
#endif
// Not thrown here: <stdexcept> is half of what a small kernel includes.
[[noreturn]] void trap(const char* name = "__trap");
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
#define CAFFE_HOST_ERROR(name, number, ...) \
  case cudaError##name:                     \
    return "cudaError" #name;
      CAFFE_HOST_ERRORS(CAFFE_HOST_ERROR)
      CAFFE_HOST_OTHER_ERRORS(CAFFE_HOST_ERROR)
#undef CAFFE_HOST_ERROR
  }
  return "unrecognized error code";
}

inline const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorInvalidConfiguration && *cuda_host::why_refused()) return cuda_host::why_refused();
  switch (error) {
    case cudaSuccess:
      return "no error";
#define CAFFE_HOST_ERROR(name, number, text) \
  case cudaError##name:                      \
    return text;
      CAFFE_HOST_ERRORS(CAFFE_HOST_ERROR)
#undef CAFFE_HOST_ERROR
    default:
      return cudaGetErrorName(error);
  }
}

// What the host calls and the race finder tells of: in the caller's own code, so that the place is the caller's line.
#ifdef CAFFE_HOST_RACES
#define CAFFE_HOST_CALLED inline __attribute__((always_inline))
#else
#define CAFFE_HOST_CALLED inline
#endif
CAFFE_HOST_CALLED cudaError_t cudaDeviceSynchronize() { return cuda_host::host_waits(), cudaSuccess; }
CAFFE_HOST_CALLED cudaError_t cudaThreadSynchronize() { return cuda_host::host_waits(), cudaSuccess; }
CAFFE_HOST_CALLED cudaError_t cudaThreadExit() { return cuda_host::host_waits(), cudaSuccess; }
CAFFE_HOST_CALLED cudaError_t cudaDeviceReset() { return cuda_host::host_waits(), cudaSuccess; }
CAFFE_HOST_CALLED cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cuda_host::host_waits(), cudaSuccess;
}
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
CAFFE_HOST_CALLED cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cuda_host::host_waits(), cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return *milliseconds = static_cast<float>(end->at - start->at), cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }

// Kernel files ask for the architecture. It is that of the branches that the host has (tools/cuda/branches.py).
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, totalConstMem, memPitch, sharedMemPerMultiprocessor,
      sharedMemPerBlockOptin, textureAlignment, surfaceAlignment;
  int major, minor, multiProcessorCount, maxThreadsPerBlock, warpSize, regsPerBlock, regsPerMultiprocessor,
      clockRate, memoryClockRate, memoryBusWidth, l2CacheSize, maxThreadsPerMultiProcessor,
      maxBlocksPerMultiProcessor, maxThreadsDim[3], maxGridSize[3], deviceOverlap, asyncEngineCount,
      concurrentKernels, canMapHostMemory, unifiedAddressing, managedMemory, concurrentManagedAccess,
      integrated, computeMode, ECCEnabled, kernelExecTimeoutEnabled, cooperativeLaunch, pciBusID, pciDeviceID,
      pciDomainID, tccDriver;
};
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device) return cudaErrorInvalidDevice;
  cudaDeviceProp p = {};
  strcpy(p.name, "host backend");
  p.totalGlobalMem = size_t(8) << 30;
  p.sharedMemPerBlock = 48 << 10;
  p.totalConstMem = 64 << 10;
  p.sharedMemPerMultiprocessor = p.sharedMemPerBlockOptin = 227 << 10;
  p.textureAlignment = p.surfaceAlignment = 512;
  p.major = 9;
  p.multiProcessorCount = cuda_host::multiprocessor_count();
  p.maxThreadsPerBlock = 1024;
  p.warpSize = 32;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.clockRate = p.memoryClockRate = 1000000;
  p.memoryBusWidth = 64;
  p.l2CacheSize = 1 << 20;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.concurrentKernels = p.canMapHostMemory = p.unifiedAddressing = p.managedMemory = 1;
  p.concurrentManagedAccess = p.cooperativeLaunch = 1;
  return *properties = p, cudaSuccess;
}

// The CUDA version whose functions these are.
inline cudaError_t cudaDriverGetVersion(int* version) { return *version = 12000, cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (cudaGetDeviceProperties(&p, device)) return cudaErrorInvalidDevice;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return *value = p.maxThreadsPerBlock, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return *value = static_cast<int>(p.sharedMemPerBlock), cudaSuccess;
    case cudaDevAttrWarpSize:
      return *value = p.warpSize, cudaSuccess;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
      return *value = p.clockRate, cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      return *value = p.multiProcessorCount, cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      return *value = p.major, cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      return *value = p.minor, cudaSuccess;
    case cudaDevAttrIntegrated:
    case cudaDevAttrComputeMode:
      return *value = 0, cudaSuccess;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrCooperativeLaunch:
      return *value = 1, cudaSuccess;
  }
  return cudaErrorInvalidValue;
}

// Memory that the host may write, too.
template <typename T>
inline cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned = 0) {
  *pointer = static_cast<T*>(cuda_host::make_memory(bytes, cuda_host::kHostMemory));
  return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}
template <typename T>
inline cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  *pointer = static_cast<T*>(cuda_host::make_memory(bytes, cuda_host::kDeviceMemory));
  if (*pointer) cuda_host::memory_made(*pointer, bytes);
  return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}
CAFFE_HOST_CALLED cudaError_t cudaFree(void* pointer) {
  return cuda_host::host_waits(), cuda_host::free_memory(pointer, false);
}
CAFFE_HOST_CALLED cudaError_t cudaFreeHost(void* pointer) {
  return cuda_host::host_waits(), cuda_host::free_memory(pointer, true);
}

CAFFE_HOST_CALLED cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes,
                                         cudaMemcpyKind kind = cudaMemcpyDefault) {
  if (kind != cudaMemcpyDeviceToDevice) cuda_host::host_waits();
  cuda_host::memory_set(to, bytes, from);
  return memmove(to, from, bytes), cudaSuccess;
}
namespace cuda_host {
// Does an asynchronous copy of this kind write the host's memory?
inline bool is_to_host(const void* to, const void* from, cudaMemcpyKind kind) {
  if (kind != cudaMemcpyDefault) return kind == cudaMemcpyDeviceToHost;
  return memory_kind(from) == kDeviceMemory && memory_kind(to) != kDeviceMemory;
}
}  // namespace cuda_host
CAFFE_HOST_CALLED cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                              cudaStream_t = nullptr) {
  if (cuda_host::is_to_host(to, from, kind)) cuda_host::host_copies(to, bytes);
  return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice);
}
// Arguments of kernels; the host allocates none.
struct cudaPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
struct cudaExtent {
  size_t width, height, depth;
};
inline cudaPitchedPtr make_cudaPitchedPtr(void* ptr, size_t pitch, size_t xsize, size_t ysize) {
  return {ptr, pitch, xsize, ysize};
}
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
  return {width, height, depth};
}

CAFFE_HOST_CALLED cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                           size_t width, size_t height, cudaMemcpyKind kind) {
  if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
  if (kind != cudaMemcpyDeviceToDevice) cuda_host::host_waits();
  for (size_t row = 0; row < height; ++row)
    cudaMemcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
               width, cudaMemcpyDeviceToDevice);
  return cudaSuccess;
}
CAFFE_HOST_CALLED cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                                size_t from_pitch, size_t width, size_t height,
                                                cudaMemcpyKind kind, cudaStream_t = nullptr) {
  if (cuda_host::is_to_host(to, from, kind))
    for (size_t row = 0; row < height; ++row)
      cuda_host::host_copies(static_cast<char*>(to) + row * to_pitch, width);
  return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, cudaMemcpyDeviceToDevice);
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
CAFFE_HOST_CALLED cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes,
                                                 size_t offset = 0, cudaMemcpyKind = cudaMemcpyHostToDevice) {
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
CAFFE_HOST_CALLED cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                                   cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  if (offset > sizeof(T) || bytes > sizeof(T) - offset) return cudaErrorInvalidValue;
  cuda_host::host_waits();
  void* from;
  cudaGetSymbolAddress(&from, symbol);
  return memmove(to, static_cast<const char*>(from) + offset, bytes), cudaSuccess;
}
template <typename T>
CAFFE_HOST_CALLED cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes,
                                                        size_t offset = 0,
                                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost,
                                                        cudaStream_t = nullptr) {
  const cudaError_t error = cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
  if (!error && cuda_host::is_to_host(to, &symbol, kind)) cuda_host::host_copies(to, bytes);
  return error;
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
CAFFE_HOST_CALLED cudaError_t cudaMemset(void* to, int byte, size_t bytes) {
  if (cuda_host::memory_kind(to) != cuda_host::kDeviceMemory) cuda_host::host_waits();
  cuda_host::memory_set(to, bytes);
  return memset(to, byte, bytes), cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t = nullptr) {
  return cudaMemset(to, byte, bytes);
}

// What whole programs call. Managed and pinned memory is the process's memory, and all streams are one.
constexpr int cudaCpuDeviceId = -1;
enum {
  cudaMemAttachGlobal = 1,
  cudaMemAttachHost = 2,
  cudaHostAllocDefault = 0,
  cudaHostAllocPortable = 1,
  cudaHostAllocMapped = 2,
  cudaHostAllocWriteCombined = 4,
  cudaHostRegisterDefault = 0,
  cudaHostRegisterPortable = 1,
  cudaHostRegisterMapped = 2,
  cudaHostRegisterReadOnly = 8,
};
// How the host waits for a device. Here a launch returns when its kernel has ended.
enum {
  cudaDeviceScheduleAuto = 0,
  cudaDeviceScheduleSpin = 1,
  cudaDeviceScheduleYield = 2,
  cudaDeviceScheduleBlockingSync = 4,
  cudaDeviceBlockingSync = 4,
  cudaDeviceMapHost = 8,
};
inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
#define CUDART_CB
enum cudaLimit { cudaLimitStackSize = 0, cudaLimitPrintfFifoSize = 1, cudaLimitMallocHeapSize = 2 };
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly = 2,
  cudaMemAdviseSetPreferredLocation = 3,
  cudaMemAdviseUnsetPreferredLocation = 4,
  cudaMemAdviseSetAccessedBy = 5,
  cudaMemAdviseUnsetAccessedBy = 6,
};
enum cudaFuncCache {
  cudaFuncCachePreferNone = 0,
  cudaFuncCachePreferShared = 1,
  cudaFuncCachePreferL1 = 2,
  cudaFuncCachePreferEqual = 3,
};
template <typename T>
inline cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned = cudaMemAttachGlobal) {
  *pointer = static_cast<T*>(cuda_host::make_memory(bytes, cuda_host::kManagedMemory));
  if (*pointer) memset(*pointer, 0, bytes);  // as a new page is
  return *pointer ? cudaSuccess : cudaErrorMemoryAllocation;
}
template <typename T>
inline cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned) {
  return cudaMallocHost(pointer, bytes);
}
template <typename T>
inline cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned) {
  return *device = static_cast<T*>(host), cudaSuccess;
}
inline cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned) {
  return cuda_host::memory_known(memory, bytes, true), cudaSuccess;
}
// A thread has 512 KiB of stack (host_fibers.h). The heap of kernels is the process's.
inline cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t bytes) {
  return limit == cudaLimitStackSize && bytes > 512 * 1024 ? cudaErrorInvalidValue : cudaSuccess;
}
inline cudaError_t cudaHostUnregister(void* memory) {
  return cuda_host::memory_known(memory, 0, false), cudaSuccess;
}
template <typename T>
inline cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t) {
  return cudaMalloc(pointer, bytes);
}
inline cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }
template <typename T>
inline cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
  return *pitch = (width + 511) / 512 * 512, cudaMalloc(pointer, *pitch * height);
}
inline cudaError_t cudaMemset2D(void* to, size_t pitch, int byte, size_t width, size_t height) {
  for (size_t row = 0; row < height; ++row) cudaMemset(static_cast<char*>(to) + row * pitch, byte, width);
  return cudaSuccess;
}
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) {
  return cudaSuccess;
}
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
inline cudaError_t cudaMemGetInfo(size_t* left, size_t* total) {
  return *left = *total = size_t(8) << 30, cudaSuccess;
}
CAFFE_HOST_CALLED cudaError_t cudaEventQuery(cudaEvent_t) { return cuda_host::host_waits(), cudaSuccess; }
CAFFE_HOST_CALLED cudaError_t cudaStreamQuery(cudaStream_t) { return cuda_host::host_waits(), cudaSuccess; }
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  return cudaStreamCreate(stream);
}
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* most) {
  return *least = *most = 0, cudaSuccess;
}
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
template <typename Kernel>
inline cudaError_t cudaFuncSetCacheConfig(Kernel, cudaFuncCache) {
  return cudaSuccess;
}
inline cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 0, cudaSuccess; }
inline cudaError_t cudaLaunchHostFunc(cudaStream_t, void (*function)(void*), void* data) {
  return cuda_host::host_waits(), function(data), cudaSuccess;  // it comes after what was asked for before
}
inline cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                         void (*function)(cudaStream_t, cudaError_t, void*), void* data,
                                         unsigned) {
  return cuda_host::host_waits(), function(stream, cudaSuccess, data), cudaSuccess;
}
inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }

#include "cuda_api_more.h"
