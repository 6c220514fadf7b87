// protobuf's path of include/caffe/proto/text_format.hpp.
#ifndef GOOGLE_PROTOBUF_TEXT_FORMAT_H_
#define GOOGLE_PROTOBUF_TEXT_FORMAT_H_

#include "caffe/proto/text_format.hpp"

#endif  // GOOGLE_PROTOBUF_TEXT_FORMAT_H_
