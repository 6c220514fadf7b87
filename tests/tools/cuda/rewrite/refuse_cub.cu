// error: 3: the host has no <cub/cub.cuh>
#include <cuda_fp16.h>
# include <cub/cub.cuh>  // for cub::BlockReduce
