// Forks' headers include cuBLAS's header. This file includes our declarations instead.
#include "caffe/util/cublas.hpp"
