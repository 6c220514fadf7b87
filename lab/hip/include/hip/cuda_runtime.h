// CUDA's names for HIP, whose own differ by three letters. Stands in for the toolkit's <cuda_runtime.h> on
// the HIP backend's include path only.
#ifndef CAFFE_HIP_CUDA_RUNTIME_H_
#define CAFFE_HIP_CUDA_RUNTIME_H_

#define HIP_DISABLE_WARP_SYNC_BUILTINS 1  // of newer versions; they take a wave's mask of 64 bits
#include <hip/hip_runtime.h>

#define cudaDevAttrMaxThreadsPerBlock hipDeviceAttributeMaxThreadsPerBlock
#define cudaDevAttrMultiProcessorCount hipDeviceAttributeMultiprocessorCount
#define cudaDeviceAttr hipDeviceAttribute_t
#define cudaDeviceGetAttribute hipDeviceGetAttribute
#define cudaDeviceProp hipDeviceProp_t
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaErrorInvalidConfiguration hipErrorInvalidConfiguration
#define cudaErrorInvalidDeviceFunction hipErrorInvalidDeviceFunction
#define cudaErrorInvalidValue hipErrorInvalidValue
#define cudaErrorMemoryAllocation hipErrorMemoryAllocation
#define cudaErrorUnknown hipErrorUnknown
#define cudaError_t hipError_t
#define cudaEventCreateWithFlags hipEventCreateWithFlags
#define cudaEventDestroy hipEventDestroy
#define cudaEventDisableTiming hipEventDisableTiming
#define cudaEventRecord hipEventRecord
#define cudaEventSynchronize hipEventSynchronize
#define cudaEvent_t hipEvent_t
#define cudaFree hipFree
#define cudaFreeAsync hipFreeAsync
#define cudaFreeHost hipHostFree
#define cudaFuncAttributeMaxDynamicSharedMemorySize hipFuncAttributeMaxDynamicSharedMemorySize
#define cudaFuncSetAttribute hipFuncSetAttribute
#define cudaGetDevice hipGetDevice
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetDeviceProperties hipGetDeviceProperties
#define cudaGetErrorName hipGetErrorName
#define cudaGetErrorString hipGetErrorString
#define cudaGetLastError hipGetLastError
#define cudaMalloc hipMalloc
#define cudaMallocAsync hipMallocAsync
#define cudaMallocHost hipHostMalloc
#define cudaMemcpy hipMemcpy
#define cudaMemcpy2D hipMemcpy2D
#define cudaMemcpy2DAsync hipMemcpy2DAsync
#define cudaMemcpyAsync hipMemcpyAsync
#define cudaMemcpyDefault hipMemcpyDefault
#define cudaMemcpyDeviceToDevice hipMemcpyDeviceToDevice
#define cudaMemcpyDeviceToHost hipMemcpyDeviceToHost
#define cudaMemcpyHostToDevice hipMemcpyHostToDevice
#define cudaMemcpyHostToHost hipMemcpyHostToHost
#define cudaMemcpyKind hipMemcpyKind
#define cudaMemcpyToSymbolAsync(symbol, ...) hipMemcpyToSymbolAsync(HIP_SYMBOL(symbol), __VA_ARGS__)
#define cudaMemset hipMemset
#define cudaMemsetAsync hipMemsetAsync
#define cudaPeekAtLastError hipPeekAtLastError
#define cudaSetDevice hipSetDevice
#define cudaStreamCaptureStatus hipStreamCaptureStatus
#define cudaStreamCaptureStatusNone hipStreamCaptureStatusNone
#define cudaStreamIsCapturing hipStreamIsCapturing
#define cudaStreamSynchronize hipStreamSynchronize
#define cudaStream_t hipStream_t
#define cudaSuccess hipSuccess

// The version whose names these are.
#define CUDART_VERSION 12000

#ifdef __HIP__
#define __CUDACC__ 1  // as nvcc says of itself

// CUDA's are of this type, HIP's of one of their own.
namespace caffe_hip {
__device__ inline uint3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
__device__ inline uint3 block_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
}  // namespace caffe_hip
#define threadIdx ::caffe_hip::thread_index()
#define blockIdx ::caffe_hip::block_index()

// A warp is a half of a wave of 64 lanes, or a wave of 32.
#define warpSize 32
template <typename T>
__device__ inline T __shfl_sync(unsigned, T value, int lane, int width = warpSize) {
  return __shfl(value, lane, width);
}
template <typename T>
__device__ inline T __shfl_up_sync(unsigned, T value, unsigned delta, int width = warpSize) {
  return __shfl_up(value, delta, width);
}
template <typename T>
__device__ inline T __shfl_down_sync(unsigned, T value, unsigned delta, int width = warpSize) {
  return __shfl_down(value, delta, width);
}
template <typename T>
__device__ inline T __shfl_xor_sync(unsigned, T value, int lanes, int width = warpSize) {
  return __shfl_xor(value, lanes, width);
}
__device__ inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return static_cast<unsigned>(__ballot(predicate) >> (__lane_id() & 32)) & mask;
}
__device__ inline unsigned __activemask() { return __ballot_sync(~0u, 1); }
__device__ inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
__device__ inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, !predicate) == 0;
}
__device__ inline void __syncwarp(unsigned = ~0u) {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}
#endif  // __HIP__

#endif  // CAFFE_HIP_CUDA_RUNTIME_H_
