"""boost's names that layers use, and their results."""

import importlib

import pytest
import torch
from conftest import ROOT, make

from cuffi.runtime.cases import load_package

RANKS = """
#pragma GCC optimize("O0")
#include "boost/foreach.hpp"
#include "boost/smart_ptr/shared_ptr.hpp"
#include "boost/random/uniform_int.hpp"
#include <boost/utility.hpp>
#include <google/protobuf/message.h>
#include "boost/property_tree/json_parser.hpp"
#include "boost/regex.hpp"
#include "caffe/data_transformer.hpp"
#include "thrust/sort.h"
"""
RANK = """
  using namespace boost::property_tree;
  boost::scoped_array<int> unused(new int[1]);
  vector<Dtype> keys(bottom[0]->cpu_data(), bottom[0]->cpu_data() + bottom[0]->count());
  Dtype* ranks = top[0]->mutable_cpu_data();
  CHECK_EQ(*boost::next(keys.begin()), keys[1]);
  for (int i = 0; i < keys.size(); ++i) ranks[i] = i;
  thrust::sort_by_key(keys.begin(), keys.end(), ranks, thrust::greater<Dtype>());

  LabelMap labels;
  labels.add_item()->set_name("a/\\"b");
  map<int, string> names;
  MapLabelToName(labels, true, &names);
  ptree list, one, all;
  one.put("name", names[0]);
  BOOST_FOREACH(Dtype key, keys) {
    ptree value;
    value.template put<float>("", key);
    list.push_back(std::make_pair("", value));
  }
  one.add_child("keys", list);
  CHECK_EQ(one.get_child("keys").begin()->second.template get_value<float>(), float(keys[0]));
  CHECK_EQ(one.template get<string>("name"), names[0]);
  try {
    read_json(string("labels.json"), one);
    LOG(FATAL) << "read";
  } catch (const ptree_error& error) {
    CHECK_EQ(string(error.what()).substr(0, 9), "read_json");
  }
  all.push_back(std::make_pair("one", one));
  std::stringstream text;
  write_json(text, all);
  boost::regex number("\\"(-?[0-9.]+)\\"");
  std::ofstream(this->layer_param_.name()) << boost::regex_replace(text.str(), number, "$1");
"""
SHOW = """
  virtual void LayerSetUp(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    transformer_.reset(new DataTransformer<Dtype>(this->layer_param_.transform_param(), this->phase_));
    if (this->layer_param_.transform_param().mirror()) transformer_->InitRand();
  }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    top[0]->ReshapeLike(*bottom[0]);
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>&, const vector<bool>&, const vector<Blob<Dtype>*>&) {}
  shared_ptr<DataTransformer<Dtype> > transformer_;
"""
LABELS = """
message LabelMapItem {
  optional string name = 1;
  optional int32 label = 2;
  optional string display_name = 3;
}
message LabelMap { repeated LabelMapItem item = 1; }
"""
WRITTEN = """{
    "one": {
        "name": "a\\/\\"b",
        "keys": [
            2,
            0.100000001,
            0.100000001
        ]
    }
}
"""


def test_layer_that_sorts_writes_and_could_show(fork, port, tmp_path):
    """SSD's DetectionOutput uses thrust, boost's property tree, and a DataTransformer that it only creates."""
    stock = (ROOT / "cuffi/caffe_layers/core/proto/caffe.proto").read_text()
    fork.write("src/caffe/proto/caffe.proto", stock + LABELS)
    header = fork.root / "include/caffe/layers/ranks_layer.hpp"
    fork.layer("Ranks", body=RANK, includes='#include "caffe/util/io.hpp"', members=SHOW)
    header.write_text(RANKS + header.read_text())
    port("Ranks")
    settings = [f"LAYERS_DIR={port.folder}", "NVCC=", "-j4"]
    done = make(*settings, "libraries", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    Ranks = importlib.import_module(f"{load_package(port.folder, 'ported_layers')}.ranks").Ranks
    x = torch.tensor([0.1, 2.0, 0.1])
    assert Ranks(name=str(tmp_path / "ranks.json"))(x).tolist() == [1, 0, 2]
    assert (tmp_path / "ranks.json").read_text() == WRITTEN
    with pytest.raises(RuntimeError, match="neither reads nor shows images"):
        Ranks(transform_param={"mirror": True})(x)
