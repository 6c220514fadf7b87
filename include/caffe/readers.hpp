// Names that readers of data and images use where they are declared. A fork's header often declares such layers
// beside the one that is wanted: with these names it can be compiled. Nothing here reads anything; a layer that
// uses one of them is refused when it is ported (tools/port/refusals.py).
#ifndef CAFFE_READERS_HPP_
#define CAFFE_READERS_HPP_

namespace caffe {

// What is made of anything, and does nothing.
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
CAFFE_DECLARED(Point)
CAFFE_DECLARED(Point2f)
CAFFE_DECLARED(Rect)
CAFFE_DECLARED(RotatedRect)
CAFFE_DECLARED(Scalar)
CAFFE_DECLARED(Size)
CAFFE_DECLARED(VideoCapture)
#undef CAFFE_DECLARED

}  // namespace cv

typedef int hid_t;
typedef unsigned long long hsize_t;

#endif  // CAFFE_READERS_HPP_
