// The services of the process that loaded the core (Python with torch, or a test program), and the context of
// the running call. Not a header of Caffe's.
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {
#include "caffe/layer_record.h"
}

namespace caffe {

extern caffe_services host_services;

// The running call, per thread. tools/cuda/for_nvcc.py puts kernel launches on current_stream().
struct CallContext {
  int mode = CAFFE_MODE_CPU;
  int device = CAFFE_ON_HOST;  // CUDA index; CAFFE_ON_HOST on the host backend, in either mode
  void* stream = nullptr;
  bool is_train = true;
  int64_t iteration = -1;  // of the training loop; -1: not known
};
extern thread_local CallContext call_context;

}  // namespace caffe
