#include "caffe/layers/psroi_pooling_layer.hpp"

#include <vector>

#include "caffe/layers/psroi_pooling_bin.hpp"
#include "caffe/util/math_functions.hpp"

namespace caffe {

template <typename Dtype>
void PSROIPoolingLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom,
                                          const vector<Blob<Dtype>*>& top) {
  const PSROIPoolingParameter& param = this->layer_param_.psroi_pooling_param();
  spatial_scale_ = param.spatial_scale();
  output_dim_ = param.output_dim();
  group_size_ = param.group_size();
  CHECK_GT(spatial_scale_, 0) << "spatial_scale must be positive";
  CHECK_GT(output_dim_, 0) << "output_dim must be positive";
  CHECK_GT(group_size_, 0) << "group_size must be positive";
  CHECK_LE(group_size_, INT_MAX / group_size_ / output_dim_)
      << "output_dim * group_size^2 is the number of channels";
}

template <typename Dtype>
void PSROIPoolingLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  CHECK_EQ(bottom[0]->num_axes(), 4) << "expected score maps as images x channels x height x width";
  CHECK_EQ(bottom[1]->count(), bottom[1]->shape(0) * 5)
      << "expected 5 numbers a region: image, x1, y1, x2, y2";
  channels_ = bottom[0]->shape(1);
  height_ = bottom[0]->shape(2);
  width_ = bottom[0]->shape(3);
  CHECK_EQ(channels_, output_dim_ * group_size_ * group_size_)
      << "channels of the score maps; expected output_dim * group_size^2";
  vector<int> shape(4, group_size_);
  shape[0] = bottom[1]->shape(0);
  shape[1] = output_dim_;
  top[0]->Reshape(shape);
}

template <typename Dtype>
void PSROIPoolingLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom,
                                           const vector<Blob<Dtype>*>& top) {
  const Dtype* scores = bottom[0]->cpu_data();
  const Dtype* region = bottom[1]->cpu_data();
  Dtype* top_data = top[0]->mutable_cpu_data();
  for (int r = 0; r < top[0]->shape(0); ++r, region += 5) {
    const int image = PSROIImage(region);
    CHECK_GE(image, 0) << "number of the image of region " << r;
    CHECK_LT(image, bottom[0]->shape(0)) << "number of the image of region " << r;
    for (int c = 0; c < channels_; ++c) {
      const PSROISpan y(region[2], region[4], spatial_scale_, c / group_size_ % group_size_, group_size_,
                        height_);
      const PSROISpan x(region[1], region[3], spatial_scale_, c % group_size_, group_size_, width_);
      const Dtype* plane = scores + (image * channels_ + c) * height_ * width_;
      Dtype sum = 0;
      for (int h = y.begin; h < y.end; ++h) {
        for (int w = x.begin; w < x.end; ++w) sum += plane[h * width_ + w];
      }
      const int pixels = (y.end - y.begin) * (x.end - x.begin);
      top_data[r * channels_ + c] = pixels > 0 ? sum / pixels : 0;
    }
  }
}

template <typename Dtype>
void PSROIPoolingLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top,
                                            const vector<bool>& propagate_down,
                                            const vector<Blob<Dtype>*>& bottom) {
  if (propagate_down[1]) caffe_set(bottom[1]->count(), Dtype(0), bottom[1]->mutable_cpu_diff());
  if (!propagate_down[0]) return;
  const Dtype* region = bottom[1]->cpu_data();
  const Dtype* top_diff = top[0]->cpu_diff();
  Dtype* scores_diff = bottom[0]->mutable_cpu_diff();
  caffe_set(bottom[0]->count(), Dtype(0), scores_diff);
  for (int r = 0; r < top[0]->shape(0); ++r, region += 5) {
    for (int c = 0; c < channels_; ++c) {
      const PSROISpan y(region[2], region[4], spatial_scale_, c / group_size_ % group_size_, group_size_,
                        height_);
      const PSROISpan x(region[1], region[3], spatial_scale_, c % group_size_, group_size_, width_);
      Dtype* plane = scores_diff + (PSROIImage(region) * channels_ + c) * height_ * width_;
      const int pixels = (y.end - y.begin) * (x.end - x.begin);
      for (int h = y.begin; h < y.end; ++h) {
        for (int w = x.begin; w < x.end; ++w) plane[h * width_ + w] += top_diff[r * channels_ + c] / pixels;
      }
    }
  }
}

#ifdef CPU_ONLY
STUB_GPU(PSROIPoolingLayer);
#endif

INSTANTIATE_CLASS(PSROIPoolingLayer);
REGISTER_LAYER_CLASS(PSROIPooling);

}  // namespace caffe
