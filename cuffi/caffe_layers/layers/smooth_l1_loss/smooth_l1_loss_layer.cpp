#include "caffe/layers/smooth_l1_loss_layer.hpp"

#include <cmath>
#include <vector>

namespace caffe {

template <typename Dtype>
void SmoothL1LossLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom,
                                          const vector<Blob<Dtype>*>& top) {
  LossLayer<Dtype>::LayerSetUp(bottom, top);
  const Dtype sigma = this->layer_param_.smooth_l1_loss_param().sigma();
  CHECK_GT(sigma, 0) << "sigma must be positive";
  sigma2_ = sigma * sigma;
}

template <typename Dtype>
void SmoothL1LossLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  LossLayer<Dtype>::Reshape(bottom, top);
  for (int i = 1; i < bottom.size(); ++i) {
    CHECK(bottom[i]->shape() == bottom[0]->shape())
        << "bottom " << i << " has shape " << bottom[i]->shape_string() << ", the prediction "
        << bottom[0]->shape_string();
  }
}

template <typename Dtype>
static inline Dtype SmoothL1(const Dtype x, const Dtype sigma2) {
  const Dtype size = std::abs(x);
  return size * sigma2 < 1 ? Dtype(0.5) * sigma2 * x * x : size - Dtype(0.5) / sigma2;
}

template <typename Dtype>
static inline Dtype SmoothL1Slope(const Dtype x, const Dtype sigma2) {
  return std::abs(x) * sigma2 < 1 ? sigma2 * x : (x > 0) - (x < 0);
}

template <typename Dtype>
void SmoothL1LossLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom,
                                           const vector<Blob<Dtype>*>& top) {
  const Dtype* prediction = bottom[0]->cpu_data();
  const Dtype* target = bottom[1]->cpu_data();
  const Dtype* inside = bottom.size() > 2 ? bottom[2]->cpu_data() : NULL;
  const Dtype* outside = bottom.size() > 3 ? bottom[3]->cpu_data() : NULL;
  double sum = 0;  // double, because it may have a million terms
  for (int i = 0; i < bottom[0]->count(); ++i) {
    const Dtype difference = prediction[i] - target[i];
    const Dtype loss = SmoothL1(inside ? inside[i] * difference : difference, sigma2_);
    sum += outside ? outside[i] * loss : loss;
  }
  top[0]->mutable_cpu_data()[0] = sum / bottom[0]->shape(0);
}

template <typename Dtype>
void SmoothL1LossLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top,
                                            const vector<bool>& propagate_down,
                                            const vector<Blob<Dtype>*>& bottom) {
  const Dtype* prediction = bottom[0]->cpu_data();
  const Dtype* target = bottom[1]->cpu_data();
  const Dtype* inside = bottom.size() > 2 ? bottom[2]->cpu_data() : NULL;
  const Dtype* outside = bottom.size() > 3 ? bottom[3]->cpu_data() : NULL;
  Dtype* diffs[4];
  for (int i = 0; i < 4; ++i) {
    diffs[i] = i < bottom.size() && propagate_down[i] ? bottom[i]->mutable_cpu_diff() : NULL;
  }
  const Dtype scale = top[0]->cpu_diff()[0] / bottom[0]->shape(0);
  for (int i = 0; i < bottom[0]->count(); ++i) {
    const Dtype difference = prediction[i] - target[i];
    const Dtype x = inside ? inside[i] * difference : difference;
    const Dtype slope = scale * (outside ? outside[i] : Dtype(1)) * SmoothL1Slope(x, sigma2_);
    const Dtype diff = inside ? inside[i] * slope : slope;
    if (diffs[0]) diffs[0][i] = diff;
    if (diffs[1]) diffs[1][i] = -diff;
    if (diffs[2]) diffs[2][i] = difference * slope;
    if (diffs[3]) diffs[3][i] = scale * SmoothL1(x, sigma2_);
  }
}

#ifdef CPU_ONLY
STUB_GPU(SmoothL1LossLayer);
#endif

INSTANTIATE_CLASS(SmoothL1LossLayer);
REGISTER_LAYER_CLASS(SmoothL1Loss);

}  // namespace caffe
