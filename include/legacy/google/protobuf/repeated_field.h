// protobuf's path of include/caffe/proto/message.hpp.
#ifndef GOOGLE_PROTOBUF_REPEATED_FIELD_H_
#define GOOGLE_PROTOBUF_REPEATED_FIELD_H_

#include "caffe/proto/message.hpp"

#endif  // GOOGLE_PROTOBUF_REPEATED_FIELD_H_
