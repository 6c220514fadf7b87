// Top = bottom^2, in many types: one is right, each of the others has a mistake of its own for make
// verify to find.
#ifndef CAFFE_SQUARE_LAYER_HPP_
#define CAFFE_SQUARE_LAYER_HPP_

#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layer.hpp"

namespace caffe {

template <typename Dtype>
class SquareLayer : public Layer<Dtype> {
 public:
  explicit SquareLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual const char* type() const { return this->layer_param_.type().c_str(); }
  virtual int MinBottomBlobs() const { return has_second() || has_regions() ? 2 : 1; }
  virtual int MaxBottomBlobs() const { return MinBottomBlobs(); }
  virtual int ExactNumTopBlobs() const { return 1; }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom);

  bool is(const char* type) const { return this->layer_param_.type() == type; }
  bool has_second() const {
    return is("SquareOfLabelled") || is("SquareSized") || is("SquareLeaving") || is("SquareUnpooling") ||
           is("SquareOfClasses");
  }
  bool has_regions() const { return is("SquareOfBoxes") || is("SquareOfRois"); }
  void CheckSizes();
  void CheckPropagation(const vector<bool>& propagate_down);
  int turn_ = 0;
};

}  // namespace caffe

#endif  // CAFFE_SQUARE_LAYER_HPP_
