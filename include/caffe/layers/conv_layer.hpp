#ifndef CAFFE_LAYERS_CONV_LAYER_HPP_
#define CAFFE_LAYERS_CONV_LAYER_HPP_

#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layers/base_conv_layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Convolution as a matrix product over patches.
template <typename Dtype>
class ConvolutionLayer : public BaseConvolutionLayer<Dtype> {
 public:
  explicit ConvolutionLayer(const LayerParameter& param) : BaseConvolutionLayer<Dtype>(param) {}
  const char* type() const override { return "Convolution"; }

 protected:
  void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override;
  void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                    const vector<Blob<Dtype>*>& bottom) override;
  void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                    const vector<Blob<Dtype>*>& bottom) override;
  bool reverse_dimensions() override { return false; }
  void compute_output_shape() override;

 private:
  // Both sides' passes, written once (caffe/layers/side.hpp).
  template <typename Side>
  void ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  template <typename Side>
  void BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                  const vector<Blob<Dtype>*>& bottom);
};

}  // namespace caffe

#endif  // CAFFE_LAYERS_CONV_LAYER_HPP_
