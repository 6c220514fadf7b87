// cuRAND for the processor: the device functions. Kernel files often include this header without using it.
#pragma once

#include "../curand_kernel.h"
