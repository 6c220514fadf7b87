// Kernels of 2017 include cuRAND's header, often without a use. The host backend has the device's functions alone.
#ifdef CAFFE_HOST_BACKEND
#include <curand_kernel.h>
#elif defined(__has_include_next)
#if __has_include_next(<curand.h>)
#include_next <curand.h>
#endif
#endif
