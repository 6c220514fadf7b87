// A small Net for layers that own one (RecurrentLayer unrolls itself into a Net). It runs layers in order and
// shares parameters by name. It reads no files, has no include or exclude rules, and works with no solver.
#ifndef CAFFE_NET_HPP_
#define CAFFE_NET_HPP_

#include "caffe/blob.hpp"
#include "caffe/common.hpp"
#include "caffe/layer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

template <typename Dtype>
class Net {
 public:
  explicit Net(const NetParameter& param);
  virtual ~Net() {}

  // Runs all layers in order. The loss is the sum of all weighted tops.
  const vector<Blob<Dtype>*>& Forward(Dtype* loss = NULL);
  Dtype ForwardFromTo(int start, int end);
  Dtype ForwardFrom(int start) { return ForwardFromTo(start, static_cast<int>(layers_.size()) - 1); }
  Dtype ForwardTo(int end) { return ForwardFromTo(0, end); }

  // From layer `start` down to `end`, both included.
  void BackwardFromTo(int start, int end);
  void Backward() { BackwardFrom(static_cast<int>(layers_.size()) - 1); }
  void BackwardFrom(int start) { BackwardFromTo(start, 0); }
  void BackwardTo(int end) { BackwardFromTo(static_cast<int>(layers_.size()) - 1, end); }

  void Reshape();
  void ClearParamDiffs();
  // Lets each shared parameter use its owner's memory. Call it again after an owner got other memory.
  void ShareWeights();

  // The names in forks of 2015.
  void ShareWeightData() { ShareWeights(); }
  const vector<Blob<Dtype>*>& ForwardPrefilled(Dtype* loss = NULL) { return Forward(loss); }

  const string& name() const { return name_; }
  Phase phase() const { return phase_; }
  void set_debug_info(bool) {}
  // From flownet2: the training loop's iteration, as the module was told.
  int iter() const;

  const vector<shared_ptr<Layer<Dtype>>>& layers() const { return layers_; }
  const vector<string>& layer_names() const { return layer_names_; }
  const vector<bool>& layer_need_backward() const { return layer_need_backward_; }
  bool has_layer(const string& layer_name) const;
  const shared_ptr<Layer<Dtype>> layer_by_name(const string& layer_name) const;

  const vector<shared_ptr<Blob<Dtype>>>& blobs() const { return blobs_; }
  const vector<string>& blob_names() const { return blob_names_; }
  bool has_blob(const string& blob_name) const { return blob_index_.count(blob_name) > 0; }
  // Returns NULL and logs a warning if there is none.
  const shared_ptr<Blob<Dtype>> blob_by_name(const string& blob_name) const;
  const vector<vector<Blob<Dtype>*>>& bottom_vecs() const { return bottom_vecs_; }
  const vector<vector<Blob<Dtype>*>>& top_vecs() const { return top_vecs_; }
  const vector<vector<bool>>& bottom_need_backward() const { return bottom_need_backward_; }
  const vector<Blob<Dtype>*>& input_blobs() const { return input_blobs_; }
  const vector<Blob<Dtype>*>& output_blobs() const { return output_blobs_; }
  int num_inputs() const { return static_cast<int>(input_blobs_.size()); }
  int num_outputs() const { return static_cast<int>(output_blobs_.size()); }

  // All layers' parameter blobs in order. The owner of blob i is params()[param_owners()[i]]. -1: not shared.
  const vector<shared_ptr<Blob<Dtype>>>& params() const { return params_; }
  const vector<int>& param_owners() const { return param_owners_; }
  const vector<string>& param_display_names() const { return param_display_names_; }
  const vector<Blob<Dtype>*>& learnable_params() const { return learnable_params_; }

 protected:
  void AppendLayer(const LayerParameter& layer_param, bool force_backward);
  int AppendTop(const LayerParameter& layer_param, int i);
  void AppendParam(const LayerParameter& layer_param, int param_id);
  void FindOutputs();
  void PruneBackward();

  string name_;
  Phase phase_;
  vector<shared_ptr<Layer<Dtype>>> layers_;
  vector<string> layer_names_;
  vector<bool> layer_need_backward_;
  vector<shared_ptr<Blob<Dtype>>> blobs_;
  vector<string> blob_names_;
  vector<bool> blob_need_backward_;
  std::map<string, int> blob_index_;
  vector<vector<Blob<Dtype>*>> bottom_vecs_, top_vecs_;
  vector<vector<int>> bottom_ids_, top_ids_;
  vector<vector<bool>> bottom_need_backward_;
  vector<Blob<Dtype>*> input_blobs_, output_blobs_;
  vector<shared_ptr<Blob<Dtype>>> params_;
  vector<int> param_owners_;
  vector<string> param_display_names_;
  std::map<string, int> param_by_name_;
  vector<Blob<Dtype>*> learnable_params_;

  DISABLE_COPY_AND_ASSIGN(Net);
};

// The net that GetNet() returns: a module's layer is in no net, but iter() works.
template <typename Dtype>
Net<Dtype>* Layer<Dtype>::GetNet() {
  static Net<Dtype> nothing{NetParameter()};
  return &nothing;
}

}  // namespace caffe

#endif  // CAFFE_NET_HPP_
