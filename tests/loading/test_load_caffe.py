"""load of a Caffe layer's folder: its message, its files unedited, no Python file."""

import os

import pytest
import torch
from support.typed import not_none

from cuffi import load

PROTO = """syntax = "proto2";
import "caffe.proto";
package caffe;
message TimesParameter { optional float factor = 1 [default = 2]; }
extend LayerParameter { optional TimesParameter times_param = 9010; }
"""
LAYER = """#include "caffe/layers/neuron_layer.hpp"
namespace caffe {
template <typename Dtype>
class TimesLayer : public NeuronLayer<Dtype> {
 public:
  explicit TimesLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "Times"; }

 protected:
  float factor() const { return this->layer_param_.times_param().factor(); }
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    caffe_cpu_scale<Dtype>(bottom[0]->count(), factor(), bottom[0]->cpu_data(), top[0]->mutable_cpu_data());
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>&, const vector<Blob<Dtype>*>& bottom) {
    caffe_cpu_scale<Dtype>(bottom[0]->count(), factor(), top[0]->cpu_diff(), bottom[0]->mutable_cpu_diff());
  }
};
INSTANTIATE_CLASS(TimesLayer);
REGISTER_LAYER_CLASS(Times);
}  // namespace caffe
"""


@pytest.mark.filterwarnings("ignore:load. .* has no cases.py")
def test_a_caffe_layers_folder(cache, tmp_path):
    folder = tmp_path / "fork" / "times"
    folder.mkdir(parents=True)
    (folder / "times.proto").write_text(PROTO)
    (folder / "times_layer.cpp").write_text(LAYER)
    before = sorted(os.listdir(folder))
    module = load(folder)
    x = torch.randn(2, 3, requires_grad=True)
    y = module.Times(times_param={"factor": 3})(x)
    assert torch.equal(y, 3 * x)
    y.sum().backward()
    assert torch.equal(not_none(x.grad), torch.full((2, 3), 3.0))
    assert sorted(os.listdir(folder)) == before
    assert load(folder) is module
