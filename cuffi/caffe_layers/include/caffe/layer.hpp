// The base class of every Caffe layer.
#ifndef CAFFE_LAYER_H_
#define CAFFE_LAYER_H_

#include <cstddef>
#include <new>

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/util/math_functions.hpp"

namespace boost {
class mutex;
}

namespace caffe {

template <typename Dtype>
class BoundLayer;  // core/layer_ffi.cpp

template <typename Dtype>
class Net;

// The training loop's iteration. An error if the module was not told it.
struct CurrentIteration {
  operator int() const;
};

// Memory for a layer. Each of its bytes is caffe_layer_memory's, 0 by default, so a member that no constructor sets is
// the same in each layer. Not inline: compilers may leave out what is stored before a constructor that they see.
void* layer_memory(size_t size, size_t alignment);
void free_layer_memory(void* memory, size_t alignment);

template <typename Dtype>
class Layer {
 public:
  explicit Layer(const LayerParameter& param);
  virtual ~Layer() {}

  static void* operator new(size_t size) { return layer_memory(size, alignof(std::max_align_t)); }
  static void* operator new(size_t size, std::align_val_t alignment) {
    return layer_memory(size, static_cast<size_t>(alignment));
  }
  static void* operator new(size_t size, void* memory) { return memory; }
  static void operator delete(void* memory) { free_layer_memory(memory, alignof(std::max_align_t)); }
  static void operator delete(void* memory, std::align_val_t alignment) {
    free_layer_memory(memory, static_cast<size_t>(alignment));
  }

  // Called once. Runs the layer's LayerSetUp, shapes the tops, and sets the loss weights.
  void SetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    CheckBlobCounts(bottom, top);
    LayerSetUp(bottom, top);
    Reshape(bottom, top);
    SetLossWeights(top);
  }
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) = 0;

  // Reshapes, runs Forward_cpu or Forward_gpu, depending on the mode, and returns the weighted loss.
  Dtype Forward(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  void Backward(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                const vector<Blob<Dtype>*>& bottom) {
    Caffe::mode() == Caffe::GPU ? Backward_gpu(top, propagate_down, bottom)
                                : Backward_cpu(top, propagate_down, bottom);
  }

  vector<shared_ptr<Blob<Dtype>>>& blobs() { return blobs_; }
  const LayerParameter& layer_param() const { return layer_param_; }
  virtual void ToProto(LayerParameter* param, bool write_diff = false);

  Dtype loss(const int top_index) const {
    return static_cast<int>(loss_.size()) > top_index ? loss_[top_index] : Dtype(0);
  }
  void set_loss(const int top_index, const Dtype value) {
    if (static_cast<int>(loss_.size()) <= top_index) loss_.resize(top_index + 1, Dtype(0));
    loss_[top_index] = value;
  }

  virtual inline const char* type() const { return ""; }
  // The numbers of bottoms and tops. -1: no limit.
  virtual inline int ExactNumBottomBlobs() const { return -1; }
  virtual inline int MinBottomBlobs() const { return -1; }
  virtual inline int MaxBottomBlobs() const { return -1; }
  virtual inline int ExactNumTopBlobs() const { return -1; }
  virtual inline int MinTopBlobs() const { return -1; }
  virtual inline int MaxTopBlobs() const { return -1; }
  virtual inline bool EqualNumBottomTopBlobs() const { return false; }
  virtual inline bool AutoTopBlobs() const { return false; }
  virtual inline bool AllowForceBackward(const int bottom_index) const { return true; }

  bool param_propagate_down(const int param_id) {
    return static_cast<int>(param_propagate_down_.size()) > param_id ? param_propagate_down_[param_id]
                                                                     : false;
  }
  void set_param_propagate_down(const int param_id, const bool value) {
    if (static_cast<int>(param_propagate_down_.size()) <= param_id)
      param_propagate_down_.resize(param_id + 1, true);
    param_propagate_down_[param_id] = value;
  }

  // From Caffe of 2015 to 2017, where several nets could share a layer. Here none do.
  virtual inline bool ShareInParallel() const { return false; }
  bool IsShared() const { return is_shared_; }
  void SetShared(bool is_shared) {
    CHECK(ShareInParallel() || !is_shared) << type() << "Layer does not support sharing.";
    is_shared_ = is_shared;
  }
  // From NVCaffe. Forks' layers use it in log messages.
  const string& name() const { return layer_param_.name(); }
  // From flownet2: the layer's net, which has iter(). Defined in caffe/net.hpp.
  Net<Dtype>* GetNet();

  Phase phase() const { return phase_; }
  virtual inline void set_phase(Phase phase) { phase_ = phase; }

 protected:
  LayerParameter layer_param_;
  Phase phase_;
  vector<shared_ptr<Blob<Dtype>>> blobs_;  // the parameters
  vector<bool> param_propagate_down_;
  vector<Dtype> loss_;  // each top's weight in the loss
  // From Dynamic Network Surgery, where the net sets it.
  inline static const CurrentIteration iter_{};

  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) = 0;
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    Forward_cpu(bottom, top);
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) = 0;
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    Backward_cpu(top, propagate_down, bottom);
  }
  virtual void CheckBlobCounts(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);

  // If a top has a loss weight, set every element of its diff to it.
  void SetLossWeights(const vector<Blob<Dtype>*>& top);

 private:
  friend class BoundLayer<Dtype>;
  bool is_shared_ = false;

  DISABLE_COPY_AND_ASSIGN(Layer);
};

}  // namespace caffe

// Declares a layer's four passes.
#define CAFFE_DECLARE_PASSES                                                                      \
  void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override; \
  void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) override; \
  void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,          \
                    const vector<Blob<Dtype>*>& bottom) override;                                 \
  void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,          \
                    const vector<Blob<Dtype>*>& bottom) override

// The same, and the two templates that they are made of by CAFFE_BOTH_SIDES (caffe/layers/both_sides.hpp).
#define CAFFE_DECLARE_BOTH_SIDES                                                       \
  CAFFE_DECLARE_PASSES;                                                                \
  template <typename Side>                                                             \
  void ForwardOn(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top); \
  template <typename Side>                                                             \
  void BackwardOn(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down, \
                  const vector<Blob<Dtype>*>& bottom)

#endif  // CAFFE_LAYER_H_
