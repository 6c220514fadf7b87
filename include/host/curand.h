// cuRAND for the processor: kernel files include this header, most often without a use. It has the device's functions.
#pragma once

#include "../curand_kernel.h"
