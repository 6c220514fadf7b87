// thrust on the processor: for host memory, and for the host backend, whose device memory is host memory. A ported
// layer's thrust/*.h include this file, and so do those of programs and kernels (include/host/thrust).
#pragma once

#include "caffe_thrust/algorithms.h"
#include "caffe_thrust/complex.h"
#include "caffe_thrust/random.h"
#include "caffe_thrust/vectors.h"

#ifndef THRUST_VERSION
#define THRUST_MAJOR_VERSION 2
#define THRUST_MINOR_VERSION 8
#define THRUST_SUBMINOR_VERSION 2
#define THRUST_VERSION 200802
#endif
