// protobuf's path of include/caffe/proto/text_format.hpp.
#include "caffe/proto/text_format.hpp"
