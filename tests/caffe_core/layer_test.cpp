// Drives small layers through the C ABI as Python does, and prints what comes of it.
#include "caffe/layer.hpp"

#include <stdio.h>
#include <string.h>

#include <map>
#include <set>

#include "caffe/layers/loss_layer.hpp"
#include "caffe/layers/neuron_layer.hpp"
#include "caffe/util/label_map.hpp"

extern "C" {
#include "caffe_layer.h"
}

namespace caffe {

#define FORWARD(side) \
  virtual void Forward_##side(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top)
#define BACKWARD(side)                                                                              \
  virtual void Backward_##side(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down, \
                               const vector<Blob<Dtype>*>& bottom)

// top = 2 bottom; its GPU code is not implemented; asked for a 13 it fails half way.
template <typename Dtype>
class DoubleLayer : public NeuronLayer<Dtype> {
 public:
  explicit DoubleLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "Double"; }

 protected:
  FORWARD(cpu) {
    for (int i = 0; i < bottom[0]->count(); ++i) {
      CHECK_NE(bottom[0]->cpu_data()[i], 13) << "in '" << this->name() << "'";
      if (bottom[0]->cpu_data()[i] == 14) CHECK_LT(this->iter_, 0);
      top[0]->mutable_cpu_data()[i] = 2 * bottom[0]->cpu_data()[i];
    }
  }
  FORWARD(gpu) { NOT_IMPLEMENTED; }
  BACKWARD(cpu) {
    if (!propagate_down[0]) return;
    for (int i = 0; i < bottom[0]->count(); ++i) bottom[0]->mutable_cpu_diff()[i] = 2 * top[0]->cpu_diff()[i];
  }
};

// Shares its bottom as Caffe's Flatten does, data in Forward and diff in Backward. A second top is its double.
template <typename Dtype>
class ShareLayer : public Layer<Dtype> {
 public:
  explicit ShareLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    for (Blob<Dtype>* blob : top) blob->Reshape(vector<int>{bottom[0]->count()});
  }

 protected:
  FORWARD(cpu) {
    top[0]->ShareData(*bottom[0]);
    if (top.size() > 1)
      caffe_cpu_scale(top[1]->count(), Dtype(2), bottom[0]->cpu_data(), top[1]->mutable_cpu_data());
  }
  BACKWARD(cpu) { bottom[0]->ShareDiff(*top[0]); }
};

// Writes into what it is only given, leaves its gradient in the bottom's diff in Forward, and has a
// top that grows.
template <typename Dtype>
class RudeLayer : public Layer<Dtype> {
 public:
  explicit RudeLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual void LayerSetUp(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>&) {
    this->blobs_.resize(1);
    this->blobs_[0].reset(new Blob<Dtype>(vector<int>{1}));
    this->blobs_[0]->mutable_cpu_data()[0] = 5;
  }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    top[0]->ReshapeLike(*bottom[0]);
    if (kept_.count() == 0) kept_.Reshape(vector<int>{2}), kept_.mutable_cpu_data()[0] = 8;
    top[1]->Reshape(vector<int>{2});
    top[1]->ShareData(kept_);
  }

 protected:
  FORWARD(cpu) {
    Dtype* data = bottom[0]->mutable_cpu_data();
    data[0] += 1;
    top[0]->Reshape(vector<int>{int(data[0])});
    caffe_set(top[0]->count(), data[0], top[0]->mutable_cpu_data());
    bottom[0]->mutable_cpu_diff()[0] = 3;
    kept_.mutable_cpu_data()[1] += 1;
    this->blobs_[0]->mutable_cpu_data()[0] += 1;
  }
  BACKWARD(cpu) {
    Dtype* gradient = top[0]->mutable_cpu_diff();
    gradient[0] *= 10;
    bottom[0]->mutable_cpu_diff()[0] *= gradient[0];
    if (this->param_propagate_down_[0]) this->blobs_[0]->mutable_cpu_diff()[0] += 1;
  }
  Blob<Dtype> kept_;
};

template <typename Dtype>
class MeanLossLayer : public LossLayer<Dtype> {
 public:
  explicit MeanLossLayer(const LayerParameter& param) : LossLayer<Dtype>(param) {}

 protected:
  FORWARD(cpu) { top[0]->mutable_cpu_data()[0] = caffe_cpu_asum(bottom[0]->count(), bottom[0]->cpu_data()); }
  BACKWARD(cpu) { caffe_set(bottom[0]->count(), top[0]->cpu_diff()[0], bottom[0]->mutable_cpu_diff()); }
};

// Takes and makes as many blobs as it is told to.
template <typename Dtype>
class CountedLayer : public Layer<Dtype> {
 public:
  explicit CountedLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual inline const char* type() const { return "Counted"; }
  virtual inline int ExactNumBottomBlobs() const { return counts[0]; }
  virtual inline int MinBottomBlobs() const { return counts[1]; }
  virtual inline int MaxBottomBlobs() const { return counts[2]; }
  virtual inline int ExactNumTopBlobs() const { return counts[3]; }
  virtual inline int MinTopBlobs() const { return counts[4]; }
  virtual inline int MaxTopBlobs() const { return counts[5]; }
  virtual inline bool EqualNumBottomTopBlobs() const { return counts[6] == 1; }
  virtual void Reshape(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>& top) {
    for (Blob<Dtype>* blob : top) blob->Reshape(vector<int>{2});
  }
  static int counts[7];

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>&) {}
  virtual void Backward_cpu(const vector<Blob<Dtype>*>&, const vector<bool>&, const vector<Blob<Dtype>*>&) {}
};
template <typename Dtype>
int CountedLayer<Dtype>::counts[7] = {-1, -1, -1, -1, -1, -1, -1};

REGISTER_LAYER_CLASS(Double);
REGISTER_LAYER_CLASS(Share);
REGISTER_LAYER_CLASS(Rude);
REGISTER_LAYER_CLASS(MeanLoss);

}  // namespace caffe

using std::string;
using std::vector;

static std::map<int64_t, void*> allocations;
static int64_t next_token = 100;

static void say(const string& name, const string& text) { printf("%s\t%s\n", name.c_str(), text.c_str()); }

struct Record {
  vector<char> bytes;
  caffe_call_record& head() { return *reinterpret_cast<caffe_call_record*>(bytes.data()); }
  caffe_blob_record& blob(int i) { return head().blobs[i]; }
  caffe_call_record* address() { return &head(); }
};

static Record make(int bottoms, int tops, int parameters) {
  const int blobs = bottoms + tops + parameters;
  Record record{vector<char>(sizeof(caffe_call_record) + blobs * sizeof(caffe_blob_record))};
  caffe_call_record& head = record.head();
  head.device = CAFFE_ON_HOST;
  head.bottoms = bottoms, head.tops = tops, head.parameters = parameters;
  return record;
}

static void put(Record& record, int i, vector<int64_t> shape, const void* data, const void* diff = nullptr,
                int64_t flags = 0, int64_t in_place_of = -1) {
  caffe_blob_record& blob = record.blob(i);
  blob.data = int64_t(data), blob.data_token = CAFFE_NO_TOKEN;
  blob.diff = int64_t(diff), blob.diff_token = CAFFE_NO_TOKEN;
  blob.flags = flags, blob.in_place_of = in_place_of;
  blob.axes = shape.size();
  std::copy(shape.begin(), shape.end(), blob.shape);
}

static string floats(const void* address, int count) {
  string text;
  for (int i = 0; i < count; ++i)
    text += (i ? " " : "") + std::to_string(int(static_cast<const float*>(address)[i]));
  return text;
}
static string top_text(Record& record, int i) {
  int64_t count = 1;
  for (int axis = 0; axis < record.blob(i).axes; ++axis) count *= record.blob(i).shape[axis];
  return floats(reinterpret_cast<void*>(record.blob(i).data), count);
}

template <typename Body>
static string caught(const Body& body) {
  try {
    return std::to_string(body());
  } catch (const std::exception& error) {
    const string text = error.what();
    return text.substr(text.find(": ") + 2);
  }
}

static int64_t create(const char* type) { return caffe_layer_create(type, "", 0, 0); }

static void test_neuron() {
  const int64_t layer = create("Double");
  caffe_layer_facts_record facts;
  // Of a loss every bottom but the labels.
  string forced;
  for (const int64_t each : {layer, create("MeanLoss")}) {
    std::fill(std::begin(facts.allow_force_backward), std::end(facts.allow_force_backward), 7);
    caffe_layer_facts(each, &facts);
    for (int64_t allowed : facts.allow_force_backward) forced += std::to_string(allowed);
    forced += " ";
  }
  say("allow_force_backward", forced);
  caffe_layer_facts(layer, &facts);
  say("facts", std::to_string(facts.exact_num_bottom_blobs) + " " +
                   std::to_string(facts.exact_num_top_blobs) + " " + std::to_string(facts.min_top_blobs));
  Record setup = make(1, 1, 0);
  put(setup, 0, {2, 2}, nullptr), put(setup, 1, {}, nullptr);
  caffe_layer_setup(layer, setup.address());
  say("setup", std::to_string(setup.blob(1).axes) + " " + std::to_string(setup.head().parameters));
  float x[4] = {1, 2, 3, 4}, y[4] = {9, 9, 9, 9}, dx[4], bad[4] = {1, 13, 0, 0};
  Record call = make(1, 1, 0);
  put(call, 0, {2, 2}, x), put(call, 1, {2, 2}, y, nullptr, CAFFE_DATA_UNDEFINED);
  const int before = allocations.size();
  const int status = caffe_layer_forward(layer, call.address());
  say("forward", std::to_string(status) + " " + floats(y, 4) +
                     (call.blob(1).data == int64_t(y) ? " there" : " elsewhere"));
  put(call, 0, {2, 2}, x, dx, CAFFE_WANTED), put(call, 1, {2, 2}, y, x);
  caffe_layer_backward(layer, call.address());
  say("backward", floats(dx, 4) + " " + std::to_string(allocations.size() - before) + " allocations");
  put(call, 0, {2, 2}, bad), put(call, 1, {2, 2}, y, nullptr, CAFFE_DATA_UNDEFINED);
  say("failure", caught([&] { return caffe_layer_forward(layer, call.address()); }));
  put(call, 0, {2, 2}, x), put(call, 1, {7}, nullptr);
  const int again = caffe_layer_forward(layer, call.address());
  say("after_failure", std::to_string(again) + " " + top_text(call, 1) +
                           (call.blob(1).data_token >= 100 ? " token" : " none"));
  call.head().mode = CAFFE_MODE_GPU;
  say("no_gpu_code", std::to_string(caffe_layer_forward(layer, call.address())));
  call.head().mode = CAFFE_MODE_CPU;
  put(call, 0, {3, 1}, x), put(call, 1, {2, 2}, y, nullptr, CAFFE_DATA_UNDEFINED);
  caffe_layer_forward(layer, call.address());
  say("other_shape", top_text(call, 1) + (call.blob(1).data == int64_t(y) ? " there" : " elsewhere"));
  float six[6] = {1, 2, 3, 4, 5, 6}, given[6] = {9, 9, 9, 9, 9, 9};
  put(call, 0, {6}, six), put(call, 1, {2}, given, nullptr, CAFFE_DATA_UNDEFINED);
  caffe_layer_forward(layer, call.address());
  say("larger_than_given", top_text(call, 1) + " | " + floats(given, 6));
  put(call, 0, {1LL << 32}, x);
  say("too_many", caught([&] { return caffe_layer_forward(layer, call.address()); }));
  Record two = make(2, 1, 0);
  put(two, 0, {1}, x), put(two, 1, {1}, x);
  say("bottoms", caught([&] { return caffe_layer_forward(layer, two.address()); }));
  const int64_t fresh = create("Double");
  say("wrong_bottoms", caught([&] { return caffe_layer_setup(fresh, two.address()); }));
  say("not_set_up", caught([&] { return caffe_layer_forward(fresh, call.address()); }));
  caffe_layer_destroy(fresh);
  caffe_layer_destroy(layer);
  say("unknown_type", caught([] { return create("Treble"); }));
  string names(caffe_layer_types(nullptr, 0), ' ');
  caffe_layer_types(&names[0], names.size());
  for (char& c : names) c = c == '\n' ? ' ' : c;
  say("types", names.c_str());
}

static void test_in_place() {
  const int64_t layer = create("Double");
  Record call = make(1, 1, 0);
  put(call, 0, {2}, nullptr), put(call, 1, {}, nullptr, nullptr, 0, 0);
  caffe_layer_setup(layer, call.address());
  float x[2] = {1, 2}, y[2] = {0, 0}, dy[2] = {3, 4}, dx[2];
  put(call, 0, {2}, x), put(call, 1, {2}, y, nullptr, 0, 0);
  caffe_layer_forward(layer, call.address());
  say("in_place_elsewhere", floats(x, 2) + " | " + floats(y, 2));
  put(call, 0, {2}, x), put(call, 1, {2}, x, nullptr, 0, 0);
  caffe_layer_forward(layer, call.address());
  say("in_place", floats(x, 2));
  put(call, 0, {2}, x, dx, CAFFE_WANTED), put(call, 1, {2}, x, dy, 0, 0);
  caffe_layer_backward(layer, call.address());
  say("in_place_backward", floats(dx, 2) + " | " + floats(dy, 2));
  caffe_layer_destroy(layer);
}

static void test_sharing() {
  const int64_t layer = create("Share");
  Record call = make(1, 1, 0);
  put(call, 0, {2, 1}, nullptr), put(call, 1, {}, nullptr);
  caffe_layer_setup(layer, call.address());
  string text;
  for (int round = 0; round < 2; ++round) {
    float x[2] = {1, 2}, y[2] = {0, 0}, dy[2] = {3, 4}, dx[2] = {0, 0};
    put(call, 0, {2, 1}, x), put(call, 1, {2}, y, nullptr, CAFFE_DATA_UNDEFINED);
    caffe_layer_forward(layer, call.address());
    text += call.blob(1).data == int64_t(x) ? "bottom " : "elsewhere ";
    put(call, 0, {2, 1}, x, dx, CAFFE_WANTED), put(call, 1, {2}, x, dy);
    caffe_layer_backward(layer, call.address());
    text += floats(dx, 2) + " ";
  }
  say("shared", text);
  caffe_layer_destroy(layer);
}

// The first is the bottom's memory, the second that which the caller has for it, in each call.
static void test_two_tops() {
  const int64_t layer = create("Share");
  Record call = make(1, 2, 0);
  put(call, 0, {2}, nullptr), put(call, 1, {}, nullptr), put(call, 2, {}, nullptr);
  caffe_layer_setup(layer, call.address());
  string text;
  for (int round = 0; round < 3; ++round) {
    float x[2] = {1, 2}, y[2] = {0, 0}, z[2] = {0, 0};
    put(call, 0, {2}, x), put(call, 1, {2}, y, nullptr, CAFFE_DATA_UNDEFINED);
    put(call, 2, {2}, z, nullptr, CAFFE_DATA_UNDEFINED);
    caffe_layer_forward(layer, call.address());
    text += call.blob(1).data == int64_t(x) ? "bottom " : "elsewhere ";
    text += (call.blob(2).data == int64_t(z) ? "there " : "elsewhere ") + floats(z, 2) + " ";
  }
  say("two_tops", text);
  caffe_layer_destroy(layer);
}

static void test_rude() {
  const int64_t layer = create("Rude");
  Record call = make(1, 2, 0);
  put(call, 0, {1}, nullptr), put(call, 1, {}, nullptr), put(call, 2, {}, nullptr);
  caffe_layer_setup(layer, call.address());
  caffe_parameter_record parameter;
  caffe_layer_parameter(layer, 0, &parameter);
  Record blob = make(1, 0, 0);
  blob.blob(0) = parameter.blob;
  say("parameter", std::to_string(call.head().parameters) + " " + top_text(blob, 0) +
                       (parameter.blob.data_token >= 100 ? " token" : " none"));
  call = make(1, 2, 1);
  float x[1] = {2}, y[1] = {0}, k[2] = {0, 0}, w[1] = {20}, dw[1] = {4}, dy[3] = {1, 1, 1}, dx[1] = {0};
  put(call, 0, {1}, x), put(call, 1, {1}, y, nullptr, CAFFE_DATA_UNDEFINED),
      put(call, 2, {2}, k, nullptr, CAFFE_DATA_UNDEFINED), put(call, 3, {1}, w, nullptr, CAFFE_WANTED);
  caffe_layer_forward(layer, call.address());
  say("grown_top", top_text(call, 1) + (call.blob(1).data_token >= 100 ? " token" : " none"));
  say("given_is_not_written", floats(x, 1));
  say("parameter_is_written", floats(w, 1));
  const string kept = top_text(call, 2);
  float* const first = reinterpret_cast<float*>(call.blob(2).data);
  first[0] = -1;  // the caller's own
  put(call, 0, {1}, x, dx, CAFFE_WANTED), put(call, 1, {3}, dy, dy), put(call, 2, {2}, k),
      put(call, 3, {1}, w, dw, CAFFE_WANTED);
  caffe_layer_backward(layer, call.address());
  say("gradient_from_forward",
      floats(dx, CAFFE_WANTED) + " | " + floats(dy, 3) + " | " + floats(dw, CAFFE_WANTED));
  // As Python calls it: the bottom's diff is new memory, whatever that holds.
  put(call, 0, {1}, x), put(call, 1, {1}, y, nullptr, CAFFE_DATA_UNDEFINED),
      put(call, 2, {2}, k, nullptr, CAFFE_DATA_UNDEFINED), put(call, 3, {1}, w, nullptr, CAFFE_WANTED);
  caffe_layer_forward(layer, call.address());
  dx[0] = 77;
  put(call, 0, {1}, x, dx, CAFFE_WANTED | CAFFE_DIFF_UNDEFINED), put(call, 1, {3}, dy, dy),
      put(call, 2, {2}, k), put(call, 3, {1}, w, dw, CAFFE_WANTED);
  caffe_layer_backward(layer, call.address());
  say("gradient_into_new_memory", floats(dx, CAFFE_WANTED));
  put(call, 0, {1}, x), put(call, 1, {1}, y, nullptr, CAFFE_DATA_UNDEFINED),
      put(call, 2, {2}, k, nullptr, CAFFE_DATA_UNDEFINED), put(call, 3, {1}, w, nullptr, CAFFE_WANTED);
  caffe_layer_forward(layer, call.address());
  say("kept_by_the_layer", kept + " | " + top_text(call, 2));
  put(call, 3, {2}, w);
  say("parameter_shape", caught([&] { return caffe_layer_forward(layer, call.address()); }));
  caffe_layer_destroy(layer);
}

static void test_loss() {
  const int64_t layer = create("MeanLoss");
  Record call = make(2, 1, 0);
  float x[2] = {3, -4}, loss[1], gradient[1] = {7}, dx[2];
  put(call, 0, {2}, x), put(call, 1, {2}, x), put(call, 2, {}, nullptr);
  caffe_layer_setup(layer, call.address());
  double weight;
  memcpy(&weight, &call.blob(2).loss_weight, sizeof(weight));
  put(call, 2, {}, loss, nullptr, CAFFE_DATA_UNDEFINED);
  caffe_layer_forward(layer, call.address());
  put(call, 0, {2}, x, dx, CAFFE_WANTED), put(call, 2, {}, loss, gradient);
  caffe_layer_backward(layer, call.address());
  say("loss", std::to_string(weight) + " " + floats(loss, 1) + " " + floats(dx, 2));
  put(call, 1, {3}, x);
  say("loss_shapes", caught([&] { return caffe_layer_forward(layer, call.address()); }));
  caffe_layer_destroy(layer);
}

// Of each rule of a layer's the number 2: with 1, 2 and 3 blobs, and what it says.
static void test_counts() {
  string text;
  std::set<string> said;
  for (int rule = 0; rule < 7; ++rule) {
    caffe::CountedLayer<float>::counts[rule] = rule == 6 ? 1 : 2;
    for (size_t count : {1, 2, 3}) {
      const bool of_bottoms = rule < 3;
      caffe::Blob<float> some(vector<int>{2}), y[3];
      vector<caffe::Blob<float>*> bottom(of_bottoms ? count : 2, &some), top;
      for (size_t i = 0; i < (of_bottoms ? 1 : count); ++i) top.push_back(y + i);
      caffe::CountedLayer<float> layer{caffe::LayerParameter()};
      const string words = caught([&] { return layer.SetUp(bottom, top), 0; });
      text += words == "0" ? "+" : "-";
      if (words != "0") said.insert(words.substr(words.find("Counted")));
    }
    caffe::CountedLayer<float>::counts[rule] = -1;
    text += " ";
  }
  for (const string& words : said) text += "| " + words;
  say("counts", text);
  // A loss weight for each top, or none.
  text.clear();
  for (int weights : {0, 1, 2, 3}) {
    caffe::LayerParameter param;
    for (int i = 0; i < weights; ++i) param.add_loss_weight(i);
    caffe::CountedLayer<float> layer(param);
    caffe::Blob<float> y[2];
    const vector<caffe::Blob<float>*> top{y, y + 1};
    text += caught([&] { return layer.SetUp({}, top), 0; }) == "0" ? "+" : "-";
    if (weights == 2)
      text += std::to_string(int(layer.loss(0) + 10 * layer.loss(1) + 100 * y[1].cpu_diff()[1]));
  }
  say("loss_weights", text);
}

// SSD's, of a message that is the fork's own.
static void test_label_map() {
  struct Item {
    string name_, display_;
    int label_;
    const string& name() const { return name_; }
    const string& display_name() const { return display_; }
    int label() const { return label_; }
  };
  struct Map {
    vector<Item> items;
    const vector<Item>& item() const { return items; }
  };
  const Map map{{{"a", "A", 1}, {"b", "B", 2}}}, twice{{{"a", "A", 1}, {"a", "B", 1}}};
  std::map<string, int> labels{{"before", 7}};
  std::map<int, string> names{{7, "before"}}, shown = names;
  string text;
  for (const Map* one : {&map, &twice}) {
    for (const bool strict : {false, true}) {
      text += caught([&] { return caffe::MapNameToLabel(*one, strict, &labels); }) + " " +
              caught([&] { return caffe::MapLabelToName(*one, strict, &names); }) + " " +
              caught([&] { return caffe::MapLabelToDisplayName(*one, strict, &shown); }) + " ";
      for (const auto& label : labels) text += label.first + std::to_string(label.second);
      for (const auto& name : names) text += std::to_string(name.first) + name.second;
      for (const auto& name : shown) text += std::to_string(name.first) + name.second;
      text += ", ";
    }
  }
  say("label_map", text);
}

int main() {
  caffe_services services = caffe::host_services;
  services.allocate = [](int64_t bytes, int64_t, int64_t* token) {
    *token = next_token++;
    return allocations[*token] = malloc(bytes + 1);
  };
  services.release = [](int64_t token) {
    free(allocations[token]);
    allocations.erase(token);
  };
  services.log = [](int64_t, const char*) {};
  caffe_layer_services(&services);
  test_neuron();
  test_in_place();
  test_sharing();
  test_two_tops();
  test_rude();
  test_loss();
  say("nothing_is_kept", std::to_string(allocations.size()));
  test_counts();
  test_label_map();
}
