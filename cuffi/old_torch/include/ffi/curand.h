// Kernels of 2017 include cuRAND's header, most often without a use. pip's nvcc comes without it.
#if __has_include_next(<curand.h>)
#include_next <curand.h>
#endif
