// protobuf's path to what include/caffe/proto/message.hpp has.
#ifndef GOOGLE_PROTOBUF_MESSAGE_H_
#define GOOGLE_PROTOBUF_MESSAGE_H_

#include "caffe/proto/message.hpp"

#endif  // GOOGLE_PROTOBUF_MESSAGE_H_
