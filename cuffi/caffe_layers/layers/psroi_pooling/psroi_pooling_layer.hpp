#ifndef CAFFE_PSROI_POOLING_LAYER_HPP_
#define CAFFE_PSROI_POOLING_LAYER_HPP_

#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

/**
 * Position-sensitive RoI pooling (R-FCN, Dai 2016, eq. 1).
 *
 * A region is divided into group_size x group_size bins. Bin (i, j) of output channel d has its own score
 * map, bottom channel (d * group_size + i) * group_size + j. Its value is the mean of this map over the bin's
 * pixels.
 *
 * Bottoms: score maps [images, output_dim * group_size^2, height, width];
 *          regions [regions, 5]: image number, x1, y1, x2, y2 in the image's pixels, both ends included.
 * Top: [regions, output_dim, group_size, group_size]; a bin without pixels is 0.
 *
 * A region's corners are rounded, so its gradient is 0. The gradient to the score maps is deterministic: each pixel's
 * is the sum over the regions in their order.
 */
template <typename Dtype>
class PSROIPoolingLayer : public Layer<Dtype> {
 public:
  explicit PSROIPoolingLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);

  virtual inline const char* type() const { return "PSROIPooling"; }
  virtual inline int ExactNumBottomBlobs() const { return 2; }
  virtual inline int ExactNumTopBlobs() const { return 1; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);

  double spatial_scale_;
  int output_dim_, group_size_;
  int channels_, height_, width_;
};

}  // namespace caffe

#endif  // CAFFE_PSROI_POOLING_LAYER_HPP_
