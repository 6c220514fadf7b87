#include "square_layer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace caffe {

template <typename Dtype>
void SquareLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (is("SquareWithBlob")) {
    this->blobs_.resize(1);
    this->blobs_[0].reset(new Blob<Dtype>(vector<int>(1, 1)));
    this->blobs_[0]->mutable_cpu_data()[0] = 1;
    this->param_propagate_down_.resize(1, true);
  }
  if (is("SquareOfOutputs")) CheckSizes();
}

// Messages of two kinds: one names the field, one does not.
template <typename Dtype>
void SquareLayer<Dtype>::CheckSizes() {
  CHECK_GT(this->layer_param_.inner_product_param().num_output(), 0) << "num_output is missing";
  const int window = this->layer_param_.pooling_param().kernel_size();
  CHECK_GT(window, 0) << "no window";
}

template <typename Dtype>
void SquareLayer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (is("SquareOfSeventeen")) CHECK_EQ(bottom[0]->shape(1), 17) << "channels of the famous paper";
  if (is("SquareOfLots")) CHECK_EQ(bottom[0]->count() % 17, 0) << "channels of the famous paper";
  if (is("SquareThatCrashes") && bottom[0]->num_axes() != 2) *static_cast<volatile int*>(NULL) = 1;
  while (is("SquareInCircles") && bottom[0]->num_axes() != 2) usleep(1000);
  top[0]->ReshapeLike(*bottom[0]);
}

template <typename Dtype>
void SquareLayer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (is("SquareByKernels")) NOT_IMPLEMENTED;
  if (is("SquareInWords")) LOG(FATAL) << "Forward CPU not implemented.";
  const Dtype scale = this->blobs_.empty() ? 1 : this->blobs_[0]->cpu_data()[0];
  if (is("SquareOfTurns")) ++turn_;
  if (has_regions()) {  // without a look at how many numbers a region has, as many a layer
    const Dtype* region = bottom[1]->cpu_data() + 5 * (bottom[1]->count() / bottom[1]->shape(1) - 1);
    const Dtype image = region[0], edge = region[4];
    CHECK(image >= 0 && image < bottom[0]->shape(0) && edge >= 0 && edge == std::floor(edge)) << "a region";
  }
  for (int i = 0; is("SquareUnpooling") && i < bottom[1]->count(); ++i) {
    const int width = bottom[1]->width(), row = i / width % bottom[1]->height();
    const int at = static_cast<int>(bottom[1]->cpu_data()[i]);
    CHECK(at / (2 * width) / 2 == row && at % (2 * width) / 2 == i % width) << "a mask";
  }
  for (int i = 0; i < top[0]->count(); ++i) {
    const Dtype x = bottom[0]->cpu_data()[i];
    top[0]->mutable_cpu_data()[i] = is("SquareOfSize")      ? std::abs(x)
                                    : is("SquareInFloat")   ? static_cast<float>(x * x)
                                    : is("SquareInSteps")   ? std::floor(x * x)
                                    : is("SquareLeaving")   ? x * x + bottom[1]->cpu_data()[i] / 10000
                                    : is("SquareOfClasses") ? x * x * bottom[1]->cpu_data()[i]
                                    : is("SquareOfLogs")    ? std::exp(2 * std::log(x))
                                    : is("SquareOfTurns")   ? turn_ * x * x
                                    : is("SquareKeeping")   ? top[0]->cpu_data()[i] + x * x
                                    : is("SquareOfFew") && bottom[0]->num_axes() > 2 ? std::sqrt(Dtype(-1))
                                                                                     : scale * x * x;
  }
}

template <typename Dtype>
void SquareLayer<Dtype>::CheckPropagation(const vector<bool>& propagate_down) {
  if (is("SquareOneWay")) NOT_IMPLEMENTED;
  if (is("SquareOfLabelled") && propagate_down[1]) LOG(FATAL) << "cannot backpropagate to labels";
}

template <typename Dtype>
void SquareLayer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                                      const vector<Blob<Dtype>*>& bottom) {
  CheckPropagation(propagate_down);
  if (is("SquareByKernels")) NOT_IMPLEMENTED;
  if (is("SquareInSteps")) return;
  const Dtype scale = this->blobs_.empty() ? 1 : this->blobs_[0]->cpu_data()[0];
  const Dtype* const data = bottom[0]->cpu_data();
  const bool halved = is("SquareHalved")      ? this->phase_ == TRAIN
                      : is("SquareOfOutputs") ? bottom[0]->num_axes() == 2
                      : is("SquareOfShares")  ? *std::min_element(data, data + bottom[0]->count()) < 0
                                              : false;
  for (int i = 0; i < top[0]->count(); ++i) {
    const Dtype x = data[i], diff = top[0]->cpu_diff()[i];
    if (!this->blobs_.empty()) this->blobs_[0]->mutable_cpu_diff()[0] += diff * x * x / 2;
    if (!propagate_down[0]) continue;
    Dtype* bottom_diff = bottom[0]->mutable_cpu_diff() + i;
    if (halved) {
      *bottom_diff = x * diff;
    } else if (is("SquareAdding")) {
      *bottom_diff += 2 * x * diff;
    } else if (is("SquareDeaf")) {
      *bottom_diff = diff != 0 ? 2 * x : 0;
    } else if (is("SquareRootless")) {
      *bottom_diff = std::sqrt(Dtype(-1));
    } else if (is("SquareOfSize")) {
      *bottom_diff = x > 0 ? diff : -diff;
    } else if (is("SquareOfClasses")) {
      const Dtype label = bottom[1]->cpu_data()[i];  // 0 or 1
      *bottom_diff = 2 * x * label * label * diff;
    } else {
      *bottom_diff = scale * 2 * x * diff;
    }
  }
}

template <typename Dtype>
shared_ptr<Layer<Dtype> > GetSquare(const LayerParameter& param) {
  return shared_ptr<Layer<Dtype> >(new SquareLayer<Dtype>(param));
}

INSTANTIATE_CLASS(SquareLayer);
REGISTER_LAYER_CREATOR(SquareRight, GetSquare);
REGISTER_LAYER_CREATOR(SquareHalved, GetSquare);
REGISTER_LAYER_CREATOR(SquareAdding, GetSquare);
REGISTER_LAYER_CREATOR(SquareDeaf, GetSquare);
REGISTER_LAYER_CREATOR(SquareTorn, GetSquare);
REGISTER_LAYER_CREATOR(SquareTornBack, GetSquare);
REGISTER_LAYER_CREATOR(SquareOneWay, GetSquare);
REGISTER_LAYER_CREATOR(SquareByKernels, GetSquare);
REGISTER_LAYER_CREATOR(SquareInWords, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfLabelled, GetSquare);
REGISTER_LAYER_CREATOR(SquareSized, GetSquare);
REGISTER_LAYER_CREATOR(SquareLeaving, GetSquare);
REGISTER_LAYER_CREATOR(SquareInSteps, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfShares, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfSize, GetSquare);
REGISTER_LAYER_CREATOR(SquareInFloat, GetSquare);
REGISTER_LAYER_CREATOR(SquareWithBlob, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfSeventeen, GetSquare);
REGISTER_LAYER_CREATOR(SquareThatCrashes, GetSquare);
REGISTER_LAYER_CREATOR(SquareInCircles, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfBoxes, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfRois, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfFew, GetSquare);
REGISTER_LAYER_CREATOR(SquareRootless, GetSquare);
REGISTER_LAYER_CREATOR(SquareScatters, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfOutputs, GetSquare);
REGISTER_LAYER_CREATOR(SquareUnpooling, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfClasses, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfLogs, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfLots, GetSquare);
REGISTER_LAYER_CREATOR(SquareOfTurns, GetSquare);
REGISTER_LAYER_CREATOR(SquareKeeping, GetSquare);

}  // namespace caffe
