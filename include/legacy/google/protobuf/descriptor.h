// protobuf's path of include/caffe/proto/descriptor.hpp.
#include "caffe/proto/descriptor.hpp"
