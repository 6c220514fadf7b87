// The C ABI of caffe_layer.h: layer objects, and their calls by records (caffe/layer_record.h).
//
// A call costs little more than the layer's own work: it allocates nothing, looks up no name, and
// parses no text.
#include <string.h>

#include <atomic>

#include "caffe/layer.hpp"
#include "call_blobs.hpp"
#include "call_scope.hpp"

extern "C" {
#include "caffe_layer.h"
void caffe_set_last_error(const char* text)
    __attribute__((weak));  // src/edge/ffi_guard.h defines it, if present
}

namespace caffe {

extern std::atomic<int> layer_memory_byte;  // layer.cpp

class LayerObject {
 public:
  virtual ~LayerObject() {}
  virtual void facts(caffe_layer_facts_record* facts) = 0;
  virtual void setup(caffe_call_record* record) = 0;
  virtual void parameter(int64_t i, caffe_parameter_record* record) = 0;
  virtual void reshape(caffe_call_record* record) = 0;
  virtual void forward(caffe_call_record* record) = 0;
  virtual void backward(caffe_call_record* record) = 0;
};

// A layer with its blobs. Each function of the ABI calls one of its members.
template <typename Dtype>
class BoundLayer : public LayerObject {
 public:
  explicit BoundLayer(const shared_ptr<Layer<Dtype>>& layer) : layer_(layer) {
    static const char* const passes[2][2] = {{"Forward_cpu", "Backward_cpu"},
                                             {"Forward_gpu", "Backward_gpu"}};
    for (int mode : {CAFFE_MODE_CPU, CAFFE_MODE_GPU}) {
      for (bool backward : {false, true}) {
        const string function = layer->layer_param().type() + "." + passes[mode][backward];
        if (OverwritingFunctions().count(function)) blobs_.set_overwrites(mode, backward);
      }
    }
  }
  ~BoundLayer() override {
    // A destructor may free pointers that LayerSetUp sets. If LayerSetUp did not finish, the layer is leaked.
    if (!ready_) new shared_ptr<Layer<Dtype>>(layer_);
  }

  void facts(caffe_layer_facts_record* facts) override {
    facts->exact_num_bottom_blobs = layer_->ExactNumBottomBlobs();
    facts->min_bottom_blobs = layer_->MinBottomBlobs();
    facts->max_bottom_blobs = layer_->MaxBottomBlobs();
    facts->exact_num_top_blobs = layer_->ExactNumTopBlobs();
    facts->min_top_blobs = layer_->MinTopBlobs();
    facts->equal_num_bottom_top_blobs = layer_->EqualNumBottomTopBlobs();
    for (int i = 0; i < CAFFE_MOST_BOTTOMS_OF_FACTS; ++i)
      facts->allow_force_backward[i] = layer_->AllowForceBackward(i);
  }

  void setup(caffe_call_record* record) override {
    CallGuard guard(this, *record);
    blobs_.make(*record);
    blobs_.bind_bottoms(*record, false);
    layer_->SetUp(blobs_.bottom(), blobs_.top());
    blobs_.check_absent();
    blobs_.report_top_shapes(record);
    for (int i = 0; i < record->tops; ++i) {
      record->blobs[record->bottoms + i].loss_weight = layer_->loss(i);
      blobs_.keep_loss_weight(i, layer_->loss(i));
      layer_->set_loss(i, 0);  // Python applies the loss weight
    }
    record->parameters = layer_->blobs().size();
    for (int i = 0; i < record->parameters; ++i) {
      CHECK(layer_->blobs()[i] && layer_->blobs()[i]->has_memory())
          << "parameter blob " << i << ": the layer did not make it";
    }
    ready_ = true;
  }

  void parameter(int64_t i, caffe_parameter_record* record) override {
    CHECK(ready_) << "set the layer up first";
    CHECK_GE(i, 0);
    CHECK_LT(i, static_cast<int64_t>(layer_->blobs().size()));
    CallScope scope(context_, 0);
    Blob<Dtype>& blob = *layer_->blobs()[i];
    report_shape(blob, &record->blob);
    record->blob.data = word(blob.cpu_data());
    record->blob.data_token = blob.data()->host_token();
    const LayerParameter& said = layer_->layer_param();
    record->lr_mult = i < said.param_size() ? said.param(i).lr_mult() : 1;
    record->decay_mult = i < said.param_size() ? said.param(i).decay_mult() : 1;
  }

  void reshape(caffe_call_record* record) override {
    CallGuard guard(this, *record);
    prepare(*record, false);
    layer_->Reshape(blobs_.bottom(), blobs_.top());
    blobs_.check_absent();
    blobs_.report_top_shapes(record);
  }

  void forward(caffe_call_record* record) override {
    CallGuard guard(this, *record);
    prepare(*record, false);
    parameters_left_.clear();
    bind_parameters(*record, false);
    layer_->Reshape(blobs_.bottom(), blobs_.top());
    blobs_.check_absent();
    blobs_.bind_tops(*record);
    if (record->mode == CAFFE_MODE_GPU) {
      layer_->Forward_gpu(blobs_.bottom(), blobs_.top());
      CUDA_POST_KERNEL_CHECK;  // the layer may lack this check
    } else {
      check_cpu_code("Forward_cpu");
      layer_->Forward_cpu(blobs_.bottom(), blobs_.top());
    }
    const bool differentiated = wants_gradient(*record);
    for (int64_t i = 0; i < record->parameters; ++i) {
      SyncedMemory& memory = *layer_->blobs()[i]->data();
      memory.settle();
      if (!memory.was_written()) continue;
      parameter_of(record, i).flags |= CAFFE_WRITTEN;
      if (differentiated) keep_parameter(i, parameter_of(record, i).data);
    }
    blobs_.report_tops(record, &handed_out_);
    if (differentiated) blobs_.keep_bottoms(*record);
  }

  void backward(caffe_call_record* record) override {
    CallGuard guard(this, *record);
    prepare(*record, true);
    bind_parameters(*record, true);
    blobs_.bind_for_backward(*record);
    if (record->mode == CAFFE_MODE_GPU) {
      layer_->Backward_gpu(blobs_.top(), blobs_.propagate_down(), blobs_.bottom());
      CUDA_POST_KERNEL_CHECK;
    } else {
      check_cpu_code("Backward_cpu");
      layer_->Backward_cpu(blobs_.top(), blobs_.propagate_down(), blobs_.bottom());
    }
    for (int64_t i = 0; i < record->bottoms; ++i) report_diff(*blobs_.bottom()[i], &record->blobs[i]);
    for (int64_t i = 0; i < record->parameters; ++i)
      report_diff(*layer_->blobs()[i], &parameter_of(record, i));
    for (int64_t i = 0; i < record->parameters; ++i) {
      SyncedMemory& memory = *layer_->blobs()[i]->data();
      memory.settle();
      const int64_t given = parameter_of(record, i).data;
      if (parameters_left_.count(i) && memory.was_written() && memory.data() != address(given))
        copy(*layer_->blobs()[i], given, memory.data());
    }
    blobs_.forget_bottoms();
    parameters_left_.clear();
  }

 private:
  // Sets the context of a call. At its end, also after an exception, no blob refers to a tensor.
  class CallGuard {
   public:
    CallGuard(BoundLayer* layer, const caffe_call_record& record)
        : layer_(layer), scope_(layer->context_ = context_of(record), record.seed) {
      layer->handed_out_.release();
    }
    ~CallGuard() {
      layer_->blobs_.drop();
      for (const auto& blob : layer_->layer_->blobs()) {
        if (blob) drop_tensors(*blob);  // after a failed set up some may be null
      }
    }

   private:
    BoundLayer* const layer_;
    CallScope scope_;
  };

  static caffe_blob_record& parameter_of(caffe_call_record* record, int64_t i) {
    return record->blobs[record->bottoms + record->tops + i];
  }

  void check_cpu_code(const char* function) const {
    if (MissingCpuCode().empty()) return;
    const auto found = MissingCpuCode().find(layer_->layer_param().type() + "." + function);
    if (found != MissingCpuCode().end()) throw NotImplemented(found->second);
  }

  void prepare(const caffe_call_record& record, bool backward) {
    CHECK(ready_) << "set the layer up first";
    blobs_.check_counts(record);
    blobs_.bind_bottoms(record, backward);
  }

  // Will Backward run?
  static bool wants_gradient(const caffe_call_record& record) {
    bool wanted = false;
    for (int64_t i = 0; i < record.bottoms; ++i) wanted |= record.blobs[i].flags & CAFFE_WANTED;
    for (int64_t i = 0; i < record.parameters; ++i)
      wanted |= record.blobs[record.bottoms + record.tops + i].flags & CAFFE_WANTED;
    return wanted;
  }

  // Forward wrote to this parameter, and a later Forward may write to it before Backward: keep a copy for Backward.
  void keep_parameter(int64_t i, int64_t tensor) {
    const Blob<Dtype>& blob = *layer_->blobs()[i];
    auto left = std::make_unique<SyncedMemory>(sizeof(Dtype) * blob.count());
    copy(blob, word(left->mutable_data()), blob.data()->data());
    parameters_left_[i] = {tensor, std::move(left)};
  }

  void bind_parameters(const caffe_call_record& record, bool diffs) {
    CHECK_EQ(record.parameters, layer_->blobs().size()) << "parameter blobs, as many as at set up";
    for (int i = 0; i < record.parameters; ++i) {
      const caffe_blob_record& given = record.blobs[record.bottoms + record.tops + i];
      const bool wanted = given.flags & CAFFE_WANTED;
      Blob<Dtype>& blob = *layer_->blobs()[i];
      CHECK(has_shape_of(blob, given)) << "parameter blob " << i << " has the shape " << blob.shape_string();
      const auto left = parameters_left_.find(i);
      const bool kept = diffs && left != parameters_left_.end() && left->second.tensor == given.data;
      const int64_t at = kept ? word(left->second.memory->data()) : given.data;
      if (at) adopt(blob, blob.data(), at, SyncedMemory::kDefined, true);
      if (layer_->param_propagate_down(i) != wanted) layer_->set_param_propagate_down(i, wanted);
      if (diffs && given.diff) adopt(blob, blob.diff(), given.diff, SyncedMemory::kDefined, true);
    }
  }

  // The gradient goes to the requested address, even if the blob shares another blob's diff.
  void report_diff(const Blob<Dtype>& blob, caffe_blob_record* record) {
    if (!(record->flags & CAFFE_WANTED)) return;
    const int64_t at = word(blob.diff()->data());
    if (!record->diff) {
      handed_out_.give_copy(blob, at, &record->diff, &record->diff_token);
    } else if (at != record->diff) {
      copy(blob, record->diff, address(at));
    }
  }

  const shared_ptr<Layer<Dtype>> layer_;
  bool ready_ = false;
  CallContext context_;  // of the last call
  CallBlobs<Dtype> blobs_;
  struct Left {
    int64_t tensor;
    std::unique_ptr<SyncedMemory> memory;
  };
  std::map<int64_t, Left> parameters_left_;  // what Forward left in parameters that it wrote, until Backward
  HandedOut handed_out_;
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
    return CAFFE_STATUS_DONE;
  } catch (const NotImplemented& error) {
    if (caffe_set_last_error) caffe_set_last_error(error.what());
    return CAFFE_STATUS_NOT_IMPLEMENTED;
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

int caffe_layer_memory(int byte) {
  caffe::layer_memory_byte = byte;
  return 0;
}

int caffe_layer_destroy(int64_t layer) {
  delete &caffe::object(layer);
  return 0;
}

int caffe_layer_facts(int64_t layer, caffe_layer_facts_record* facts) {
  caffe::object(layer).facts(facts);
  return 0;
}

int caffe_layer_setup(int64_t layer, caffe_call_record* record) {
  return caffe::status_of([&] { caffe::object(layer).setup(record); });
}

int caffe_layer_parameter(int64_t layer, int64_t i, caffe_parameter_record* record) {
  caffe::object(layer).parameter(i, record);
  return 0;
}

int caffe_layer_reshape(int64_t layer, caffe_call_record* record) {
  return caffe::status_of([&] { caffe::object(layer).reshape(record); });
}

int caffe_layer_forward(int64_t layer, caffe_call_record* record) {
  return caffe::status_of([&] { caffe::object(layer).forward(record); });
}

int caffe_layer_backward(int64_t layer, caffe_call_record* record) {
  return caffe::status_of([&] { caffe::object(layer).backward(record); });
}

}  // extern "C"
