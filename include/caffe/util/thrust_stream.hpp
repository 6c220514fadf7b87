// nvcc's own thrust, on the call's stream. tools/caffe/build.py leads the thrust/*.h of a layer that uses thrust on the
// device here first, and then to nvcc's. Not a header of upstream's.
#ifndef CAFFE_UTIL_THRUST_STREAM_HPP_
#define CAFFE_UTIL_THRUST_STREAM_HPP_

#ifndef __NVCC__
#error "thrust on the device: nvcc brings what this takes; other compilers' is not known here"
#endif

#include "caffe/util/device_alternate.hpp"

namespace caffe {

// Kernels that would start further ones know no stream of the host's.
inline __host__ __device__ cudaStream_t thrust_stream() {
#ifdef __CUDA_ARCH__
  return nullptr;
#else
  return current_stream();
#endif
}

}  // namespace caffe

// What thrust takes where nobody names a stream. Its headers are read once, and here first.
#undef cudaStreamLegacy
#define cudaStreamLegacy ::caffe::thrust_stream()
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
// Of these one brought the others until CUDA 12.
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
#include "caffe/util/thrust_functions.hpp"
#endif

#endif  // CAFFE_UTIL_THRUST_STREAM_HPP_
