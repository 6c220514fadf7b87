// protobuf's path to what include/caffe/proto/descriptor.hpp has.
#ifndef GOOGLE_PROTOBUF_DESCRIPTOR_H_
#define GOOGLE_PROTOBUF_DESCRIPTOR_H_

#include "caffe/proto/descriptor.hpp"

#endif  // GOOGLE_PROTOBUF_DESCRIPTOR_H_
