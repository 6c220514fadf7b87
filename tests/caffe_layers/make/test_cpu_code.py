"""CPU functions without code beside kernels: they are found, and the kernels run instead."""

import importlib
import re

import pytest
import torch
from conftest import make

from cuffi.caffe_layers.make.cpu_code import CUDA_BUILD, missing, without_kernels
from cuffi.runtime.cases import load_package
from tools.cuda.source import Source

KERNELS = "{ y = kernels(x); }"
CPU_ONLY = "\n#ifdef CPU_ONLY\n  y = all(x);\n#endif\n"
GPU_ONLY = "\n#ifndef CPU_ONLY\n  y = all(x);\n#endif\n"


def found(cpu, gpu=KERNELS, function="Forward"):
    heads = {
        name: f"template <typename Dtype>\nvoid ALayer<Dtype>::{function}_{name}(int n) "
        for name in ("cpu", "gpu")
    }
    texts = {"a_layer.cpp": heads["cpu"] + cpu + "\n", "a_layer.cu": heads["gpu"] + gpu + "\n"}
    return missing({name: Source(text, name, CUDA_BUILD) for name, text in texts.items()})


@pytest.mark.parametrize("cpu", ["{}", "{ ; }", "{ return; }", "{  // nothing\n}", "{ { } }"])
@pytest.mark.parametrize("function", ["Forward", "Backward"])
def test_function_without_a_statement_beside_kernels(cpu, function):
    (one,) = found(cpu, function=function)
    assert one == ("ALayer", f"{function}_cpu", "a_layer.cpp:2: there is no statement in it")


def test_function_that_only_stops():
    (one,) = found('{ LOG(FATAL) << "Unimplemented"; }')
    assert one.why == "a_layer.cpp:2: it only stops (LOG(FATAL))"
    for condition in ("false", "0"):
        (one,) = found(f'{{ CHECK({condition}) << "No CPU"; }}')
        assert one.why == "a_layer.cpp:2: it only stops (CHECK(false))"
    assert not found("{ CHECK(x); y = x; }")
    assert not found('{ if (!x) LOG(FATAL) << "no x"; y = x; }')


def test_function_that_is_whole_only_without_cuda():
    (one,) = found(f"{{ int n = 3;{CPU_ONLY} use(n); }}")
    assert one.why == "a_layer.cpp:2: it is complete only in builds without CUDA (CPU_ONLY)"
    assert found(f"{{ int n = 3;{CPU_ONLY} use(n); }}", gpu="{ part(x); Forward_cpu(n); }")
    assert not found(f"{{ int n = 3;{GPU_ONLY} use(n); }}")


@pytest.mark.parametrize(
    "gpu", ["{}", "{ Forward_cpu(n); }", "{ return Forward_cpu(n); }", "{ NOT_IMPLEMENTED; }"]
)
def test_function_without_kernels_beside_it_stays(gpu):
    """Silence has nothing to compute. Other layers have only the CPU's code."""
    assert not found("{}", gpu)
    assert not found(f"{{ {CPU_ONLY} }}", gpu)


def test_code_stays():
    assert not found("{ y = x; }") and not found("{ NOT_IMPLEMENTED; }")


def test_function_inside_its_class():
    header = "class ALayer { void Forward_cpu(int n) {}\n void Forward_gpu(int n) { k(n); } };"
    (one,) = missing({"a.hpp": Source(header, "a.hpp", CUDA_BUILD)})
    assert one.why == "a.hpp:1: there is no statement in it"


HEADER = """
#include "caffe/layers/neuron_layer.hpp"
namespace caffe {
template <typename Dtype>
class DoubledLayer : public NeuronLayer<Dtype> {
 public:
  explicit DoubledLayer(const LayerParameter& param) : NeuronLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "Doubled"; }
 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {}
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& down,
                            const vector<Blob<Dtype>*>& bottom) {}
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& down,
                            const vector<Blob<Dtype>*>& bottom);
};
}  // namespace caffe
"""
KERNEL = """
#include "caffe/layers/doubled_layer.hpp"
namespace caffe {
template <typename Dtype>
__global__ void Doubled(const int n, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = 2 * x[i]; }
}
template <typename Dtype>
void DoubledLayer<Dtype>::Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
  const int n = bottom[0]->count();
  Doubled<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
}
template <typename Dtype>
void DoubledLayer<Dtype>::Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& down,
                                       const vector<Blob<Dtype>*>& bottom) {
  const int n = bottom[0]->count();
  Doubled<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, top[0]->gpu_diff(), bottom[0]->mutable_gpu_diff());
}
INSTANTIATE_LAYER_GPU_FUNCS(DoubledLayer);
INSTANTIATE_CLASS(DoubledLayer);
REGISTER_LAYER_CLASS(Doubled);
}  // namespace caffe
"""


def test_kernels_run_on_cpu_tensors_where_the_cpu_has_no_code(tmp_path):
    folder = tmp_path / "mine" / "doubled"
    folder.mkdir(parents=True)
    (folder / "doubled_layer.hpp").write_text(HEADER)
    (folder / "doubled_layer.cu").write_text(KERNEL)
    settings = f"LAYERS_DIR={folder.parent}", "NVCC=", "-j4"
    # Whoever makes the folder anew, under its old name, loses the messages, which lie in it.
    for steps in ("PROTO HEAD HOST CXX CXX LINK", "PROTO"):
        (folder / "_caffe.desc").unlink(missing_ok=True)
        done = make(*settings, "libraries", timeout=900)
        assert done.returncode == 0, done.stdout + done.stderr
        found = re.findall(r"^  ([A-Z]+) +doubled\b", done.stdout, re.M)
        # If another test has touched the core, the layer is linked with it again.
        linked_again = ["LINK"] if "LINK" in found and "LINK" not in steps else []
        assert sorted(found) == sorted([*steps.split(), *linked_again])
    Doubled = importlib.import_module(f"{load_package(folder.parent, 'doubled_layers')}.doubled").Doubled
    x = torch.tensor([1.0, -3.0], requires_grad=True)
    y = Doubled()(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert y.tolist() == [2, -6] and gradient.tolist() == [2, 2]
    alone = Doubled()
    alone.mode = "cpu"
    with pytest.raises(
        RuntimeError, match=r"Forward_cpu .*doubled_layer\.hpp:10: there is no statement in it"
    ):
        alone(x)


STUBBED = "#ifdef CPU_ONLY\nSTUB_GPU(ALayer);\n#endif\n"
DECLARES = "template <typename Dtype> class ALayer { void Forward_gpu(int n); void Backward_gpu(int n); };"


def bare(**texts):
    names = {name.replace("_", "."): text for name, text in texts.items()}
    return without_kernels({name: Source(text, name, CUDA_BUILD) for name, text in names.items()})


def test_gpu_functions_that_are_stubs_alone():
    """A fork for processors: declared, and defined only in builds without CUDA."""
    assert bare(a_hpp=DECLARES, a_cpp=STUBBED) == {"ALayer": ("a.hpp", ["Forward", "Backward"])}
    half = "template <typename Dtype> void ALayer<Dtype>::Forward_gpu(int n) { Forward_cpu(n); }\n"
    assert bare(a_hpp=DECLARES, a_cpp=half + STUBBED) == {"ALayer": ("a.hpp", ["Backward"])}


def test_gpu_functions_that_are_somewhere():
    """A .cu has them, perhaps by a macro that this tool cannot read, or nothing declares them."""
    assert not bare(a_hpp=DECLARES, a_cpp=STUBBED, a_cu="DEFINE_BOTH(ALayer)\n")
    assert not bare(a_hpp=DECLARES, a_cpp="")
    assert not bare(a_hpp="class ALayer {};", a_cpp=STUBBED)
