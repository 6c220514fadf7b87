// Exceptions for errors that end the process in Caffe. Not a header of Caffe's.
#pragma once

#include "caffe/util/device_alternate.hpp"  // caffe::Error, the base, is what CUDA_CHECK throws

namespace cuffi {

// A failed CHECK or LOG(FATAL). what(): "file.cpp:12: Check failed: a == b (1 vs. 2) message".
class Fatal : public Error {
 public:
  using Error::Error;
};

// NOT_IMPLEMENTED: the layer has no code for this mode. Python may then run the code of the other mode.
class NotImplemented : public Fatal {
 public:
  using Fatal::Fatal;
};

}  // namespace cuffi
