#include "caffe/net.hpp"

#include "caffe/layer_factory.hpp"
#include "caffe/util/insert_splits.hpp"

namespace caffe {

template <typename Dtype>
Net<Dtype>::Net(const NetParameter& in_param) : name_(in_param.name()) {
  NetParameter param;
  InsertSplits(in_param, &param);
  phase_ = param.state().phase();
  for (int i = 0; i < param.layer_size(); ++i) {
    LayerParameter* layer_param = param.mutable_layer(i);
    CHECK(layer_param->include_size() == 0 && layer_param->exclude_size() == 0)
        << "layer '" << layer_param->name()
        << "': include and exclude rules are not known to a layer's own Net";
    if (!layer_param->has_phase()) layer_param->set_phase(phase_);
    AppendLayer(*layer_param, param.force_backward());
  }
  if (!param.force_backward()) PruneBackward();
  FindOutputs();
  ShareWeights();
}

template <typename Dtype>
void Net<Dtype>::AppendLayer(const LayerParameter& layer_param, bool force_backward) {
  const shared_ptr<Layer<Dtype>> layer = LayerRegistry<Dtype>::CreateLayer(layer_param);
  layers_.push_back(layer);
  layer_names_.push_back(layer_param.name());
  vector<int> bottom_ids, top_ids;
  vector<Blob<Dtype>*> bottom, top;
  bool need_backward = force_backward;
  for (int i = 0; i < layer_param.bottom_size(); ++i) {
    const int id = blob_index_.at(layer_param.bottom(i));  // InsertSplits rejected unknown names
    bottom_ids.push_back(id);
    bottom.push_back(blobs_[id].get());
    need_backward |= blob_need_backward_[id];
  }
  const int named = layer_param.top_size();
  const int top_count =
      layer->AutoTopBlobs() ? std::max({named, layer->MinTopBlobs(), layer->ExactNumTopBlobs()}) : named;
  for (int i = 0; i < top_count; ++i) {
    top_ids.push_back(AppendTop(layer_param, i));
    top.push_back(blobs_[top_ids[i]].get());
    if (string(layer->type()) == "Input") input_blobs_.push_back(top.back());
  }
  layer->SetUp(bottom, top);
  const int param_count = static_cast<int>(layer->blobs().size());
  CHECK(layer_param.propagate_down_size() == 0 ||
        layer_param.propagate_down_size() == layer_param.bottom_size())
      << "propagate_down param must be specified either 0 or bottom_size times";
  CHECK_LE(layer_param.param_size(), param_count)
      << "Too many params specified for layer " << layer_param.name();
  for (int i = 0; i < param_count; ++i) {
    const bool learns = i >= layer_param.param_size() || layer_param.param(i).lr_mult() != 0;
    need_backward |= learns;
    layer->set_param_propagate_down(i, learns || force_backward);
    AppendParam(layer_param, i);
  }
  vector<bool> bottom_need_backward;
  for (int i = 0; i < layer_param.bottom_size(); ++i) {
    const bool asked = layer_param.propagate_down_size() > 0 ? layer_param.propagate_down(i)
                                                             : blob_need_backward_[bottom_ids[i]];
    const bool forced = force_backward && layer->AllowForceBackward(i);
    bottom_need_backward.push_back(asked || forced);
    if (forced) blob_need_backward_[bottom_ids[i]] = true;
  }
  for (int id : top_ids) blob_need_backward_[id] = need_backward;
  bottom_vecs_.push_back(bottom);
  top_vecs_.push_back(top);
  bottom_ids_.push_back(bottom_ids);
  top_ids_.push_back(top_ids);
  bottom_need_backward_.push_back(bottom_need_backward);
  layer_need_backward_.push_back(need_backward);
}

// Returns the index of a new blob, or of the bottom to which the layer writes in place.
template <typename Dtype>
int Net<Dtype>::AppendTop(const LayerParameter& layer_param, int i) {
  const bool named = i < layer_param.top_size();
  const string blob_name = named ? layer_param.top(i) : "(automatic)";
  if (named && i < layer_param.bottom_size() && blob_name == layer_param.bottom(i))
    return blob_index_.at(blob_name);
  if (named && has_blob(blob_name))
    LOG(FATAL) << "Top blob '" << blob_name << "' produced by multiple sources.";
  const int id = static_cast<int>(blobs_.size());
  if (named) blob_index_[blob_name] = id;
  blobs_.emplace_back(new Blob<Dtype>());
  blob_names_.push_back(blob_name);
  blob_need_backward_.push_back(false);
  return id;
}

template <typename Dtype>
void Net<Dtype>::AppendParam(const LayerParameter& layer_param, int param_id) {
  const shared_ptr<Blob<Dtype>> blob = layers_.back()->blobs()[param_id];
  const ParamSpec spec = param_id < layer_param.param_size() ? layer_param.param(param_id) : ParamSpec();
  const int id = static_cast<int>(params_.size());
  params_.push_back(blob);
  param_display_names_.push_back(spec.name().empty() ? std::to_string(param_id) : spec.name());
  const auto owner = spec.name().empty() ? param_by_name_.end() : param_by_name_.find(spec.name());
  if (owner == param_by_name_.end()) {
    param_owners_.push_back(-1);
    learnable_params_.push_back(blob.get());
    if (!spec.name().empty()) param_by_name_[spec.name()] = id;
    return;
  }
  param_owners_.push_back(owner->second);
  const Blob<Dtype>& owned = *params_[owner->second];
  const bool permissive = spec.share_mode() == ParamSpec_DimCheckMode_PERMISSIVE;
  CHECK(permissive ? blob->count() == owned.count() : blob->shape() == owned.shape())
      << "Cannot share param '" << spec.name() << "' with layer '" << layer_param.name()
      << "': shape mismatch: owner's is " << owned.shape_string() << "; this layer expects shape "
      << blob->shape_string();
}

template <typename Dtype>
int Net<Dtype>::iter() const {
  return CurrentIteration();
}

// A layer needs no backward pass if no loss depends on it.
template <typename Dtype>
void Net<Dtype>::PruneBackward() {
  std::set<int> under_loss;
  for (int i = static_cast<int>(layers_.size()) - 1; i >= 0; --i) {
    bool contributes = false;
    for (size_t j = 0; j < top_ids_[i].size(); ++j) {
      contributes |= layers_[i]->loss(static_cast<int>(j)) != 0 || under_loss.count(top_ids_[i][j]) > 0;
    }
    layer_need_backward_[i] = layer_need_backward_[i] && contributes;
    for (size_t j = 0; j < bottom_ids_[i].size(); ++j) {
      if (contributes) under_loss.insert(bottom_ids_[i][j]);
      bottom_need_backward_[i][j] = bottom_need_backward_[i][j] && contributes;
    }
  }
}

// Outputs are the blobs that no layer reads.
template <typename Dtype>
void Net<Dtype>::FindOutputs() {
  std::set<int> read;
  for (const vector<int>& ids : bottom_ids_) read.insert(ids.begin(), ids.end());
  for (size_t id = 0; id < blobs_.size(); ++id) {
    if (!read.count(static_cast<int>(id))) output_blobs_.push_back(blobs_[id].get());
  }
}

template <typename Dtype>
const vector<Blob<Dtype>*>& Net<Dtype>::Forward(Dtype* loss) {
  const Dtype total = ForwardFrom(0);
  if (loss) *loss = total;
  return output_blobs_;
}

template <typename Dtype>
Dtype Net<Dtype>::ForwardFromTo(int start, int end) {
  CHECK_GE(start, 0);
  CHECK_LT(end, static_cast<int>(layers_.size()));
  Dtype loss = 0;
  for (int i = start; i <= end; ++i) loss += layers_[i]->Forward(bottom_vecs_[i], top_vecs_[i]);
  return loss;
}

template <typename Dtype>
void Net<Dtype>::BackwardFromTo(int start, int end) {
  CHECK_GE(end, 0);
  CHECK_LT(start, static_cast<int>(layers_.size()));
  for (int i = start; i >= end; --i) {
    if (layer_need_backward_[i])
      layers_[i]->Backward(top_vecs_[i], bottom_need_backward_[i], bottom_vecs_[i]);
  }
}

template <typename Dtype>
void Net<Dtype>::Reshape() {
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->Reshape(bottom_vecs_[i], top_vecs_[i]);
}

template <typename Dtype>
void Net<Dtype>::ClearParamDiffs() {
  for (Blob<Dtype>* blob : learnable_params_) {
    if (Caffe::mode() == Caffe::GPU) {
      caffe_gpu_set(blob->count(), Dtype(0), blob->mutable_gpu_diff());
    } else {
      caffe_set(blob->count(), Dtype(0), blob->mutable_cpu_diff());
    }
  }
}

template <typename Dtype>
void Net<Dtype>::ShareWeights() {
  for (size_t i = 0; i < params_.size(); ++i) {
    if (param_owners_[i] < 0) continue;
    params_[i]->ShareData(*params_[param_owners_[i]]);
    params_[i]->ShareDiff(*params_[param_owners_[i]]);
  }
}

template <typename Dtype>
bool Net<Dtype>::has_layer(const string& layer_name) const {
  return std::find(layer_names_.begin(), layer_names_.end(), layer_name) != layer_names_.end();
}

template <typename Dtype>
const shared_ptr<Layer<Dtype>> Net<Dtype>::layer_by_name(const string& layer_name) const {
  const auto found = std::find(layer_names_.begin(), layer_names_.end(), layer_name);
  if (found != layer_names_.end()) return layers_[found - layer_names_.begin()];
  LOG(WARNING) << "Unknown layer name " << layer_name;
  return nullptr;
}

template <typename Dtype>
const shared_ptr<Blob<Dtype>> Net<Dtype>::blob_by_name(const string& blob_name) const {
  const auto found = blob_index_.find(blob_name);
  if (found != blob_index_.end()) return blobs_[found->second];
  LOG(WARNING) << "Unknown blob name " << blob_name;
  return nullptr;
}

INSTANTIATE_CLASS(Net);

}  // namespace caffe
