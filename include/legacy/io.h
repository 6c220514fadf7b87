// Windows' header of that name, and what a layer may use of it.
#ifndef CAFFE_LEGACY_IO_H_
#define CAFFE_LEGACY_IO_H_

#include <unistd.h>

#define _access access

#endif  // CAFFE_LEGACY_IO_H_
