// Names of CUDA's API that include/host lacks and these extensions use. They belong into include/host/cuda_api.h.
#pragma once

#ifdef CAFFE_HOST_BACKEND
#include <cuda_runtime.h>

constexpr cudaDeviceAttr cudaDevAttrMaxSharedMemoryPerBlockOptin = static_cast<cudaDeviceAttr>(97);
inline cudaError_t aten_attribute(int* value, cudaDeviceAttr attribute, int device) {
  if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin) return *value = 227 << 10, cudaSuccess;
  return cudaDeviceGetAttribute(value, attribute, device);
}
#define cudaDeviceGetAttribute aten_attribute
#ifdef ATEN_WITH_HALF
#include <cuda_bf16.h>
#include <cuda_fp16.h>
inline __half atomicAdd(__half* p, __half x) {
  return cuda_host::atomic_change(p, [x](__half old) { return old + x; });
}
inline __nv_bfloat16 atomicAdd(__nv_bfloat16* p, __nv_bfloat16 x) {
  return cuda_host::atomic_change(p, [x](__nv_bfloat16 old) { return old + x; });
}
#endif
#ifndef CUDA_VERSION
#define CUDA_VERSION 12000
#define CUDART_VERSION 12000
#endif
#endif
