// Headers of forks include cuBLAS's own; what they use of it is declared there.
#include "caffe/util/cublas.hpp"
