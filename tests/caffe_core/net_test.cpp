// Builds nets of stock layers, as a layer that owns one does, and prints what they compute.
#include "caffe/net.hpp"

#include <stdio.h>

#include <functional>

#include "caffe/filler.hpp"
#include "caffe/layers/loss_layer.hpp"
#include "caffe/util/insert_splits.hpp"

namespace caffe {

// The sum of its bottom's squares, without the factor of a half.
template <typename Dtype>
class SquaresLayer : public LossLayer<Dtype> {
 public:
  explicit SquaresLayer(const LayerParameter& param) : LossLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "Squares"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    top[0]->Reshape(vector<int>());
  }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    const Dtype* x = bottom[0]->cpu_data();
    top[0]->mutable_cpu_data()[0] = caffe_cpu_dot(bottom[0]->count(), x, x);
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    if (!propagate_down[0]) return;
    caffe_cpu_axpby(bottom[0]->count(), 2 * top[0]->cpu_diff()[0], bottom[0]->cpu_data(), Dtype(0),
                    bottom[0]->mutable_cpu_diff());
  }
};
REGISTER_LAYER_CLASS(Squares);

// The product of a learnt vector, filled as InnerProduct's weight is, with its bottom: without a BLAS.
template <typename Dtype>
class ProductLayer : public Layer<Dtype> {
 public:
  explicit ProductLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual inline const char* type() const { return "Product"; }
  virtual inline int ExactNumBottomBlobs() const { return 1; }
  virtual inline int ExactNumTopBlobs() const { return 1; }
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>&) {
    this->blobs_.resize(1);
    this->blobs_[0].reset(new Blob<Dtype>(vector<int>{bottom[0]->count()}));
    const FillerParameter& filler = this->layer_param_.inner_product_param().weight_filler();
    shared_ptr<Filler<Dtype>>(GetFiller<Dtype>(filler))->Fill(this->blobs_[0].get());
    this->param_propagate_down_.resize(1, true);
  }
  virtual void Reshape(const vector<Blob<Dtype>*>&, const vector<Blob<Dtype>*>& top) {
    top[0]->Reshape(vector<int>{1});
  }

 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    top[0]->mutable_cpu_data()[0] =
        caffe_cpu_dot(bottom[0]->count(), bottom[0]->cpu_data(), this->blobs_[0]->cpu_data());
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down,
                            const vector<Blob<Dtype>*>& bottom) {
    const int n = bottom[0]->count();
    const Dtype diff = top[0]->cpu_diff()[0];
    if (this->param_propagate_down_[0])
      caffe_axpy(n, diff, bottom[0]->cpu_data(), this->blobs_[0]->mutable_cpu_diff());
    if (propagate_down[0])
      caffe_cpu_scale(n, diff, this->blobs_[0]->cpu_data(), bottom[0]->mutable_cpu_diff());
  }
};
REGISTER_LAYER_CLASS(Product);

template <typename Dtype>
shared_ptr<Layer<Dtype>> Stock(const LayerParameter& param) {
  return StockLayer<Dtype>(param);
}
REGISTER_LAYER_CREATOR(Input, Stock);
REGISTER_LAYER_CREATOR(Power, Stock);
REGISTER_LAYER_CREATOR(ReLU, Stock);
REGISTER_LAYER_CREATOR(Split, Stock);

}  // namespace caffe

using namespace caffe;

static void say(const string& name, const string& text) { printf("%s\t%s\n", name.c_str(), text.c_str()); }

static string text_of(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

static string list(const float* values, int count) {
  string text;
  for (int i = 0; i < count; ++i) text += (i ? " " : "") + text_of(values[i]);
  return text;
}

static string caught(const std::function<void()>& body) {
  try {
    body();
  } catch (const Fatal& error) {
    const string text = error.what();
    return text.substr(text.find(": ") + 2);
  }
  return "nothing";
}

static LayerParameter* add(NetParameter* net, const char* type, const char* name, vector<string> bottom,
                           vector<string> top) {
  LayerParameter* layer = net->add_layer();
  layer->set_type(type);
  layer->set_name(name);
  for (const string& blob : bottom) layer->add_bottom(blob);
  for (const string& blob : top) layer->add_top(blob);
  return layer;
}

static NetParameter with_input(int size) {
  NetParameter net;
  LayerParameter* input = add(&net, "Input", "in", {}, {"x"});
  input->mutable_input_param()->add_shape()->add_dim(size);
  return net;
}

static LayerParameter* add_power(NetParameter* net, const char* name, const char* bottom, const char* top,
                                 float scale) {
  LayerParameter* layer = add(net, "Power", name, {bottom}, {top});
  layer->mutable_power_param()->set_scale(scale);
  return layer;
}

// A vector filled with `value`; `shared`: its name, if several layers have it.
static LayerParameter* add_product(NetParameter* net, const char* name, const char* bottom, const char* top,
                                   float value, const char* shared = nullptr) {
  LayerParameter* layer = add(net, "Product", name, {bottom}, {top});
  InnerProductParameter* param = layer->mutable_inner_product_param();
  param->mutable_weight_filler()->set_type("constant");
  param->mutable_weight_filler()->set_value(value);
  if (shared) layer->add_param()->set_name(shared);
  return layer;
}

static void put(Blob<float>* blob, const vector<float>& values) {
  std::copy(values.begin(), values.end(), blob->mutable_cpu_data());
}

static float forward_backward(Net<float>* net) {
  float loss = 0;
  net->Forward(&loss);
  net->Backward();
  return loss;
}

// Losses: 1 by default, 0.5 by its layer's word, 3 on a top that another layer reads as well.
static void test_losses() {
  NetParameter param = with_input(2);
  param.set_force_backward(true);
  add(&param, "Squares", "first", {"x"}, {"a"});
  add(&param, "Squares", "second", {"x"}, {"b"})->add_loss_weight(0.5);
  add_power(&param, "triple", "x", "y", 3)->add_loss_weight(3);
  add_power(&param, "unweighted", "y", "z", 100);
  Net<float> net(param);
  put(net.blob_by_name("x").get(), {1, 2});
  string losses;
  for (int round = 0; round < 2; ++round) {  // nothing adds up from call to call
    float loss = -1;
    net.Forward(&loss);
    losses += text_of(loss) + " ";
  }
  // 5 + 0.5 * 5 + 3 * (3 + 6)
  say("losses", losses + text_of(net.ForwardFromTo(0, 2)));
  net.Backward();
  // 2x + 0.5 * 2x + 3 * 3; nothing comes from z
  say("losses_backward", list(net.blob_by_name("x")->cpu_diff(), 2));
  string outputs;
  for (const Blob<float>* blob : net.output_blobs()) outputs += list(blob->cpu_data(), blob->count()) + " | ";
  say("outputs", outputs);
}

static string layers_of(const NetParameter& net) {
  string text;
  for (int i = 0; i < net.layer_size(); ++i) {
    const LayerParameter& layer = net.layer(i);
    text += (i ? "; " : "") + layer.name() + ":";
    for (const auto& bottom : layer.bottom()) text += " " + string(bottom);
    text += " ->";
    for (const auto& top : layer.top()) text += " " + string(top);
    for (float weight : layer.loss_weight()) text += " *" + text_of(weight);
  }
  return text;
}

static void test_splits() {
  NetParameter param = with_input(2), split;
  add_power(&param, "p", "x", "y", 2)->add_loss_weight(3);
  add(&param, "ReLU", "r", {"y"}, {"y"});
  add_power(&param, "q", "y", "z", 1);
  add(&param, "Squares", "s", {"y"}, {"loss"})->add_loss_weight(0);
  InsertSplits(param, &split);
  say("splits", layers_of(split));
  NetParameter plain = with_input(2), same;
  add_power(&plain, "p", "x", "y", 2)->add_loss_weight(3);
  InsertSplits(plain, &same);
  say("no_splits", layers_of(same));
  LayerParameter layer;
  ConfigureSplitLayer("l", "b", 1, 3, 0, &layer);
  say("split_layer",
      layer.name() + " " + std::to_string(layer.top_size()) + " " + std::to_string(layer.loss_weight_size()));
}

static void test_shared_weights() {
  NetParameter param = with_input(2);
  add_product(&param, "one", "x", "y", 2, "w");
  add_product(&param, "two", "x", "z", 9, "w");
  add(&param, "Squares", "first", {"y"}, {"a"});
  add(&param, "Squares", "second", {"z"}, {"b"});
  Net<float> net(param);
  put(net.blob_by_name("x").get(), {1, 3});
  const string loss = text_of(forward_backward(&net));
  // y = z = 2 * (1 + 3) = 8; d loss / d w = 2 * 2 * 8 * x
  const Blob<float>& weight = *net.learnable_params()[0];
  say("shared_weights", loss + " | " + std::to_string(net.learnable_params().size()) + " of " +
                            std::to_string(net.params().size()) + " | " + list(weight.cpu_diff(), 2));
  net.ClearParamDiffs();
  say("cleared", list(weight.cpu_diff(), 2));
  NetParameter wrong = with_input(2);
  add_product(&wrong, "one", "x", "y", 2, "w");
  add_product(&wrong, "two", "y", "z", 9, "w");
  say("shared_shapes", caught([&] { Net<float> other(wrong); }));
}

// Backward goes where a loss depends on something that learns, and nowhere else.
static void test_pruning() {
  NetParameter param = with_input(2);
  add_power(&param, "before", "x", "y", 2);
  add_product(&param, "learns", "y", "z", 1);
  add(&param, "Squares", "loss", {"z"}, {"a"});
  add_product(&param, "aside", "y", "unused", 1);
  Net<float> net(param);
  string needs;
  for (size_t i = 0; i < net.layers().size(); ++i)
    needs += net.layer_names()[i] + (net.layer_need_backward()[i] ? "+ " : "- ");
  say("pruned", needs);
  put(net.blob_by_name("x").get(), {1, 1});
  forward_backward(&net);
  say("nothing_below", list(net.blob_by_name("x")->cpu_diff(), 2));
  NetParameter asked = with_input(2);
  LayerParameter* product = add_product(&asked, "learns", "x", "z", 2);
  product->add_propagate_down(true);
  add(&asked, "Squares", "loss", {"z"}, {"a"});
  Net<float> to_input(asked);
  put(to_input.blob_by_name("x").get(), {1, 1});
  forward_backward(&to_input);
  say("propagate_down", list(to_input.blob_by_name("x")->cpu_diff(), 2));
  product = asked.mutable_layer(1);
  product->clear_propagate_down();
  product->add_param()->set_lr_mult(0);
  Net<float> frozen(asked);
  say("frozen", frozen.layer_need_backward()[1] ? "learns" : "rests");
}

static void test_in_place_and_reshape() {
  NetParameter param = with_input(3);
  param.set_force_backward(true);
  add_power(&param, "p", "x", "y", -1);
  add(&param, "ReLU", "r", {"y"}, {"y"});
  add(&param, "Squares", "loss", {"y"}, {"a"});
  Net<float> net(param);
  put(net.blob_by_name("x").get(), {-2, 1, -3});
  const string loss = text_of(forward_backward(&net));
  say("in_place_net", loss + " | " + list(net.blob_by_name("x")->cpu_diff(), 3));
  net.blob_by_name("x")->Reshape(vector<int>{2, 4});
  net.Reshape();
  say("reshaped", net.blob_by_name("y")->shape_string());
}

// One shape for all tops, one for each, or none.
static void test_inputs() {
  string text;
  for (int shapes : {0, 1, 2, 3, 4}) {
    NetParameter param;
    LayerParameter* input = add(&param, "Input", "in", {}, {"a", "b", "c"});
    for (int i = 0; i < shapes; ++i) input->mutable_input_param()->add_shape()->add_dim(i + 2);
    text += caught([&] {
      Net<float> net(param);
      for (const char* name : {"a", "b", "c"}) text += net.blob_by_name(name)->shape_string() + " ";
    });
    text += " | ";
  }
  say("inputs", text);
}

// Backward of a stock layer, where nobody wants a gradient: it writes none, and computes none (there is no BLAS here).
static void test_no_gradient_is_wanted() {
  string text;
  for (const char* type : {"Bias", "Concat", "Convolution", "Eltwise", "InnerProduct", "Pooling", "Power",
                           "ReLU", "Reduction", "Scale", "Sigmoid", "Slice", "Softmax", "Split", "TanH"}) {
    text += type;
    for (int mode : {CAFFE_MODE_CPU, CAFFE_MODE_GPU}) {
      LayerParameter param;
      param.set_type(type);
      param.mutable_convolution_param()->add_kernel_size(1);
      param.mutable_convolution_param()->set_num_output(2);
      param.mutable_inner_product_param()->set_num_output(2);
      param.mutable_pooling_param()->set_kernel_size(1);
      const shared_ptr<Layer<float>> layer = StockLayer<float>(param);
      Blob<float> x(2, 2, 2, 2), other(2, 2, 2, 2), y, more;
      vector<Blob<float>*> bottom{&x}, top{&y};
      if (layer->type() == string("Eltwise") || layer->type() == string("Concat")) bottom.push_back(&other);
      if (layer->type() == string("Slice") || layer->type() == string("Split")) top.push_back(&more);
      layer->SetUp(bottom, top);
      vector<Blob<float>*> kept{&x, &other};
      for (size_t i = 0; i < layer->blobs().size(); ++i) {
        layer->set_param_propagate_down(static_cast<int>(i), false);
        kept.push_back(layer->blobs()[i].get());
      }
      for (Blob<float>* blob : top) caffe_set(blob->count(), 5.f, blob->mutable_cpu_diff());
      for (Blob<float>* blob : kept) caffe_set(blob->count(), 7.f, blob->mutable_cpu_diff());
      call_context.mode = mode;
      text += caught([&] { layer->Backward(top, vector<bool>(bottom.size(), false), bottom); }) == "nothing"
                  ? "+"
                  : "!";
      call_context.mode = CAFFE_MODE_CPU;
      for (const Blob<float>* blob : kept)
        if (std::count(blob->cpu_diff(), blob->cpu_diff() + blob->count(), 7.f) != blob->count()) text += "-";
    }
    text += " ";
  }
  say("no_gradient_is_wanted", text);
}

// What a layer that owns a net asks it for.
static void test_parts_of_a_net() {
  NetParameter param = with_input(2);
  param.set_name("whole");
  param.set_force_backward(true);
  add_power(&param, "p", "x", "y", 2);
  add_product(&param, "one", "y", "z", 3, "w");
  add_product(&param, "two", "y", "v", 3, "w");
  add_product(&param, "three", "y", "u", 4);
  add(&param, "Squares", "loss", {"z"}, {"l"});
  Net<float> net(param);
  put(net.input_blobs()[0], {1, 2});
  const auto value = [&](const char* name) { return text_of(net.blob_by_name(name)->cpu_data()[0]) + " "; };
  // y = 2 4, then z = 3 * 6, then l = 18 * 18
  string text;
  for (int end : {1, 3, 6}) {
    const float loss = end == 1   ? net.ForwardTo(end)
                       : end == 3 ? net.ForwardFromTo(2, end)
                                  : net.ForwardFrom(4);
    text += text_of(loss) + " " + value("y") + value("z") + value("l");
  }
  float loss = 0;
  net.ForwardPrefilled(&loss);
  say("from_to", text + text_of(loss));
  // dl / dy = 2 * 18 * 3, of which nothing is known before the split of y
  net.BackwardTo(3);
  text = list(net.blob_by_name("y")->cpu_diff(), 2) + ", ";
  net.BackwardFromTo(2, 2);
  text +=
      list(net.blob_by_name("y")->cpu_diff(), 2) + ", " + list(net.blob_by_name("x")->cpu_diff(), 2) + ", ";
  net.BackwardFrom(1);
  say("backward_from_to", text + list(net.blob_by_name("x")->cpu_diff(), 2));
  text = net.name() + (net.phase() == TRAIN ? " train " : " test ") + std::to_string(net.num_inputs()) + " " +
         std::to_string(net.num_outputs()) + " " + std::to_string(net.blobs().size());
  for (const string& name : net.blob_names()) text += " " + name;
  for (size_t i = 0; i < net.layers().size(); ++i)
    text += " " + std::to_string(net.bottom_vecs()[i].size()) + std::to_string(net.top_vecs()[i].size()) +
            std::to_string(net.bottom_need_backward()[i].size());
  for (int owner : net.param_owners()) text += " " + std::to_string(owner);
  for (const string& name : net.param_display_names()) text += " " + name;
  net.set_debug_info(true);
  say("parts", text);
  // Memory that its owner was given reaches those that share it.
  const vector<float> other{10, 20};
  net.params()[0]->set_cpu_data(const_cast<float*>(other.data()));
  net.ShareWeightData();
  say("weights_given", list(net.params()[1]->cpu_data(), 2));
  LayerParameter proto;
  text.clear();
  for (bool diffs : {false, true}) {
    net.layers()[3]->ToProto(&proto, diffs);
    text += std::to_string(proto.blobs_size()) + " " +
            list(proto.blobs(0).data().data(), proto.blobs(0).data_size()) + " " +
            std::to_string(proto.blobs(0).diff_size()) + " " + proto.name() + " | ";
  }
  say("layer_to_proto", text);
  call_context.mode = CAFFE_MODE_GPU;
  caffe_set(2, 7.f, net.params()[2]->mutable_cpu_diff());
  net.ClearParamDiffs();
  say("cleared_on_the_gpu", list(net.params()[2]->cpu_diff(), 2));
  call_context.mode = CAFFE_MODE_CPU;
}

// By type: what this program registers, behind which stand the stock layers.
static void test_types() {
  string text;
  for (const string& type : LayerRegistry<float>::LayerTypeList()) text += type + " ";
  LayerParameter param;
  for (const char* type :
       {"Bias", "Concat", "Convolution", "Eltwise", "Flatten", "Input", "InnerProduct", "Pooling", "Power",
        "ReLU", "Reduction", "Reshape", "Scale", "Sigmoid", "Slice", "Softmax", "Split", "TanH", "Squares"}) {
    param.set_type(type);
    text += LayerRegistry<float>::CreateLayer(param)->type() == string(type) ? "+" : "-";
  }
  param.set_type("Nobody");
  say("types_of_a_net", text + " " + caught([&] { LayerRegistry<float>::CreateLayer(param); }));
}

static void test_refusals() {
  NetParameter unknown = with_input(2);
  add_power(&unknown, "p", "nowhere", "y", 1);
  say("unknown_bottom", caught([&] { Net<float> net(unknown); }));
  NetParameter twice = with_input(2);
  add_power(&twice, "p", "x", "y", 1);
  add_power(&twice, "q", "x", "y", 1);
  say("two_sources", caught([&] { Net<float> net(twice); }));
  NetParameter rules = with_input(2);
  add_power(&rules, "p", "x", "y", 1)->add_include();
  say("rules", caught([&] { Net<float> net(rules); }));
  NetParameter down = with_input(2);
  LayerParameter* layer = add_power(&down, "p", "x", "y", 1);
  layer->add_propagate_down(true);
  layer->add_propagate_down(true);
  say("propagate_down_twice", caught([&] { Net<float> net(down); }));
  NetParameter params = with_input(2);
  add_power(&params, "p", "x", "y", 1)->add_param();
  say("too_many_params", caught([&] { Net<float> net(params); }));
  NetParameter fine = with_input(2);
  Net<float> net(fine);
  say("names", string(net.has_layer("in") ? "in" : "none") + (net.has_layer("x") ? " x" : "") +
                   (net.has_blob("x") ? " x" : "") + (net.layer_by_name("p") ? " p" : "") +
                   (net.layer_by_name("in") == net.layers()[0] ? " first" : "") +
                   (net.blob_by_name("y") ? " y" : ""));
}

int main() {
  host_services.log = [](int64_t, const char*) {};
  call_context.device = -1;
  test_losses();
  test_splits();
  test_shared_weights();
  test_pruning();
  test_in_place_and_reshape();
  test_inputs();
  test_parts_of_a_net();
  test_types();
  test_no_gradient_is_wanted();
  test_refusals();
}
