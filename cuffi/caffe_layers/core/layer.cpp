#include "caffe/layer.hpp"

#include <string.h>

#include <atomic>

#include "caffe/util/math_functions.hpp"

namespace caffe {

std::atomic<int> layer_memory_byte{0};  // layer_ffi.cpp sets it

__attribute__((noinline)) void* layer_memory(size_t size, size_t alignment) {
  return memset(::operator new(size, std::align_val_t(alignment)), layer_memory_byte, size);
}

void free_layer_memory(void* memory, size_t alignment) {
  ::operator delete(memory, std::align_val_t(alignment));
}

template <typename Dtype>
Layer<Dtype>::Layer(const LayerParameter& param) : layer_param_(param), phase_(param.phase()) {
  for (int i = 0; i < layer_param_.blobs_size(); ++i) {
    blobs_.push_back(shared_ptr<Blob<Dtype>>(new Blob<Dtype>()));
    blobs_[i]->FromProto(layer_param_.blobs(i));
  }
}

template <typename Dtype>
Dtype Layer<Dtype>::Forward(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  Reshape(bottom, top);
  const bool on_gpu = Caffe::mode() == Caffe::GPU;
  on_gpu ? Forward_gpu(bottom, top) : Forward_cpu(bottom, top);
  Dtype loss = 0;
  for (int i = 0; i < static_cast<int>(top.size()); ++i) {
    if (!this->loss(i)) continue;
    Dtype part = 0;
    if (on_gpu) {
      caffe_gpu_dot(top[i]->count(), top[i]->gpu_data(), top[i]->gpu_diff(), &part);
    } else {
      part = caffe_cpu_dot(top[i]->count(), top[i]->cpu_data(), top[i]->cpu_diff());
    }
    loss += part;
  }
  return loss;
}

template <typename Dtype>
void Layer<Dtype>::ToProto(LayerParameter* param, bool write_diff) {
  param->CopyFrom(layer_param_);
  param->clear_blobs();
  for (const auto& blob : blobs_) blob->ToProto(param->add_blobs(), write_diff);
}

template <typename Dtype>
void Layer<Dtype>::CheckBlobCounts(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  if (ExactNumBottomBlobs() >= 0) {
    CHECK_EQ(ExactNumBottomBlobs(), bottom.size())
        << type() << " Layer takes " << ExactNumBottomBlobs() << " bottom blob(s) as input.";
  }
  if (MinBottomBlobs() >= 0) {
    CHECK_LE(MinBottomBlobs(), bottom.size())
        << type() << " Layer takes at least " << MinBottomBlobs() << " bottom blob(s) as input.";
  }
  if (MaxBottomBlobs() >= 0) {
    CHECK_GE(MaxBottomBlobs(), bottom.size())
        << type() << " Layer takes at most " << MaxBottomBlobs() << " bottom blob(s) as input.";
  }
  if (ExactNumTopBlobs() >= 0) {
    CHECK_EQ(ExactNumTopBlobs(), top.size())
        << type() << " Layer produces " << ExactNumTopBlobs() << " top blob(s) as output.";
  }
  if (MinTopBlobs() >= 0) {
    CHECK_LE(MinTopBlobs(), top.size())
        << type() << " Layer produces at least " << MinTopBlobs() << " top blob(s) as output.";
  }
  if (MaxTopBlobs() >= 0) {
    CHECK_GE(MaxTopBlobs(), top.size())
        << type() << " Layer produces at most " << MaxTopBlobs() << " top blob(s) as output.";
  }
  if (EqualNumBottomTopBlobs()) {
    CHECK_EQ(bottom.size(), top.size())
        << type() << " Layer produces one top blob as output for each bottom blob input.";
  }
}

template <typename Dtype>
void Layer<Dtype>::SetLossWeights(const vector<Blob<Dtype>*>& top) {
  if (layer_param_.loss_weight_size() == 0) return;
  CHECK_EQ(top.size(), layer_param_.loss_weight_size())
      << "loss_weight must be unspecified or specified once per top blob.";
  for (int i = 0; i < static_cast<int>(top.size()); ++i) {
    const Dtype weight = layer_param_.loss_weight(i);
    if (weight == Dtype(0)) continue;
    set_loss(i, weight);
    caffe_set(top[i]->count(), weight, top[i]->mutable_cpu_diff());
  }
}

CurrentIteration::operator int() const {
  CHECK_GE(call_context.iteration, 0)
      << "the layer asks its net for the iteration: say it before the call, m.iteration = step (a CUDA graph "
         "has none)";
  return static_cast<int>(call_context.iteration);
}

INSTANTIATE_CLASS(Layer);

}  // namespace caffe
