// CUDA for Caffe layers: the runtime and the checks. Every operation is on the call's stream.
#ifndef CAFFE_UTIL_DEVICE_ALTERNATE_H_
#define CAFFE_UTIL_DEVICE_ALTERNATE_H_

#if !defined(CAFFE_HOST_BACKEND) && !defined(__CUDACC__)
#include <cuda_runtime.h>
#include <device_launch_parameters.h>  // threadIdx and its like, which a .hpp may name outside kernels' files

#include "host/cuda_min_max.h"
#endif

#include "caffe/host_services.hpp"
#include "caffe_cuda_macro.h"

namespace caffe {

// The stream of the running call. tools/cuda/for_nvcc.py adds it to every launch.
inline cudaStream_t current_stream() { return static_cast<cudaStream_t>(call_context.stream); }

}  // namespace caffe

#ifndef CAFFE_HOST_BACKEND

// A layer's own cudaMemcpy and cudaMemset would use the legacy default stream, out of order with
// torch's stream. Macros without parameters replace them, because that also works for the ::cudaMemcpy
// of later headers.
cudaError_t caffe_stream_memcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t caffe_stream_memcpy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                      cudaStream_t stream = ::caffe::current_stream());
cudaError_t caffe_stream_memcpy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                   size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t caffe_stream_memcpy_2d_async(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                         size_t width, size_t height, cudaMemcpyKind kind,
                                         cudaStream_t stream = ::caffe::current_stream());
cudaError_t caffe_stream_memset(void* to, int byte, size_t bytes,
                                cudaStream_t stream = ::caffe::current_stream());
// A layer's own stream would not wait for torch's stream, either. So it gets the call's stream.
inline cudaError_t caffe_stream_create(cudaStream_t* stream, unsigned = 0) {
  return *stream = ::caffe::current_stream(), cudaSuccess;
}
inline cudaError_t caffe_stream_destroy(cudaStream_t) { return cudaSuccess; }
#ifndef CAFFE_CORE
#define cudaStreamCreate caffe_stream_create
#define cudaStreamCreateWithFlags caffe_stream_create
#define cudaStreamDestroy caffe_stream_destroy
#define cudaMemcpy caffe_stream_memcpy
#define cudaMemcpyAsync caffe_stream_memcpy_async
#define cudaMemcpy2D caffe_stream_memcpy_2d
#define cudaMemcpy2DAsync caffe_stream_memcpy_2d_async
#define cudaMemset caffe_stream_memset
#define cudaMemsetAsync caffe_stream_memset
#endif

#endif  // CAFFE_HOST_BACKEND

// A name of the driver's API. Forks compare the runtime's results with it.
#define CUDA_SUCCESS cudaSuccess

#include "caffe/util/cublas.hpp"
#include "caffe/util/cudnn_names.hpp"

// In cuBLAS and cuRAND 0 means success, so their headers are not needed here.
#define CUBLAS_CHECK(condition)                                                                        \
  do {                                                                                                 \
    const int caffe_status_ = static_cast<int>(condition);                                             \
    CHECK_EQ(caffe_status_, 0) << " " << ::caffe::cublasGetErrorString(cublasStatus_t(caffe_status_)); \
  } while (0)

#define CURAND_CHECK(condition)                            \
  do {                                                     \
    const int caffe_status_ = static_cast<int>(condition); \
    CHECK_EQ(caffe_status_, 0) << " cuRAND's status";      \
  } while (0)

// Layers use these macros under #ifdef CPU_ONLY, which we never define.
#define NO_GPU LOG(FATAL) << "Cannot use GPU in CPU-only Caffe: check mode."

#define STUB_GPU_FORWARD(classname, funcname)                                    \
  template <typename Dtype>                                                      \
  void classname<Dtype>::funcname##_gpu(const std::vector<Blob<Dtype>*>& bottom, \
                                        const std::vector<Blob<Dtype>*>& top) {  \
    NO_GPU;                                                                      \
  }

#define STUB_GPU_BACKWARD(classname, funcname)                                     \
  template <typename Dtype>                                                        \
  void classname<Dtype>::funcname##_gpu(const std::vector<Blob<Dtype>*>& top,      \
                                        const std::vector<bool>& propagate_down,   \
                                        const std::vector<Blob<Dtype>*>& bottom) { \
    NO_GPU;                                                                        \
  }

#define STUB_GPU(classname)            \
  STUB_GPU_FORWARD(classname, Forward) \
  STUB_GPU_BACKWARD(classname, Backward)

#endif  // CAFFE_UTIL_DEVICE_ALTERNATE_H_
