// Makes layers by their type names.
#ifndef CAFFE_LAYER_FACTORY_H_
#define CAFFE_LAYER_FACTORY_H_

#include "caffe/common.hpp"
#include "caffe/layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

template <typename Dtype>
class Layer;

// Makes a layer of the core, or returns null if the core has none of that type (core/stock_layers.cpp).
template <typename Dtype>
shared_ptr<Layer<Dtype>> StockLayer(const LayerParameter& param);

// CPU functions that are empty or incomplete, of layers that have kernels. The key is "Type.Forward_cpu", the
// value the place and the reason. cuffi/caffe_layers/make/cpu_code.py finds them during the build. A call of such a
// function runs the kernels instead, as with NOT_IMPLEMENTED.
inline std::map<string, string>& MissingCpuCode() {
  static std::map<string, string>* missing = new std::map<string, string>();
  return *missing;
}

// Functions that write each element of their results, such as "Type.Forward_gpu": the layer's file `overwrites` lists
// them. Such a result is not zeroed before.
inline std::set<string>& OverwritingFunctions() {
  static std::set<string>* functions = new std::set<string>();
  return *functions;
}

// Each library has its own registry of the layers in its sources. For other types it tries the stock layers.
template <typename Dtype>
class LayerRegistry {
 public:
  typedef shared_ptr<Layer<Dtype>> (*Creator)(const LayerParameter&);
  typedef std::map<string, Creator> CreatorRegistry;

  static CreatorRegistry& Registry();
  static void AddCreator(const string& type, Creator creator);

  static shared_ptr<Layer<Dtype>> CreateLayer(const LayerParameter& param) {
    const auto found = Registry().find(param.type());
    if (found != Registry().end()) return found->second(param);
    shared_ptr<Layer<Dtype>> stock = StockLayer<Dtype>(param);
    CHECK(stock) << "Unknown layer type: " << param.type() << " (known types: " << LayerTypeListString()
                 << ")";
    return stock;
  }

  static vector<string> LayerTypeList() {
    vector<string> types;
    for (const auto& entry : Registry()) types.push_back(entry.first);
    return types;
  }

 private:
  LayerRegistry() {}

  static string LayerTypeListString() {
    string text;
    for (const string& type : LayerTypeList()) text += (text.empty() ? "" : ", ") + type;
    return text;
  }
};

template <typename Dtype>
class LayerRegisterer {
 public:
  LayerRegisterer(const string& type, shared_ptr<Layer<Dtype>> (*creator)(const LayerParameter&)) {
    LayerRegistry<Dtype>::AddCreator(type, creator);
  }
};

#define REGISTER_LAYER_CREATOR(type, creator)                              \
  static LayerRegisterer<float> g_creator_f_##type(#type, creator<float>); \
  static LayerRegisterer<double> g_creator_d_##type(#type, creator<double>)

#define REGISTER_LAYER_CLASS(type)                                              \
  template <typename Dtype>                                                     \
  shared_ptr<Layer<Dtype>> Creator_##type##Layer(const LayerParameter& param) { \
    return shared_ptr<Layer<Dtype>>(new type##Layer<Dtype>(param));             \
  }                                                                             \
  REGISTER_LAYER_CREATOR(type, Creator_##type##Layer)

}  // namespace caffe

#endif  // CAFFE_LAYER_FACTORY_H_
