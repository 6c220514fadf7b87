// nvcc's thrust, on the call's stream. If a layer uses thrust on the device, cuffi/caffe_layers/make/prepare.py makes its
// thrust/*.h include this file first, and then nvcc's. Not a header of Caffe's.
#pragma once

#ifndef __NVCC__
#error "thrust on the device: nvcc brings what this takes; other compilers' is not known here"
#endif

#include "caffe/util/device_alternate.hpp"

namespace caffe {

// Device code that launches kernels cannot use the host's stream.
inline __host__ __device__ cudaStream_t thrust_stream() {
#ifdef __CUDA_ARCH__
  return nullptr;
#else
  return current_stream();
#endif
}

}  // namespace caffe

// thrust uses this stream by default. Its headers must be included here first, before any other
// file includes them.
#undef cudaStreamLegacy
#define cudaStreamLegacy ::caffe::thrust_stream()
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
// Until CUDA 12 each of these headers included others, and layers rely on it.
#include <thrust/count.h>
#include <thrust/extrema.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/replace.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#undef cudaStreamLegacy
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(0x1))

#include <thrust/version.h>
#if THRUST_VERSION >= 300000
#include "caffe_thrust/old_functions.h"
#endif
