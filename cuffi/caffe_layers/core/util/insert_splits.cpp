#include "caffe/util/insert_splits.hpp"

#include "caffe/common.hpp"

namespace caffe {

namespace {

// The uses of a top: how many there are, and which of its copies the next use gets.
struct TopUse {
  std::string layer_name;
  int index = 0;
  int readers = 0;
  int given = 0;
  float loss_weight = 0;
};

using TopKey = std::pair<int, int>;  // layer, top

}  // namespace

std::string SplitLayerName(const std::string& layer_name, const std::string& blob_name, int blob_idx) {
  return blob_name + "_" + layer_name + "_" + std::to_string(blob_idx) + "_split";
}

std::string SplitBlobName(const std::string& layer_name, const std::string& blob_name, int blob_idx,
                          int split_idx) {
  return SplitLayerName(layer_name, blob_name, blob_idx) + "_" + std::to_string(split_idx);
}

void ConfigureSplitLayer(const std::string& layer_name, const std::string& blob_name, int blob_idx,
                         int split_count, float loss_weight, LayerParameter* split_layer_param) {
  split_layer_param->Clear();
  split_layer_param->set_name(SplitLayerName(layer_name, blob_name, blob_idx));
  split_layer_param->set_type("Split");
  split_layer_param->add_bottom(blob_name);
  for (int i = 0; i < split_count; ++i) {
    split_layer_param->add_top(SplitBlobName(layer_name, blob_name, blob_idx, i));
    // The first copy has the loss weight. Layers read the others.
    if (loss_weight != 0) split_layer_param->add_loss_weight(i == 0 ? loss_weight : 0);
  }
}

void InsertSplits(const NetParameter& param, NetParameter* param_split) {
  std::map<TopKey, TopUse> uses;
  std::map<TopKey, TopKey> top_of_bottom;
  std::map<std::string, TopKey> latest;  // an in-place layer writes the same name again
  for (int i = 0; i < param.layer_size(); ++i) {
    const LayerParameter& layer = param.layer(i);
    for (int j = 0; j < layer.bottom_size(); ++j) {
      const auto made = latest.find(layer.bottom(j));
      if (made == latest.end()) {
        LOG(FATAL) << "Unknown bottom blob '" << layer.bottom(j) << "' (layer '" << layer.name()
                   << "', bottom index " << j << ")";
      }
      top_of_bottom[{i, j}] = made->second;
      ++uses[made->second].readers;
    }
    for (int j = 0; j < layer.top_size(); ++j) {
      latest[layer.top(j)] = {i, j};
      TopUse& use = uses[{i, j}];
      use.layer_name = layer.name();
      use.index = j;
      use.loss_weight = j < layer.loss_weight_size() ? layer.loss_weight(j) : 0;
      if (use.loss_weight != 0) ++use.readers;
    }
  }
  NetParameter result;
  result.CopyFrom(param);
  result.clear_layer();
  for (int i = 0; i < param.layer_size(); ++i) {
    LayerParameter* layer = result.add_layer();
    layer->CopyFrom(param.layer(i));
    for (int j = 0; j < layer->bottom_size(); ++j) {
      TopUse& use = uses[top_of_bottom[{i, j}]];
      if (use.readers > 1) {
        layer->set_bottom(j, SplitBlobName(use.layer_name, layer->bottom(j), use.index, use.given++));
      }
    }
    for (int j = 0; j < param.layer(i).top_size(); ++j) {
      TopUse& use = uses[{i, j}];
      if (use.readers <= 1) continue;
      ConfigureSplitLayer(use.layer_name, param.layer(i).top(j), j, use.readers, use.loss_weight,
                          result.add_layer());
      if (use.loss_weight != 0) {
        result.mutable_layer(result.layer_size() - 2)->clear_loss_weight();
        ++use.given;
      }
    }
  }
  param_split->CopyFrom(result);
}

}  // namespace caffe
