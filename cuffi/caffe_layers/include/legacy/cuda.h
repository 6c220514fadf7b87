// Forks' headers include the driver's header, and have a constant of their own of this name.
#undef CUDA_SUCCESS
#include_next <cuda.h>
