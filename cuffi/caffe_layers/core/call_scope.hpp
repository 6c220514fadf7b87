// Sets this thread's mode, device, stream and phase while a call runs.
#pragma once

#include "caffe/common.hpp"

namespace caffe {

inline CallContext context_of(const caffe_call_record& record) {
  CallContext context;
  context.mode = static_cast<int>(record.mode);
  context.device = static_cast<int>(record.device);
  context.stream = reinterpret_cast<void*>(record.stream);
  context.is_train = record.phase == CAFFE_PHASE_TRAIN;
  context.iteration = record.iteration;
  return context;
}

class CallScope {
 public:
  CallScope(const CallContext& context, uint64_t seed) : before_(call_context) {
#ifndef CAFFE_HOST_BACKEND
    if (context.device >= 0) {
      CUDA_CHECK(cudaGetDevice(&device_before_));
      if (device_before_ == context.device) {
        device_before_ = -1;
      } else {
        CUDA_CHECK(cudaSetDevice(context.device));
      }
    }
#endif
    call_context = context;
    Caffe::begin_call(seed);
  }
  ~CallScope() {
    call_context = before_;
#ifndef CAFFE_HOST_BACKEND
    if (device_before_ >= 0) (void)cudaSetDevice(device_before_);
#endif
  }

 private:
  const CallContext before_;
  int device_before_ = -1;  // the device to restore, or -1

  DISABLE_COPY_AND_ASSIGN(CallScope);
};

}  // namespace caffe
