// Forks' headers include cuFFT's header. This file includes our declarations instead.
#include "caffe/util/cufft.hpp"
