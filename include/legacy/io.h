// For layers that include Windows's header of this name: the functions that they use.
#ifndef CAFFE_LEGACY_IO_H_
#define CAFFE_LEGACY_IO_H_

#include <unistd.h>

#define _access access

#endif  // CAFFE_LEGACY_IO_H_
