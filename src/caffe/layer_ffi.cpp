// The C ABI of caffe_layer.h: a layer object, the blobs it is called with, and tensors in the place of their
// memory.
//
// A call does little besides the layer's own work: no allocation, no look-up by name, no text.
#include <string.h>

#include <optional>

#include "caffe/layer.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/layers/neuron_layer.hpp"

extern "C" {
#include "caffe_layer.h"
void caffe_set_last_error(const char* text) __attribute__((weak));  // of src/ffi_guard.h, where that is
}

namespace caffe {
namespace {

enum Flags { kWanted = 1, kDataUndefined = 2, kDiffUndefined = 4, kInPlace = 8 };
const int kStatusNotImplemented = 2;
const int kMaxAxesOfRecord = 32;
const int kMaxBottomsOfFacts = 16;

// The records as caffe_layer.h describes them.
struct BlobRecord {
  int64_t data, data_token, diff, diff_token, flags;
  double loss_weight;
  int64_t axes, reserved, shape[kMaxAxesOfRecord], more[8];

  bool has(Flags flag) const { return flags & flag; }
  int source() const { return has(kInPlace) ? static_cast<int>(flags >> 8) : -1; }
};
static_assert(sizeof(BlobRecord) == 48 * sizeof(int64_t), "a blob record has 48 words");

struct CallRecord {
  int64_t mode, device, stream, phase, bottoms, tops, parameters, seed, iteration, more[7];

  BlobRecord& bottom(int64_t i) { return reinterpret_cast<BlobRecord*>(this + 1)[i]; }
  BlobRecord& top(int64_t i) { return bottom(bottoms + i); }
  BlobRecord& parameter(int64_t i) { return bottom(bottoms + tops + i); }
};
static_assert(sizeof(CallRecord) == 16 * sizeof(int64_t), "a call's head has 16 words");

// The running call's context and device, for as long as it runs.
class CallScope {
 public:
  CallScope(const CallContext& context, uint64_t seed) : before_(call_context) {
#ifndef CAFFE_HOST_BACKEND
    if (context.device >= 0) {
      CUDA_CHECK(cudaGetDevice(&device_before_));
      if (device_before_ == context.device) {
        device_before_ = -1;
      } else {
        CUDA_CHECK(cudaSetDevice(context.device));
      }
    }
#endif
    call_context = context;
    Caffe::begin_call(seed);
  }
  ~CallScope() {
    call_context = before_;
#ifndef CAFFE_HOST_BACKEND
    if (device_before_ >= 0) (void)cudaSetDevice(device_before_);
#endif
  }

 private:
  const CallContext before_;
  int device_before_ = -1;  // where to go back to
};

CallContext context_of(const CallRecord& record) {
  CallContext context;
  context.mode = static_cast<int>(record.mode);
  context.device = static_cast<int>(record.device);
  context.stream = reinterpret_cast<void*>(record.stream);
  context.is_train = record.phase == 0;
  context.iteration = record.iteration;
  return context;
}

void* address(int64_t word) { return reinterpret_cast<void*>(word); }
int64_t word(const void* address) { return reinterpret_cast<int64_t>(address); }

}  // namespace

class LayerObject {
 public:
  virtual ~LayerObject() {}
  virtual void facts(int64_t* facts) = 0;
  virtual void setup(CallRecord* record) = 0;
  virtual void parameter(int64_t i, BlobRecord* record) = 0;
  virtual void reshape(CallRecord* record) = 0;
  virtual void forward(CallRecord* record) = 0;
  virtual void backward(CallRecord* record) = 0;
};

template <typename Dtype>
class BoundLayer : public LayerObject {
 public:
  explicit BoundLayer(const shared_ptr<Layer<Dtype>>& layer)
      : layer_(layer), neuron_(dynamic_cast<NeuronLayer<Dtype>*>(layer.get()) != nullptr) {}
  ~BoundLayer() override {
    release_given();
    // A destructor may free what LayerSetUp would have set: without one the layer is left alone, for good.
    if (!ready_) new shared_ptr<Layer<Dtype>>(layer_);
  }

  void facts(int64_t* facts) override {
    *facts++ = layer_->ExactNumBottomBlobs();
    *facts++ = layer_->MinBottomBlobs();
    *facts++ = layer_->MaxBottomBlobs();
    *facts++ = layer_->ExactNumTopBlobs();
    *facts++ = layer_->MinTopBlobs();
    *facts++ = layer_->MaxTopBlobs();
    *facts++ = layer_->EqualNumBottomTopBlobs();
    *facts++ = layer_->AutoTopBlobs();
    *facts++ = neuron_;
    *facts++ = dynamic_cast<LossLayer<Dtype>*>(layer_.get()) != nullptr;
    for (int i = 0; i < kMaxBottomsOfFacts; ++i) *facts++ = layer_->AllowForceBackward(i);
  }

  void setup(CallRecord* record) override {
    Call call(this, *record);
    make_blobs(record);
    bind_bottoms(record);
    layer_->SetUp(bottom_, top_);
    check_absent();
    for (int i = 0; i < record->tops; ++i) {
      BlobRecord& top = record->top(i);
      top.loss_weight = layer_->loss(i);
      layer_->set_loss(i, 0);  // whoever holds the tops applies it
      if (top_[i]->owns_diff()) top_[i]->diff()->clear();
      report_shape(*top_[i], &top);
    }
    record->parameters = layer_->blobs().size();
    ready_ = true;
  }

  void parameter(int64_t i, BlobRecord* record) override {
    CHECK(ready_) << "set the layer up first";
    CHECK_GE(i, 0);
    CHECK_LT(i, static_cast<int64_t>(layer_->blobs().size()));
    CallScope scope(context_, 0);
    Blob<Dtype>& blob = *layer_->blobs()[i];
    report_shape(blob, record);
    record->data = word(blob.cpu_data());
    record->data_token = blob.data()->host_token();
  }

  void reshape(CallRecord* record) override {
    Call call(this, *record);
    check_ready(*record);
    bind_bottoms(record);
    layer_->Reshape(bottom_, top_);
    check_absent();
    for (int i = 0; i < record->tops; ++i) report_shape(*top_[i], &record->top(i));
  }

  void forward(CallRecord* record) override {
    Call call(this, *record);
    check_ready(*record);
    bind_bottoms(record);
    bind_parameters(record, false);
    layer_->Reshape(bottom_, top_);
    check_absent();
    for (int i = 0; i < record->tops; ++i) bind_top_data(i, record->top(i));
    if (record->mode == 1) {
      layer_->Forward_gpu(bottom_, top_);
    } else {
      layer_->Forward_cpu(bottom_, top_);
    }
    for (const auto& blob : layer_->blobs()) blob->data()->settle();
    // Those that share another's memory first: it is still there.
    for (int i = 0; i < record->tops; ++i) {
      if (!fresh_[i]) report_top(i, &record->top(i));
    }
    for (int i = 0; i < record->tops; ++i) {
      if (fresh_[i]) report_top(i, &record->top(i));
    }
  }

  void backward(CallRecord* record) override {
    Call call(this, *record);
    check_ready(*record);
    bind_bottoms(record);
    bind_parameters(record, true);
    for (int i = 0; i < record->tops; ++i) {
      const BlobRecord& top = record->top(i);
      Blob<Dtype>& blob = *top_[i];
      // What the layer shares, or keeps itself since it was set up, it has already.
      if (top.source() >= 0 || !top.data || !blob.owns_data()) continue;
      if (blob.data()->head() == SyncedMemory::UNINITIALIZED)
        adopt(blob, blob.data(), top.data, SyncedMemory::kDefined, false);
    }
    for (int i = 0; i < record->bottoms; ++i) bind_bottom_diff(i, record);
    for (int i = 0; i < record->tops; ++i) bind_top_diff(i, record->top(i));
    if (record->mode == 1) {
      layer_->Backward_gpu(top_, propagate_down_, bottom_);
    } else {
      layer_->Backward_cpu(top_, propagate_down_, bottom_);
    }
    for (int i = 0; i < record->bottoms; ++i) report_diff(*bottom_[i], &record->bottom(i));
    for (int i = 0; i < record->parameters; ++i) report_diff(*layer_->blobs()[i], &record->parameter(i));
    for (const auto& blob : layer_->blobs()) blob->data()->settle();
  }

 private:
  // One call: its context, and at its end, however that comes, no blob knows a tensor any longer.
  class Call {
   public:
    Call(BoundLayer* layer, const CallRecord& record)
        : layer_(layer), scope_(layer->context_ = context_of(record), record.seed) {
      layer->release_given();
    }
    ~Call() {
      for (const auto& blob : layer_->owned_) drop(*blob);
      for (const auto& blob : layer_->layer_->blobs()) drop(*blob);
    }

   private:
    static void drop(const Blob<Dtype>& blob) {
      if (blob.has_memory()) {
        blob.data()->drop();
        blob.diff()->drop();
      }
    }
    BoundLayer* const layer_;
    CallScope scope_;
  };

  void make_blobs(CallRecord* record) {
    owned_.clear();
    bottom_.clear();
    top_.clear();
    for (int i = 0; i < record->bottoms; ++i) bottom_.push_back(new_blob());
    guard(&bottom_);
    for (int i = 0; i < record->tops; ++i) {
      const int source = record->top(i).source();
      CHECK_LT(source, record->bottoms)
          << "top " << i << " is to be in place of a bottom that does not exist";
      top_.push_back(source < 0 ? new_blob() : bottom_[source]);
    }
    guard(&top_);
    in_place_of_.assign(record->bottoms, -1);
    for (int i = 0; i < record->tops; ++i) {
      if (record->top(i).source() >= 0) in_place_of_[record->top(i).source()] = i;
    }
    fresh_.assign(record->tops, false);
    propagate_down_.assign(record->bottoms, false);
  }

  // Many layers that say no number of blobs read bottom[1] all the same. Behind the end stands a blob that
  // has no memory, whose CHECKs answer, where Caffe's process would end.
  void guard(vector<Blob<Dtype>*>* blobs) {
    const size_t behind = 8;
    blobs->reserve(blobs->size() + behind);
    std::fill_n(blobs->data() + blobs->size(), behind, &*absent_);
  }

  void check_absent() {
    if (!absent_->has_memory()) return;
    absent_.emplace();
    LOG(FATAL) << "the layer shapes a blob that it was not given: it has " << bottom_.size()
               << " bottom(s) and " << top_.size() << " top(s), and needs more";
  }

  Blob<Dtype>* new_blob() {
    owned_.emplace_back(new Blob<Dtype>());
    return owned_.back().get();
  }

  void check_ready(const CallRecord& record) const {
    CHECK(ready_) << "set the layer up first";
    CHECK_EQ(record.bottoms, bottom_.size()) << "bottoms, as many as at set up";
    CHECK_EQ(record.tops, top_.size()) << "tops, as many as at set up";
  }

  static void adopt(const Blob<Dtype>& blob, const shared_ptr<SyncedMemory>& memory, int64_t at,
                    SyncedMemory::Contents contents, bool writable) {
    memory->adopt(address(at), sizeof(Dtype) * blob.count(), contents, writable);
  }

  // Of a result's memory that comes from the caller: neuron layers write all of what they write.
  SyncedMemory::Contents contents(bool undefined) const {
    return !undefined ? SyncedMemory::kDefined
           : neuron_  ? SyncedMemory::kOverwritten
                      : SyncedMemory::kUndefined;
  }

  static void copy(const Blob<Dtype>& blob, int64_t to, const void* from) {
    copy_on_side_of_call(address(to), from, sizeof(Dtype) * blob.count());
  }

  void reshape_as(const BlobRecord& record, Blob<Dtype>* blob) {
    CHECK_LE(record.axes, kMaxAxesOfRecord);
    shape_.resize(record.axes);
    for (int i = 0; i < record.axes; ++i) {
      CHECK_LE(record.shape[i], INT_MAX) << "axis " << i << ": Caffe counts in int";
      shape_[i] = static_cast<int>(record.shape[i]);
    }
    blob->Reshape(shape_);
  }

  static bool has_shape_of(const Blob<Dtype>& blob, const BlobRecord& record) {
    return blob.num_axes() == record.axes &&
           std::equal(blob.shape().begin(), blob.shape().end(), record.shape);
  }

  static void report_shape(const Blob<Dtype>& blob, BlobRecord* record) {
    record->axes = blob.num_axes();
    std::copy(blob.shape().begin(), blob.shape().end(), record->shape);
  }

  // A layer never writes to what is only given to be read: SyncedMemory copies it first. In place, it may.
  void bind_bottoms(CallRecord* record) {
    for (int i = 0; i < record->bottoms; ++i) {
      const BlobRecord& bottom = record->bottom(i);
      Blob<Dtype>& blob = *bottom_[i];
      reshape_as(bottom, &blob);
      const int top = in_place_of_[i];
      const int64_t in_place = top < 0 ? 0 : record->top(top).data;
      const int64_t at = in_place ? in_place : bottom.data;
      if (!at) continue;
      if (in_place && bottom.data && in_place != bottom.data) copy(blob, in_place, address(bottom.data));
      adopt(blob, blob.data(), at, SyncedMemory::kDefined, top >= 0);
    }
  }

  void bind_parameters(CallRecord* record, bool diffs) {
    CHECK_EQ(record->parameters, layer_->blobs().size()) << "parameter blobs, as many as at set up";
    for (int i = 0; i < record->parameters; ++i) {
      const BlobRecord& parameter = record->parameter(i);
      Blob<Dtype>& blob = *layer_->blobs()[i];
      CHECK(has_shape_of(blob, parameter))
          << "parameter blob " << i << " has the shape " << blob.shape_string();
      if (parameter.data) adopt(blob, blob.data(), parameter.data, SyncedMemory::kDefined, true);
      if (layer_->param_propagate_down(i) != parameter.has(kWanted)) {
        layer_->set_param_propagate_down(i, parameter.has(kWanted));
      }
      if (diffs && parameter.diff) adopt(blob, blob.diff(), parameter.diff, SyncedMemory::kDefined, true);
    }
  }

  // Contents that a top has before Forward are the layer's (of its set up): they stay in its own memory.
  void bind_top_data(int i, const BlobRecord& top) {
    Blob<Dtype>& blob = *top_[i];
    fresh_[i] = top.source() < 0 && blob.owns_data() && blob.data()->head() == SyncedMemory::UNINITIALIZED;
    if (!fresh_[i] || !top.data || !has_shape_of(blob, top)) return;
    adopt(blob, blob.data(), top.data, contents(top.has(kDataUndefined)), true);
  }

  void report_top(int i, BlobRecord* top) {
    Blob<Dtype>& blob = *top_[i];
    const bool same_shape = has_shape_of(blob, *top);
    report_shape(blob, top);
    if (!blob.has_memory()) {
      top->data = 0;
      top->data_token = -1;
      return;
    }
    SyncedMemory& memory = *blob.data();
    const int64_t at = word(memory.data());
    top->data_token = memory.token();
    const bool is_tensor =
        memory.adopted() && top->data_token == -1;  // this top's own, or one that it shares
    if (is_tensor && (same_shape || !blob.owns_data())) {
      top->data = at;
    } else if (fresh_[i] && !is_tensor) {
      top->data = at;
      memory.release_to_caller();
      given_.push_back(top->data_token);
    } else {
      hand_over_copy(blob, at, &top->data, &top->data_token);
    }
  }

  // Memory of the layer's own is written again by its next call.
  void hand_over_copy(const Blob<Dtype>& blob, int64_t from, int64_t* at, int64_t* token) {
    SyncedMemory copied(sizeof(Dtype) * blob.count());
    *at = word(copied.mutable_data());
    *token = copied.token();
    copy(blob, *at, address(from));
    copied.release_to_caller();
    given_.push_back(*token);
  }

  void bind_bottom_diff(int i, CallRecord* record) {
    const BlobRecord& bottom = record->bottom(i);
    Blob<Dtype>& blob = *bottom_[i];
    const bool wanted = bottom.has(kWanted);
    propagate_down_[i] = wanted;
    if (in_place_of_[i] >= 0) {
      const int64_t gradient = record->top(in_place_of_[i]).diff;
      const int64_t at = wanted && bottom.diff ? bottom.diff : gradient;
      if (at && gradient && at != gradient) copy(blob, at, address(gradient));
      if (at) adopt(blob, blob.diff(), at, SyncedMemory::kDefined, wanted);
    } else if (wanted && bottom.diff && blob.owns_diff()) {
      SyncedMemory& memory = *blob.diff();
      // Some layers leave the gradient here in Forward already, and Backward only scales it.
      const bool written = memory.head() != SyncedMemory::UNINITIALIZED;
      if (written) copy(blob, bottom.diff, memory.data());
      adopt(blob, blob.diff(), bottom.diff, contents(!written && bottom.has(kDiffUndefined)), true);
    }
  }

  void bind_top_diff(int i, const BlobRecord& top) {
    Blob<Dtype>& blob = *top_[i];
    if (top.source() >= 0 || !blob.has_memory()) return;
    SyncedMemory& memory = *blob.diff();
    if (!top.diff) {
      if (blob.owns_diff()) memory.clear();  // no gradient comes from there: zeros
    } else if (blob.owns_diff()) {
      adopt(blob, blob.diff(), top.diff, SyncedMemory::kDefined, false);
    } else {
      copy(blob, word(memory.mutable_data()), address(top.diff));
    }
  }

  // The gradient is where it was asked for, even if the layer made its diff another blob's.
  void report_diff(const Blob<Dtype>& blob, BlobRecord* record) {
    if (!record->has(kWanted)) return;
    SyncedMemory& memory = *blob.diff();
    memory.settle();
    const int64_t at = word(memory.data());
    if (!record->diff) {
      hand_over_copy(blob, at, &record->diff, &record->diff_token);
    } else if (at != record->diff) {
      copy(blob, record->diff, address(at));
    }
  }

  // The caller has had a whole call's time to take hold of the tensors it was given.
  void release_given() {
    for (int64_t token : given_) host_services.release(token);
    given_.clear();
  }

  const shared_ptr<Layer<Dtype>> layer_;
  const bool neuron_;
  bool ready_ = false;
  CallContext context_;  // of the last call
  vector<std::unique_ptr<Blob<Dtype>>> owned_;
  vector<Blob<Dtype>*> bottom_, top_;
  std::optional<Blob<Dtype>> absent_{std::in_place};
  vector<int> in_place_of_;  // for each bottom the top that is the same blob, or -1
  vector<bool> propagate_down_;
  vector<char> fresh_;  // for each top: what is in it after Forward, this Forward made
  vector<int> shape_;
  vector<int64_t> given_;
};

namespace {

template <typename Dtype>
LayerObject* create(const string& type, const LayerParameter& parameter) {
  const auto& registry = LayerRegistry<Dtype>::Registry();
  const auto found = registry.find(type);
  if (found == registry.end()) {
    string known;
    for (const auto& entry : registry) known += " " + entry.first;
    LOG(FATAL) << "Unknown layer type: " << type << " (this library has:" << known << ")";
  }
  return new BoundLayer<Dtype>(found->second(parameter));
}

LayerObject& object(int64_t handle) { return *reinterpret_cast<LayerObject*>(handle); }

template <typename Function>
int status_of(const Function& function) {
  try {
    function();
    return 0;
  } catch (const NotImplemented& error) {
    if (caffe_set_last_error) caffe_set_last_error(error.what());
    return kStatusNotImplemented;
  }
}

}  // namespace
}  // namespace caffe

extern "C" {

int64_t caffe_layer_types(char* text, int64_t size) {
  std::string names;
  for (const auto& entry : caffe::LayerRegistry<float>::Registry()) names += entry.first + "\n";
  const int64_t needed = names.size() + 1;
  if (needed <= size) memcpy(text, names.c_str(), needed);
  return needed;
}

int64_t caffe_layer_create(const char* type, const void* parameter, int64_t size, int dtype) {
  caffe::LayerParameter message;
  CHECK(message.ParseFromArray(parameter, static_cast<int>(size))) << "not a serialized LayerParameter";
  if (!message.has_type()) message.set_type(type);
  CHECK(dtype == CAFFE_FLOAT32 || dtype == CAFFE_FLOAT64) << "a Caffe layer computes in float or double";
  return reinterpret_cast<int64_t>(dtype == CAFFE_FLOAT32 ? caffe::create<float>(type, message)
                                                          : caffe::create<double>(type, message));
}

int caffe_layer_destroy(int64_t layer) {
  delete &caffe::object(layer);
  return 0;
}

int caffe_layer_facts(int64_t layer, int64_t* facts) {
  caffe::object(layer).facts(facts);
  return 0;
}

int caffe_layer_setup(int64_t layer, void* record) {
  return caffe::status_of([&] { caffe::object(layer).setup(static_cast<caffe::CallRecord*>(record)); });
}

int caffe_layer_parameter(int64_t layer, int64_t i, void* blob_record) {
  caffe::object(layer).parameter(i, static_cast<caffe::BlobRecord*>(blob_record));
  return 0;
}

int caffe_layer_reshape(int64_t layer, void* record) {
  return caffe::status_of([&] { caffe::object(layer).reshape(static_cast<caffe::CallRecord*>(record)); });
}

int caffe_layer_forward(int64_t layer, void* record) {
  return caffe::status_of([&] { caffe::object(layer).forward(static_cast<caffe::CallRecord*>(record)); });
}

int caffe_layer_backward(int64_t layer, void* record) {
  return caffe::status_of([&] { caffe::object(layer).backward(static_cast<caffe::CallRecord*>(record)); });
}

}  // extern "C"
