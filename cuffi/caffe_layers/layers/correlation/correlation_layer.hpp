#ifndef CAFFE_CORRELATION_LAYER_HPP_
#define CAFFE_CORRELATION_LAYER_HPP_

#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// The sizes for the kernels. Positions are those of the padded image: patch (y, x) of the first image starts
// at (max_displacement + y * stride_1, max_displacement + x * stride_1).
struct CorrelationSizes {
  int num, channels, height, width;
  int pad, kernel_size, max_displacement, stride_1, stride_2;
  int side, radius;               // displacements along one axis: side = 2 * radius + 1
  int top_height, top_width;      // patches
  int reach_height, reach_width;  // the area that patches cover
  int patch_count;                // values of a patch in all channels
};

/**
 * The similarity of the patches of two images, at each displacement (FlowNet, Dosovitskiy 2015, eq. 1).
 *
 * top[n, i * side + j, y, x] is the mean over channels and the kernel_size^2 pixels of a patch of
 *
 *     first(p) * second(p + d)        or, with correlation_type SUBTRACT, |first(p) - second(p + d)|
 *
 * where d = ((i - radius) * stride_2, (j - radius) * stride_2), radius = max_displacement / stride_2. The
 * images are padded by `pad` zeros. Both bottoms have a gradient. The gradient of |.| at 0 is 0.
 */
template <typename Dtype>
class CorrelationLayer : public Layer<Dtype> {
 public:
  explicit CorrelationLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);

  virtual inline const char* type() const { return "Correlation"; }
  virtual inline int ExactNumBottomBlobs() const { return 2; }
  virtual inline int ExactNumTopBlobs() const { return 1; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);

  CorrelationSizes sizes_;
  bool subtract_;
  Blob<Dtype> spread_;  // scratch of Backward_gpu: top's diff at each pixel that a patch covers
};

}  // namespace caffe

#endif  // CAFFE_CORRELATION_LAYER_HPP_
