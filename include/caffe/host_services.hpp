// What the core asks of the process that loaded it (Python with torch; a test program has its own), and
// what the running call told the core. Not a header of upstream's.
#ifndef CAFFE_HOST_SERVICES_HPP_
#define CAFFE_HOST_SERVICES_HPP_

#include <stddef.h>
#include <stdint.h>

extern "C" {
#include "caffe/layer_record.h"
}

namespace caffe {

extern caffe_services host_services;

// The running call, per thread. Kernel launches are put on current_stream() by tools/cuda/for_nvcc.py.
struct CallContext {
  int mode = CAFFE_MODE_CPU;
  int device = CAFFE_ON_HOST;  // CUDA index; CAFFE_ON_HOST on the host backend, in either mode
  void* stream = nullptr;
  bool is_train = true;
  int64_t iteration = -1;  // of the training loop, if that says it
};
extern thread_local CallContext call_context;

}  // namespace caffe

#endif  // CAFFE_HOST_SERVICES_HPP_
