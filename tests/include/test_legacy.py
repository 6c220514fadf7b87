"""The names of thrust and boost that layers use, and what they do."""

import importlib
import subprocess

import pytest
import torch
from conftest import ROOT, make

from layers._runtime.cases import load_package

SORTS = """
#include "boost/iterator/counting_iterator.hpp"
#include "boost/smart_ptr.hpp"
#include "caffe/util/thrust.hpp"
#include <stdio.h>
#include <vector>
int main() {
  const int n = 40;
  std::vector<float> keys;
  for (int i = 0; i < n; ++i) keys.push_back(i * 7 % 3);
  std::vector<int> at(boost::counting_iterator<int>(0), boost::counting_iterator<int>(n)), sorted = at;
  thrust::sort_by_key(&keys[0], &keys[0] + n, &at[0], thrust::greater<float>());
  for (int i = 0; i < n; ++i) printf("%g:%d ", keys[i], at[i]);
  boost::shared_array<float> held(new float[2]), same = held;
  held[1] = 5;
  boost::scoped_array<int> alone(new int[1]);
  alone[0] = same[1] == 5 && same.get() == held.get();
  held.reset();
  if (held || !alone[0]) return 1;
  thrust::sort_by_key(at.begin(), at.end(), keys.begin());
  for (int i = 0; i < n; ++i) printf("%d:%g ", at[i], keys[i]);
  thrust::sort(sorted.begin(), sorted.end(), thrust::greater<int>());
  printf("%d %d ", sorted[0], sorted[n - 1]);
  const int most = thrust::reduce(at.begin(), at.end(), 1, thrust::maximum<int>());
  printf("%d %d\\n", thrust::reduce(at.begin(), at.end()), most);
}
"""


ON_HOST = ["g++", "-DCAFFE_HOST_BACKEND=1", "-Iinclude/host", "-x", "c++"]


def said_by(source: str, compiler: list, folder) -> str:
    """What a program prints."""
    (folder / "program.cu").write_text(source)
    command = [*compiler, "-std=c++17", "-Iinclude", "-Iinclude/legacy", folder / "program.cu"]
    subprocess.run([*command, "-o", folder / "program"], cwd=ROOT, check=True)
    return subprocess.run([folder / "program"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("compiler", ["host", "nvcc"])
def test_thrust_sorts_host_memory(compiler, tmp_path, request):
    """Equal keys keep their order."""
    said = said_by(SORTS, ON_HOST if compiler == "host" else [request.getfixturevalue("nvcc")], tmp_path)
    descending = sorted(range(40), key=lambda i: -(i * 7 % 3))
    pairs = [f"{i * 7 % 3}:{i}" for i in descending] + [f"{i}:{i * 7 % 3}" for i in range(40)]
    assert said == " ".join([*pairs, "39 0", "780 39\n"])


ON_DEVICE = """
#ifdef __CUDACC__
#define CAFFE_ENGINE 1  // whose cudaMemcpy is CUDA's
#include "caffe/util/thrust_stream.hpp"
#include <thrust/binary_search.h>
#include <thrust/count.h>
#include <thrust/extrema.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/remove.h>
#include <thrust/replace.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/transform_scan.h>
namespace caffe {
thread_local CallContext call_context;
}
#else
#include "caffe/util/thrust.hpp"
#endif
#include <stdio.h>
struct Square : thrust::unary_function<float, float> {
  __host__ __device__ float operator()(float x) const { return x * x; }
};
struct Row : thrust::unary_function<int, int> {
  int columns;
  Row(int of) : columns(of) {}
  __host__ __device__ int operator()(int i) { return i / columns; }  // not const
};
template <typename Vector>
void show(const Vector& v) {
  for (int i = 0; i < (int)v.size(); ++i) printf("%g ", (double)v[i]);
  printf("| ");
}
int main() {
  using namespace thrust::placeholders;
  thrust::device_vector<float> x(6);
  thrust::sequence(x.begin(), x.end());
  float* raw = thrust::raw_pointer_cast(&x[0]);
  thrust::device_ptr<float> p(raw), q = thrust::device_pointer_cast(raw);
  thrust::transform(thrust::device, raw, raw + 6, raw, 7 - _1 * 3.f);
  thrust::transform(p, p + 6, q, Square());
  show(x);
  printf("%g ", (double)thrust::reduce(thrust::device, raw, raw + 6));
  printf("%g ", (double)thrust::reduce(p, p + 6, 0.f, thrust::maximum<float>()));
  printf("%g ", (double)thrust::inner_product(x.begin(), x.end(), x.begin(), 0.f));
  printf("%d | ", (int)(thrust::max_element(x.begin() + 1, x.end()) - x.begin()));
  thrust::counting_iterator<int> from(1);
  thrust::device_vector<int> keys(6), ids(6), out(6), ask(3);
  thrust::copy(from, from + 6, ids.begin());
  thrust::transform(ids.begin(), ids.end(), keys.begin(), _1 % 2);
  thrust::stable_sort_by_key(thrust::device, keys.begin(), keys.end(), ids.begin(), thrust::greater<int>());
  show(ids);
  thrust::transform_exclusive_scan(thrust::device, keys.begin(), keys.end(), out.begin(), 1 == _1, 0,
                                   thrust::plus<int>());
  show(out);
  thrust::inclusive_scan(out.begin(), out.end(), out.begin());
  thrust::replace_if(thrust::device, out.begin(), out.end(), keys.begin(), 0 != _1, -1);
  show(out);
  thrust::device_vector<int>::iterator end =
      thrust::remove_if(ids.begin(), ids.end(), keys.begin(), _1 > 0);
  printf("%d %d %d | ", (int)(end - ids.begin()), (int)ids[0], (int)thrust::count(ids.begin(), end, 4));
  thrust::sequence(thrust::device, ids.begin(), ids.end(), 10, 2);
  ask[0] = 13, ask[1] = 99, ask[2] = 10;
  thrust::lower_bound(thrust::device, ids.begin(), ids.end(), ask.begin(), ask.end(), out.begin());
  thrust::host_vector<int> there = out;
  show(there);
  const auto row = thrust::make_transform_iterator(from, Row(2));
  thrust::copy(row, row + 3, ask.begin());
  show(ask);
  thrust::counting_iterator<int> at = from;
  printf("%d ", *at++);
  printf("%d ", *at--);
  printf("%d", *++at);
  return 0;
}
"""


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_thrust_on_the_device(place, tmp_path, request):
    """By ours on the host backend; on a GPU by nvcc's. The numbers are counted out by hand."""
    compiler = ON_HOST if place == "cpu" else [request.getfixturevalue("nvcc"), "-arch=native"]
    said = said_by(ON_DEVICE, compiler, tmp_path)
    wanted = [
        "49 16 1 4 25 64",
        "159 64 7395 5",
        "1 3 5 2 4 6",
        "0 1 2 3 3 3",
        "-1 -1 -1 6 9 12",
        "3 2 1",
        "2 6 0 6 9 12",
        "0 1 1",
        "1 2 2",
    ]
    assert said == " | ".join(wanted)


RANKS = """
#include "boost/foreach.hpp"
#include "boost/property_tree/json_parser.hpp"
#include "boost/regex.hpp"
#include "caffe/data_transformer.hpp"
#include "thrust/sort.h"
"""
RANK = """
  using namespace boost::property_tree;
  vector<Dtype> keys(bottom[0]->cpu_data(), bottom[0]->cpu_data() + bottom[0]->count());
  Dtype* ranks = top[0]->mutable_cpu_data();
  for (int i = 0; i < keys.size(); ++i) ranks[i] = i;
  thrust::sort_by_key(keys.begin(), keys.end(), ranks, thrust::greater<Dtype>());

  LabelMap labels;
  labels.add_item()->set_name("a/\\"b");
  map<int, string> names;
  MapLabelToName(labels, true, &names);
  ptree list, one, all;
  one.put("name", names[0]);
  one.put("at.first", 3);
  BOOST_FOREACH(Dtype key, keys) {
    ptree value;
    value.template put<float>("", key);
    list.push_back(std::make_pair("", value));
  }
  one.add_child("keys", list);
  CHECK_EQ(one.get_child("keys").begin()->second.template get_value<float>(), float(keys[0]));
  CHECK_EQ(one.template get<int>("at.second", 7), 7);
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
        "at": {
            "first": 3
        },
        "keys": [
            2,
            0.100000001,
            0.100000001
        ]
    }
}
"""


def test_layer_that_sorts_writes_and_could_show(fork, port, tmp_path):
    """As SSD's DetectionOutput does: by thrust, boost's property tree, and a DataTransformer that is only made."""
    stock = (ROOT / "src/caffe/proto/caffe.proto").read_text()
    fork.write("src/caffe/proto/caffe.proto", stock + LABELS)
    header = fork.root / "include/caffe/layers/ranks_layer.hpp"
    fork.layer("Ranks", body=RANK, includes='#include "caffe/util/io.hpp"', members=SHOW)
    header.write_text(RANKS + header.read_text())
    port("Ranks")
    settings = [f"LAYERS_DIR={port.folder}", f"BUILD={ROOT / 'build'}", "NVCC=", "-j4"]
    done = make(*settings, "libraries", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    Ranks = importlib.import_module(f"{load_package(port.folder, 'ported_layers')}.ranks").Ranks
    x = torch.tensor([0.1, 2.0, 0.1])
    assert Ranks(name=str(tmp_path / "ranks.json"))(x).tolist() == [1, 0, 2]
    assert (tmp_path / "ranks.json").read_text() == WRITTEN
    with pytest.raises(RuntimeError, match="neither reads nor shows images"):
        Ranks(transform_param={"mirror": True})(x)
