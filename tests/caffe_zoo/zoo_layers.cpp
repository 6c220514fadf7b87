#include "caffe/layers/zoo_layers.hpp"

#include <vector>

#include "caffe/filler.hpp"
#include "caffe/net.hpp"
#include "caffe/util/math_functions.hpp"

namespace caffe {

#define ZOO_FORWARD_CPU(name) \
  template <typename Dtype>   \
  void name##Layer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top)
#define ZOO_BACKWARD_CPU(name)                                                                               \
  template <typename Dtype>                                                                                  \
  void name##Layer<Dtype>::Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down, \
                                        const vector<Blob<Dtype>*>& bottom)
#define ZOO_RESHAPE(name)   \
  template <typename Dtype> \
  void name##Layer<Dtype>::Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top)

// ------------------------------------------------------------------------------------------- Ramp

ZOO_RESHAPE(Ramp) {
  NeuronLayer<Dtype>::Reshape(bottom, top);
  CHECK_LE(bottom[0]->num_axes(), 4) << "no more than four axes";
}

ZOO_FORWARD_CPU(Ramp) {
  const Dtype slope = this->layer_param_.zoo_param().slope();
  const Dtype* x = bottom[0]->cpu_data();
  Dtype* y = top[0]->mutable_cpu_data();
  for (int i = 0; i < bottom[0]->count(); ++i) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

ZOO_BACKWARD_CPU(Ramp) {
  if (!propagate_down[0]) return;
  const Dtype slope = this->layer_param_.zoo_param().slope();
  const Dtype* y = top[0]->cpu_data();
  const Dtype* dy = top[0]->cpu_diff();
  Dtype* dx = bottom[0]->mutable_cpu_diff();
  for (int i = 0; i < bottom[0]->count(); ++i) dx[i] = y[i] > 0 ? dy[i] : slope * dy[i];
}

INSTANTIATE_CLASS(RampLayer);
REGISTER_LAYER_CLASS(Ramp);

// ------------------------------------------------------------------------------------------- Pair

ZOO_RESHAPE(Pair) {
  CHECK_EQ(bottom[0]->count(), bottom[1]->count()) << "a pair is of one size";
  for (int i = 0; i < top.size(); ++i) top[i]->ReshapeLike(*bottom[0]);
}

ZOO_FORWARD_CPU(Pair) { NOT_IMPLEMENTED; }
ZOO_BACKWARD_CPU(Pair) { NOT_IMPLEMENTED; }

INSTANTIATE_CLASS(PairLayer);
REGISTER_LAYER_CLASS(Pair);

// -------------------------------------------------------------------------------------- Rewriting

ZOO_RESHAPE(Rewriting) {
  LossLayer<Dtype>::Reshape(bottom, top);
  CHECK_EQ(bottom[0]->count(1), bottom[1]->count(1)) << "Inputs must have the same dimension.";
  diff_.ReshapeLike(*bottom[0]);
}

ZOO_FORWARD_CPU(Rewriting) {
  const int count = bottom[0]->count();
  caffe_sub(count, bottom[0]->cpu_data(), bottom[1]->cpu_data(), diff_.mutable_cpu_data());
  top[0]->mutable_cpu_data()[0] = caffe_cpu_dot(count, diff_.cpu_data(), diff_.cpu_data()) / count / 2;
}

ZOO_BACKWARD_CPU(Rewriting) {
  const int count = bottom[0]->count();
  caffe_scal(count, top[0]->cpu_diff()[0] / count, diff_.mutable_cpu_data());
  for (int i = 0; i < 2; ++i) {
    if (!propagate_down[i]) continue;
    caffe_cpu_axpby(count, Dtype(i == 0 ? 1 : -1), diff_.cpu_data(), Dtype(0), bottom[i]->mutable_cpu_diff());
  }
}

INSTANTIATE_CLASS(RewritingLayer);
REGISTER_LAYER_CLASS(Rewriting);

// ------------------------------------------------------------------------------------------ Noise

ZOO_RESHAPE(Noise) {
  NeuronLayer<Dtype>::Reshape(bottom, top);
  mask_.ReshapeLike(*bottom[0]);
}

ZOO_FORWARD_CPU(Noise) {
  const int count = bottom[0]->count();
  Dtype* mask = mask_.mutable_cpu_data();
  caffe_set(count, Dtype(1), mask);
  if (this->phase_ == TRAIN) {
    caffe_rng_uniform(count, Dtype(0), Dtype(1), mask);
    for (int i = 0; i < count; ++i) mask[i] = mask[i] < 0.5;
  }
  caffe_mul(count, bottom[0]->cpu_data(), mask_.cpu_data(), top[0]->mutable_cpu_data());
}

ZOO_BACKWARD_CPU(Noise) {
  if (this->layer_param_.zoo_param().slope()) NOT_IMPLEMENTED;
  caffe_mul(bottom[0]->count(), top[0]->cpu_diff(), mask_.cpu_data(), bottom[0]->mutable_cpu_diff());
}

INSTANTIATE_CLASS(NoiseLayer);
REGISTER_LAYER_CLASS(Noise);

// ----------------------------------------------------------------------------------------- Affine

template <typename Dtype>
void AffineLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  this->blobs_.resize(2);
  for (int i = 0; i < 2; ++i) this->blobs_[i].reset(new Blob<Dtype>(vector<int>(1, bottom[0]->shape(1))));
  shared_ptr<Filler<Dtype> > filler(GetFiller<Dtype>(this->layer_param_.zoo_param().filler()));
  filler->Fill(this->blobs_[0].get());
  this->param_propagate_down_.resize(2, true);
}

ZOO_RESHAPE(Affine) {
  CHECK_EQ(bottom[0]->shape(1), this->blobs_[0]->count()) << "the number of channels changed";
  top[0]->ReshapeLike(*bottom[0]);
}

ZOO_FORWARD_CPU(Affine) {
  const int channels = bottom[0]->shape(1), inner = bottom[0]->count(2);
  for (int i = 0; i < bottom[0]->count(); ++i) {
    const int c = i / inner % channels;
    top[0]->mutable_cpu_data()[i] =
        this->blobs_[0]->cpu_data()[c] * bottom[0]->cpu_data()[i] + this->blobs_[1]->cpu_data()[c];
  }
}

ZOO_BACKWARD_CPU(Affine) {
  const int channels = bottom[0]->shape(1), inner = bottom[0]->count(2);
  for (int i = 0; i < bottom[0]->count(); ++i) {
    const int c = i / inner % channels;
    const Dtype diff = top[0]->cpu_diff()[i];
    if (this->param_propagate_down_[0])
      this->blobs_[0]->mutable_cpu_diff()[c] += diff * bottom[0]->cpu_data()[i];
    if (this->param_propagate_down_[1]) this->blobs_[1]->mutable_cpu_diff()[c] += diff;
    if (propagate_down[0]) bottom[0]->mutable_cpu_diff()[i] = diff * this->blobs_[0]->cpu_data()[c];
  }
}

INSTANTIATE_CLASS(AffineLayer);
REGISTER_LAYER_CLASS(Affine);

// --------------------------------------------------------------------------------------- Positive

ZOO_RESHAPE(Positive) { top[0]->Reshape(vector<int>(1, bottom[0]->count())); }

ZOO_FORWARD_CPU(Positive) {
  const Dtype* x = bottom[0]->cpu_data();
  vector<Dtype> kept;
  for (int i = 0; i < bottom[0]->count(); ++i)
    if (x[i] > 0) kept.push_back(x[i]);
  top[0]->Reshape(vector<int>(1, kept.size()));
  caffe_copy<Dtype>(kept.size(), kept.data(), top[0]->mutable_cpu_data());
}

ZOO_BACKWARD_CPU(Positive) {
  const Dtype* x = bottom[0]->cpu_data();
  for (int i = 0, at = 0; i < bottom[0]->count(); ++i)
    if (x[i] > 0) bottom[0]->mutable_cpu_diff()[i] = top[0]->cpu_diff()[at++];
}

INSTANTIATE_CLASS(PositiveLayer);
REGISTER_LAYER_CLASS(Positive);

// ----------------------------------------------------------------------------------------- Shared

ZOO_RESHAPE(Shared) {
  top[0]->Reshape(vector<int>(1, bottom[0]->count()));
  top[0]->ShareData(*bottom[0]);
  top[0]->ShareDiff(*bottom[0]);
}

ZOO_FORWARD_CPU(Shared) {}
ZOO_BACKWARD_CPU(Shared) {}

INSTANTIATE_CLASS(SharedLayer);
REGISTER_LAYER_CLASS(Shared);

// ---------------------------------------------------------------------------------------- Kernels

ZOO_FORWARD_CPU(Kernels) {
  caffe_cpu_scale(bottom[0]->count(), Dtype(2), bottom[0]->cpu_data(), top[0]->mutable_cpu_data());
}
ZOO_BACKWARD_CPU(Kernels) { NOT_IMPLEMENTED; }

INSTANTIATE_CLASS(KernelsLayer);
REGISTER_LAYER_CLASS(Kernels);

// --------------------------------------------------------------------------------------- Counting

ZOO_FORWARD_CPU(Counting) { caffe_set(bottom[0]->count(), Dtype(++calls_), top[0]->mutable_cpu_data()); }
ZOO_BACKWARD_CPU(Counting) {
  if (propagate_down[0]) NOT_IMPLEMENTED;
}

INSTANTIATE_CLASS(CountingLayer);
REGISTER_LAYER_CLASS(Counting);

// --------------------------------------------------------------------------------------- Stopping

ZOO_FORWARD_CPU(Stopping) {
  caffe_copy(bottom[0]->count(), bottom[0]->cpu_data(), top[0]->mutable_cpu_data());
}
ZOO_BACKWARD_CPU(Stopping) {}

INSTANTIATE_CLASS(StoppingLayer);
REGISTER_LAYER_CLASS(Stopping);

// --------------------------------------------------------------------------------------- Mirrored

template <typename Dtype>
void MirroredLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  CHECK_GE(bottom[0]->num_axes(), 2) << "a table needs channels";
  held_ = new int(1);
}
ZOO_RESHAPE(Mirrored) {
  top[0]->ReshapeLike(*bottom[0]);
  table_.Reshape(vector<int>(1, bottom[0]->shape(1)));
  for (int c = 0; c < table_.count(); ++c) table_.mutable_cpu_data()[c] = c + kFirst;
}
ZOO_FORWARD_CPU(Mirrored) { LOG(FATAL) << "Mirrored: CPU Forward not yet implemented."; }
ZOO_BACKWARD_CPU(Mirrored) { NOT_IMPLEMENTED; }

template <typename Dtype>
const Dtype MirroredLayer<Dtype>::kFirst;

INSTANTIATE_CLASS(MirroredLayer);
REGISTER_LAYER_CLASS(Mirrored);

// -------------------------------------------------------------------------------------- Scheduled

ZOO_FORWARD_CPU(Scheduled) {
  rate_ = this->GetNet()->iter();
  caffe_cpu_scale(bottom[0]->count(), rate_, bottom[0]->cpu_data(), top[0]->mutable_cpu_data());
}
ZOO_BACKWARD_CPU(Scheduled) {
  caffe_cpu_scale(top[0]->count(), rate_, top[0]->cpu_diff(), bottom[0]->mutable_cpu_diff());
}

INSTANTIATE_CLASS(ScheduledLayer);
REGISTER_LAYER_CLASS(Scheduled);

// ---------------------------------------------------------------------------------------- Adding

#define ZOO_ADDING_CPU(name)                                                                     \
  ZOO_FORWARD_CPU(name) {                                                                        \
    caffe_axpy(bottom[0]->count(), Dtype(1), bottom[0]->cpu_data(), top[0]->mutable_cpu_data()); \
  }                                                                                              \
  ZOO_BACKWARD_CPU(name) {                                                                       \
    caffe_axpy(top[0]->count(), Dtype(1), top[0]->cpu_diff(), bottom[0]->mutable_cpu_diff());    \
  }

ZOO_RESHAPE(Adding) { top[0]->ReshapeLike(*bottom[0]); }
ZOO_ADDING_CPU(Adding)
INSTANTIATE_CLASS(AddingLayer);
REGISTER_LAYER_CLASS(Adding);

ZOO_ADDING_CPU(AddingNeuron)
INSTANTIATE_CLASS(AddingNeuronLayer);
REGISTER_LAYER_CLASS(AddingNeuron);

// ----------------------------------------------------------------------------------------- Sided

ZOO_FORWARD_CPU(Sided) {
  for (int i = 0; i < bottom[0]->count(); ++i) top[0]->mutable_cpu_data()[i] = bottom[0]->cpu_data()[i] + 1;
}
ZOO_BACKWARD_CPU(Sided) { caffe_copy(top[0]->count(), top[0]->cpu_diff(), bottom[0]->mutable_cpu_diff()); }

INSTANTIATE_CLASS(SidedLayer);
REGISTER_LAYER_CLASS(Sided);

// ----------------------------------------------------------------------------------------- Early

#define ZOO_EARLY_CPU(name)                                                                               \
  ZOO_FORWARD_CPU(name) {                                                                                 \
    const int n = bottom[0]->count();                                                                     \
    caffe_copy(n, bottom[0]->cpu_data(), bottom[0]->mutable_cpu_diff());                                  \
    caffe_mul(n, bottom[0]->cpu_data(), bottom[0]->cpu_data(), top[0]->mutable_cpu_data());               \
    caffe_scal(n, Dtype(0.5), top[0]->mutable_cpu_data());                                                \
  }                                                                                                       \
  ZOO_BACKWARD_CPU(name) {                                                                                \
    caffe_mul(top[0]->count(), top[0]->cpu_diff(), bottom[0]->cpu_diff(), bottom[0]->mutable_cpu_diff()); \
  }

ZOO_RESHAPE(Early) { top[0]->ReshapeLike(*bottom[0]); }
ZOO_EARLY_CPU(Early)
INSTANTIATE_CLASS(EarlyLayer);
REGISTER_LAYER_CLASS(Early);

ZOO_EARLY_CPU(EarlyNeuron)
INSTANTIATE_CLASS(EarlyNeuronLayer);
REGISTER_LAYER_CLASS(EarlyNeuron);

ZOO_RESHAPE(EarlyLoss) { top[0]->ReshapeLike(*bottom[0]); }
ZOO_FORWARD_CPU(EarlyLoss) {
  const int n = bottom[0]->count();
  caffe_mul(n, bottom[0]->cpu_data(), top[0]->cpu_diff(), bottom[0]->mutable_cpu_diff());
  caffe_mul(n, bottom[0]->cpu_data(), bottom[0]->cpu_data(), top[0]->mutable_cpu_data());
  caffe_scal(n, Dtype(0.5), top[0]->mutable_cpu_data());
}
ZOO_BACKWARD_CPU(EarlyLoss) {}

INSTANTIATE_CLASS(EarlyLossLayer);
REGISTER_LAYER_CLASS(EarlyLoss);

// --------------------------------------------------------------------------------------- Running

template <typename Dtype>
void RunningLayer<Dtype>::LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  this->blobs_.resize(2);
  for (auto& blob : this->blobs_) blob.reset(new Blob<Dtype>(vector<int>(1, 1)));
  if (!this->layer_param_.zoo_param().early()) return;
  while (this->layer_param_.param_size() < 2) this->layer_param_.add_param();
  this->layer_param_.mutable_param(0)->set_lr_mult(0);
  this->layer_param_.mutable_param(1)->set_decay_mult(0.25);
}
ZOO_RESHAPE(Running) { top[0]->ReshapeLike(*bottom[0]); }
ZOO_FORWARD_CPU(Running) {  // a blob that is negative stays as it is
  for (int i = 0; i < 2; ++i)
    if (this->blobs_[i]->cpu_data()[0] >= 0) this->blobs_[i]->mutable_cpu_data()[0] += 1 + i;
  caffe_cpu_scale(bottom[0]->count(), Dtype(2), bottom[0]->cpu_data(), top[0]->mutable_cpu_data());
}
ZOO_BACKWARD_CPU(Running) {
  caffe_cpu_scale(top[0]->count(), Dtype(2), top[0]->cpu_diff(), bottom[0]->mutable_cpu_diff());
}

INSTANTIATE_CLASS(RunningLayer);
REGISTER_LAYER_CLASS(Running);

// ---------------------------------------------------------------------------------------- Finite

ZOO_RESHAPE(Finite) {}
ZOO_FORWARD_CPU(Finite) {
  for (int i = 0; i < bottom[0]->count(); ++i)
    CHECK(std::isfinite(bottom[0]->cpu_data()[i])) << "number " << i;
}
ZOO_BACKWARD_CPU(Finite) {}

INSTANTIATE_CLASS(FiniteLayer);
REGISTER_LAYER_CLASS(Finite);

// --------------------------------------------------------------------------------------- Careless

ZOO_RESHAPE(Careless) {
  top[0]->ReshapeLike(*bottom[0]);
  if (this->layer_param_.zoo_param().slope() && bottom[0]->num() > 1) top[1]->ReshapeLike(*bottom[0]);
}
ZOO_FORWARD_CPU(Careless) {
  caffe_mul(bottom[0]->count(), bottom[0]->cpu_data(), bottom[1]->cpu_data(), top[0]->mutable_cpu_data());
}
ZOO_BACKWARD_CPU(Careless) { NOT_IMPLEMENTED; }

INSTANTIATE_CLASS(CarelessLayer);
REGISTER_LAYER_CLASS(Careless);

// --------------------------------------------------------------------------------------- Exposing

template <typename Dtype>
void ExposingLayer<Dtype>::Share(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const string memory = this->layer_param_.zoo_param().memory();
  if (memory == "kept") top[1]->ShareData(kept_);
  if (memory == "top") top[1]->ShareData(*top[0]);
  if (memory == "bottom") top[1]->ShareData(*bottom[0]);
  if (memory == "in top") kept_.ShareData(*top[1]);
  if (memory == "buffer") {
    buffer_.resize(bottom[0]->count() + 1);
    top[1]->set_cpu_data(buffer_.data());
  }
}

ZOO_RESHAPE(Exposing) {
  kept_.ReshapeLike(*bottom[0]);
  for (int i = 0; i < 2; ++i) top[i]->ReshapeLike(*bottom[0]);
  if (this->layer_param_.zoo_param().early()) Share(bottom, top);
}

ZOO_FORWARD_CPU(Exposing) {
  const int n = bottom[0]->count();
  if (!this->layer_param_.zoo_param().early()) Share(bottom, top);
  caffe_exp(n, bottom[0]->cpu_data(), kept_.mutable_cpu_data());
  caffe_copy(n, kept_.cpu_data(), top[0]->mutable_cpu_data());
  if (this->layer_param_.zoo_param().memory() == "buffer")
    caffe_copy(n, kept_.cpu_data(), top[1]->mutable_cpu_data());
}

ZOO_BACKWARD_CPU(Exposing) {
  caffe_mul(bottom[0]->count(), top[0]->cpu_diff(), kept_.cpu_data(), bottom[0]->mutable_cpu_diff());
}

INSTANTIATE_CLASS(ExposingLayer);
REGISTER_LAYER_CLASS(Exposing);

// ----------------------------------------------------------------------------------------- Halves

ZOO_RESHAPE(Halves) {
  vector<int> shape = bottom[0]->shape();
  shape.back() /= 2;
  for (int i = 0; i < 2; ++i) top[i]->Reshape(shape);
}

ZOO_FORWARD_CPU(Halves) { NOT_IMPLEMENTED; }
ZOO_BACKWARD_CPU(Halves) { NOT_IMPLEMENTED; }

INSTANTIATE_CLASS(HalvesLayer);
REGISTER_LAYER_CLASS(Halves);

}  // namespace caffe
