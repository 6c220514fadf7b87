// Names for the declarations of layers that read data or images. A fork's header often declares such layers
// besides the layer that we port, and needs these names to compile. Nothing here reads anything: `port`
// refuses a layer that uses one of them (cuffi/caffe_layers/port/refusals.py).
#pragma once

#include "caffe/util/cv_geometry.hpp"

namespace caffe {

// A class that takes any arguments and does nothing.
struct Declared {
  template <typename... Arguments>
  explicit Declared(const Arguments&...) {}
};

class InternalThread {
 public:
  virtual ~InternalThread() {}
};

class DataReader : public Declared {
 public:
  using Declared::Declared;
};

template <typename T>
class BlockingQueue {};

namespace db {
class DB;
class Cursor;
class Transaction;
}  // namespace db

}  // namespace caffe

namespace cv {

#define CAFFE_DECLARED(name)             \
  struct name : public caffe::Declared { \
    using caffe::Declared::Declared;     \
  };
CAFFE_DECLARED(Mat)
CAFFE_DECLARED(RotatedRect)
CAFFE_DECLARED(Scalar)
CAFFE_DECLARED(VideoCapture)
#undef CAFFE_DECLARED

}  // namespace cv

typedef int hid_t;
typedef unsigned long long hsize_t;
