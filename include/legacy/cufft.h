// Headers of forks include cuFFT's own; what they use of it is declared there.
#include "caffe/util/cufft.hpp"
