// A DataTransformer for layers that own one to show images, behind USE_OPENCV. It transforms nothing, because
// images are not supported here.
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

  // Each use of a DataTransformer starts with this call, so the error is raised here.
  void InitRand() {
    LOG(FATAL) << "DataTransformer: the toolkit neither reads nor shows images, which takes OpenCV. "
                  "If it was asked for by a field of the layer, such as visualize, leave that out.";
  }
};

}  // namespace caffe

#endif  // CAFFE_DATA_TRANSFORMER_HPP_
