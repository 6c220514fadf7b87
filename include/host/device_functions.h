// What kernels need of CUDA's header of this name is in this one.
#pragma once

#include "cuda_runtime.h"
