// protobuf's path of include/caffe/proto/descriptor.hpp.
#ifndef GOOGLE_PROTOBUF_DESCRIPTOR_H_
#define GOOGLE_PROTOBUF_DESCRIPTOR_H_

#include "caffe/proto/descriptor.hpp"

#endif  // GOOGLE_PROTOBUF_DESCRIPTOR_H_
