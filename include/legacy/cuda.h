// Forks' headers include the driver's header, but use the runtime's functions.
#ifdef CAFFE_HOST_BACKEND
#include "cuda_runtime.h"
#else
#undef CUDA_SUCCESS
#include_next <cuda.h>
#endif
