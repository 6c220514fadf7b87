// A DataTransformer for layers that own one in order to show images, behind USE_OPENCV. There are no images
// here.
#ifndef CAFFE_DATA_TRANSFORMER_HPP_
#define CAFFE_DATA_TRANSFORMER_HPP_

#include "caffe/common.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

template <typename Dtype>
class DataTransformer {
 public:
  explicit DataTransformer(const TransformationParameter&) {}
  DataTransformer(const TransformationParameter&, Phase) {}
  virtual ~DataTransformer() {}

  // The first call of any use: here it ends, rather than in images that nobody gets to see.
  void InitRand() {
    LOG(FATAL) << "DataTransformer: the toolkit neither reads nor shows images, which takes OpenCV. "
                  "If it was asked for by a field of the layer, such as visualize, leave that out.";
  }
};

}  // namespace caffe

#endif  // CAFFE_DATA_TRANSFORMER_HPP_
