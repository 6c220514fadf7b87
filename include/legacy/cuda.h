// Headers of forks include the driver's interface and use the runtime's.
#ifdef CAFFE_HOST_BACKEND
#include "cuda_runtime.h"
#else
#undef CUDA_SUCCESS
#include_next <cuda.h>
#endif
