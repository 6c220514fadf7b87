// protobuf's path of include/caffe/proto/message.hpp.
#include "caffe/proto/message.hpp"
