#ifndef CAFFE_NORMALIZE_LAYER_HPP_
#define CAFFE_NORMALIZE_LAYER_HPP_

#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

/**
 * L2 normalisation with a learned scale, as ParseNet (Liu 2015) and SSD use it:
 *
 *     top = scale_c * bottom / sqrt(eps + sum bottom^2)
 *
 * The sum is over the channels of one position, or over a whole image with across_spatial. The scale is one
 * number (channel_shared) or one per channel.
 *
 * Backward needs only the bottom, and nothing that Forward computed.
 */
template <typename Dtype>
class NormalizeLayer : public Layer<Dtype> {
 public:
  explicit NormalizeLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);

  virtual inline const char* type() const { return "Normalize"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual inline int ExactNumTopBlobs() const { return 1; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);

  // Writes 1 / norm of each image or position to the scratch blobs. With a top_diff also sum_c scale_c *
  // top_diff * bottom. With across_spatial it takes two steps, because one block per image would leave the
  // GPU idle.
  void Reduce_gpu(const Dtype* bottom, const Dtype* top_diff);

  bool across_spatial_;
  bool channel_shared_;
  Dtype eps_;
  int num_, channels_, spatial_;
  int chunks_;  // across_spatial: blocks per image

  // Scratch: each call writes it before it reads it.
  Blob<Dtype> inverse_norm_, dot_;
  Blob<Dtype> chunk_squares_, chunk_dots_;
  Blob<Dtype> channel_diff_;
};

}  // namespace caffe

#endif  // CAFFE_NORMALIZE_LAYER_HPP_
