"""Results that a layer surely overwrites: what is found, and that the core leaves only their memory unzeroed."""

import importlib

import pytest
import torch
from conftest import make

from layers._runtime.cases import load_package
from tools.caffe.cpu_code import CUDA_BUILD
from tools.caffe.overwritten import overwritten
from tools.cuda.analysis import Unit

KERNELS = """
template <typename Dtype> __global__ void Copy(const int n, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = x[i]; }
}
template <typename Dtype> __global__ void Add(const int n, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] += x[i]; }
}
template <typename Dtype> __global__ void Some(const int n, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) { if (x[i] > 0) y[i] = x[i]; }
}
template <typename Dtype> __global__ void Leaves(const int n, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = x[i]; if (x[i] > 0) return; }
}
template <typename Dtype> __global__ void Shifted(const int n, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i + 1] = x[i]; }
}
template <typename Dtype> __global__ void Reads(const int n, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = x[i] + y[i]; }
}
template <typename Dtype> __global__ void Chained(const int n, Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) { Dtype old = y[i]; y[i] = old; }
}
template <typename Dtype> __global__ void Fewer(int n, const Dtype* x, Dtype* y) {
  n /= 2;
  CUDA_KERNEL_LOOP(i, n) { y[i] = x[i]; }
}
template <typename Dtype> __global__ void Twice(const int n, Dtype* y) { CUDA_KERNEL_LOOP(i, n) { y[i] = 0; } }
template <typename Dtype> __global__ void Twice(const int n, Dtype* y, int m) { y[m] = n; }
template <typename Dtype> __global__ void Both(const int n, const float* x, float* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = x[i]; }
}
template <typename Dtype> __global__ void Both(const int n, const double* x, double* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = x[i]; }
}
template <typename Dtype> __global__ void Differ(const int n, const float* x, float* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = x[i]; }
}
template <typename Dtype> __global__ void Differ(const int n, const double* x, double* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] += x[i]; }
}
#define ADDRESS top[0]->mutable_gpu_data()
#define MAY_RETURN if (none()) return
"""
PARAMETERS = {
    "Forward": "const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top",
    "Backward": "const vector<Blob<Dtype>*>& top, const vector<bool>& propagate_down, "
    "const vector<Blob<Dtype>*>& bottom",
}
N = "const int n = bottom[0]->count();"
X = "const Dtype* x = bottom[0]->gpu_data();"
Y = "Dtype* y = top[0]->mutable_gpu_data();"
TO_Y = "<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, x, y);"
SET = "caffe_gpu_set(bottom[0]->count(), Dtype(0), bottom[0]->mutable_gpu_diff());"


def found(body: str, function: str = "Forward_gpu", more: str = "") -> list[tuple[int, str, int]]:
    parameters = PARAMETERS[function.split("_")[0]]
    head = f"template <typename Dtype>\nvoid ALayer<Dtype>::{function}({parameters})"
    unit = Unit(f"{KERNELS}{more}{head} {{\n{body}\n}}\n", "a_layer.cu", None, CUDA_BUILD)
    results = overwritten([unit])
    assert all(one.layer == "ALayer" and one.function == function for one in results)
    return [(one.result, *one.like) for one in results]


@pytest.mark.parametrize(
    "body",
    [
        f"{N} {X} {Y} Copy{TO_Y}",
        f"{N} {X} {Y} Copy{TO_Y} CUDA_POST_KERNEL_CHECK; Add{TO_Y} top[0]->Reshape(n, 1, 1, 1);",
        f"{Y} {X} {N} if (this->phase_ == TRAIN) {{ Copy{TO_Y} }} else if (n > 3) Copy{TO_Y} else {{ Copy{TO_Y} }}",
        f"{N} {X} {Y} for (int i = 0; i < 3; ++i) {{ weigh(i); }} {{ Copy{TO_Y} }}",
        f"{N} {Y} CHECK_EQ(top.size(), 1); caffe_gpu_set(n, Dtype(0), y); Add<Dtype><<<1, 2>>>(n, x(), y);",
        f"{N} {X} Copy<Dtype><<<n, 1>>>(n, x, top[0]->mutable_gpu_data());",
        "caffe_copy<Dtype>(bottom[0]->count(), bottom[0]->gpu_data(), top[0]->mutable_gpu_data());",
        f"{N} Dtype* const y = top[0]->mutable_gpu_data(); caffe_gpu_mul(n, bottom[0]->gpu_data(), other(), y);",
        f"{N} {X} {Y} if (n > 3) {{ Copy{TO_Y} return; }} Copy{TO_Y}",
        f"{N} {X} {Y} if (top[0] == bottom[0]) keep(x); Copy{TO_Y}",
        f"{N} {X} {Y} Both{TO_Y}",
        f"const int count = bottom[0]->count(); {X} {Y} Copy{TO_Y.replace('n, ', 'count, ')}",
        f"{N} {X} {Y} for (int i = 0; i < n; ++i) y[i] = x[i];",
        f"{X} {Y} for (size_t i = 0; i < bottom[0]->count(); i++) {{ Dtype a = x[i]; y[i] = a; y[i] *= 2; }}",
        f"{N} {X} {Y} Dtype* z = top[1]->mutable_gpu_data(); Add<Dtype><<<n, 1>>>(n, x, z); Copy{TO_Y}",
    ],
)
def test_overwritten_top(body):
    assert found(body) == [(0, "bottom", 0)]


@pytest.mark.parametrize(
    "kernel", ["Add", "Some", "Leaves", "Shifted", "Reads", "Chained", "Fewer", "Unknown"]
)
def test_kernel_that_may_leave_or_read_elements(kernel):
    assert not found(f"{N} {X} {Y} {kernel}{TO_Y}")


@pytest.mark.parametrize(
    "body",
    [
        f"{N} {X} {Y} Add{TO_Y} Copy{TO_Y}",
        f"{N} {X} {Y} if (n > 3) Copy{TO_Y}",
        f"{N} {X} {Y} if (n > 3) {{ Copy{TO_Y} }} else {{ Add{TO_Y} }}",
        f"{N} {X} {Y} if (n > 3) return; Copy{TO_Y}",
        f"{N} {X} {Y} MAY_RETURN; Copy{TO_Y}",
        f"{N} {X} {Y} read(ADDRESS); Copy{TO_Y}",
        f"{N} {X} {Y} for (int i = 0; i < n; ++i) {{ Copy{TO_Y} }}",
        f"{N} {X} {Y} if (n > 3) {{ Copy{TO_Y} return; }} Add{TO_Y}",
        f"{N} {X} {Y} if (n > 3) {{ Copy{TO_Y} return; }}",
        f"{N} {X} {Y} Differ{TO_Y}",
        f"{N} {X} {Y} for (int i = 1; i < n; ++i) y[i] = x[i];",
        f"{N} {X} {Y} for (int i = 0; i < n - 1; ++i) y[i] = x[i];",
        f"{N} {X} {Y} for (int i = 0; i < n; i += 2) y[i] = x[i];",
        f"{N} {X} {Y} for (int i = 0; i < n; ++i) {{ y[i] = x[i]; ++i; }}",
        f"{N} {X} {Y} for (int i = 0; i < n; ++i) if (x[i] > 0) y[i] = x[i];",
        f"{N} {X} {Y} for (int i = 0; i < n; ++i) y[i] = y[i] + x[i];",
        f"{N} {X} {Y} for (int i = 0; i < n; ++i) {{ y[i] = x[i]; if (x[i] > 0) break; }}",
        f"{N} {X} {Y} for (int i = 0; i < n; ++i) y[i] = top[0]->cpu_data()[i];",
        f"{N} {X} {Y} while (more()) {{ if (n) return; }} Copy{TO_Y}",
        f"{N} {X} {Y} do {{ Copy{TO_Y} }} while (0);",
        f"{N} {X} {Y} y += 4; Copy{TO_Y}",
        f"{N} {X} {Y} Copy<Dtype><<<n, 1>>>(n, x, y + 1);",
        f"{N} {X} {Y} Copy<Dtype><<<n, 1>>>(n - 1, x, y);",
        f"int n = bottom[0]->count(); n = 3; {X} {Y} Copy{TO_Y}",
        f"int n = bottom[0]->count(); fill(&n); {X} {Y} Copy{TO_Y}",
        f"const int n = bottom[0]->num(); {X} {Y} Copy{TO_Y}",
        f"{N} {X} {Y} Copy<Dtype><<<n, 1>>>(n, y, y);",
        f"{N} {Y} Twice<Dtype><<<n, 1>>>(n, y);",
        f"{N} {X} {Y} prepare(bottom, top); Copy{TO_Y}",
        f"{N} {X} {Y} top[0]->Reshape(n, 2, 1, 1); Copy{TO_Y}",
        f"{N} {X} {Y} use(top[0]->gpu_data()); Copy{TO_Y}",
        f"{N} {X} {Y} use(top[last]->gpu_data()); Copy{TO_Y}",
        f"{N} {X} Dtype* z = top[0]->mutable_gpu_data(); {Y} Copy{TO_Y}",
        f"{N} {X} {Y}\n#ifdef FAST\n Copy{TO_Y}\n#endif\n",
        f"{N} {X} Dtype* y = top[0]->mutable_gpu_diff(); Copy{TO_Y}",
        f"{N} {X} Dtype* y = top[0]->mutable_cpu_data(); Copy{TO_Y}",
        f"{N} {X} {Y} {{ int n(3); Copy{TO_Y} }}",
        f"{N} {Y} caffe_gpu_axpy(n, Dtype(1), bottom[0]->gpu_data(), y);",
        f"{N} {Y} caffe_gpu_mul(n, y, y, y);",
    ],
)
def test_top_that_may_keep_or_show_its_memory(body):
    assert not found(body)


def test_writer_of_the_layers_own():
    own = "template <typename Dtype> void caffe_gpu_set(int n, Dtype a, Dtype* y) { y[0] = a; }\n"
    body = f"{N} {Y} caffe_gpu_set(n, Dtype(0), y);"
    assert found(body) and not found(body, more=own)


@pytest.mark.parametrize(
    ("body", "results"),
    [
        (SET, [(0, "bottom", 0)]),
        (f"if (!propagate_down[0]) return; {SET}", [(0, "bottom", 0)]),
        (f"if (!propagate_down[0]) {{ return; }} use(bottom[0]->gpu_data()); {SET}", [(0, "bottom", 0)]),
        (f"if (propagate_down[0]) {{ {SET} }} if (propagate_down[1]) {{ {SET.replace('[0]', '[1]')} }}",
         [(0, "bottom", 0), (1, "bottom", 1)]),
        (f"if (propagate_down[1]) {{ {SET} }}", []),
        (f"if (!propagate_down[1]) return; {SET}", []),
        (f"if (propagate_down[0] && ready_) {{ {SET} }}", []),
        (f"use(bottom[0]->gpu_diff()); {SET}", []),
        (f"{SET.replace('(bottom[0]->count()', '(top[0]->count()')}", [(0, "top", 0)]),
    ],
)  # fmt: skip
def test_diffs_of_backward(body, results):
    assert found(body, "Backward_gpu") == results


@pytest.mark.parametrize(
    ("keeps", "use", "sure"),
    [
        ("output_ = top[0];", "", True),
        ("output_ = top[0];", "add(output_->gpu_data());", False),
        ("this->output_ = top[0];", "add(this->output_->gpu_data());", False),
        ("tops_.push_back(top[0]);", "sub_->Forward(tops_, tops_);", False),
        ("lists_[0].assign(top.begin(), top.end());", "sub_->Forward(lists_[0], lists_[1]);", False),
        ("tops_ = top;", "sub_->Forward(tops_, tops_);", False),
        ("buffer_.ShareData(*top[0]);", "add(buffer_.gpu_data());", False),
        ("buffer_->ShareData(*top[0]);", "ADD_BUFFER;", False),
        ("output_ = top[0];", "add_output();", False),
        ("output_ = top[0];", "add_twice();", False),
        ("Blob<Dtype>* output_ = top[0];", "add(output_->gpu_data());", True),
        ("count_ = top[0]->count(); buffer_.ReshapeLike(*top[0]);", "add(count_, buffer_.gpu_data());", True),
        ("CHECK(top[0] != bottom[0]) << top.size(); sub_->SetUp(bottom, top);", "sub_->add();", True),
        ("top[1]->ShareData(*bottom[0]);", "use(top[1]->count());", True),
    ],
)
def test_blob_that_the_class_keeps(keeps, use, sure):
    more = """#define ADD_BUFFER add(buffer_->gpu_data())
template <typename Dtype> void ALayer<Dtype>::add_output() { add(output_->gpu_data()); }
template <typename Dtype> void ALayer<Dtype>::add_twice() { add_output(); add_output(); }
"""
    setup = f"void ALayer<Dtype>::Reshape({PARAMETERS['Forward']}) {{ {keeps} }}\n"
    results = found(f"{N} {X} {Y} {use} Copy{TO_Y} add(output_);", more=more + setup)
    assert results == ([(0, "bottom", 0)] if sure else [])


LAYER = """
#include "caffe/layers/neuron_layer.hpp"
namespace caffe {
template <typename Dtype>
__global__ void Fill(const int n, Dtype* y) { CUDA_KERNEL_LOOP(i, n) { y[i] = i; } }

template <typename Dtype>
class TestLayer : public Layer<Dtype> {
 public:
  explicit TestLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  virtual inline const char* type() const { return "Test"; }
  // Twice as many elements as the bottom, if there is a second bottom.
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    top[0]->Reshape(bottom[0]->num(), static_cast<int>(bottom.size()), 1, 1);
  }
 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    if (bottom[0]->cpu_data()[0] > 0) top[0]->mutable_cpu_data()[0] = 5;
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>& top, const vector<bool>& down,
                            const vector<Blob<Dtype>*>& bottom) {}
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    const int n = bottom[0]->count();
    Dtype* y = top[0]->mutable_gpu_data();
    Fill<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, y);
  }
  virtual void Backward_gpu(const vector<Blob<Dtype>*>& top, const vector<bool>& down,
                            const vector<Blob<Dtype>*>& bottom) { NOT_IMPLEMENTED; }
};
INSTANTIATE_CLASS(TestLayer);
REGISTER_LAYER_CLASS(Test);

// Its second top shows what the first one's memory held.
template <typename Dtype>
class KeepsLayer : public TestLayer<Dtype> {
 public:
  explicit KeepsLayer(const LayerParameter& param) : TestLayer<Dtype>(param) {}
  virtual inline const char* type() const { return "Keeps"; }
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    top[0]->ReshapeLike(*bottom[0]);
    top[1]->ReshapeLike(*bottom[0]);
    first_ = top[0];
  }
 protected:
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    const int n = bottom[0]->count();
    caffe_copy(n, first_->gpu_data(), top[1]->mutable_gpu_data());
    Fill<Dtype><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, top[0]->mutable_gpu_data());
  }
  Blob<Dtype>* first_;
};
INSTANTIATE_CLASS(KeepsLayer);
REGISTER_LAYER_CLASS(Keeps);
// For the test of the core alone: a wrong statement, which shows whether the core believes it.
static const auto wrong = OverwrittenResults().emplace("Test.Forward_cpu", OverwrittenResult{0, false, 0});
}  // namespace caffe
"""


def test_core_zeroes_what_is_not_surely_overwritten(tmp_path):
    """Every new tensor is filled with NaN here. A NaN in a result is memory that the core did not zero."""
    folder = tmp_path / "mine" / "test"
    folder.mkdir(parents=True)
    (folder / "test_layer.cu").write_text(LAYER)
    done = make(f"LAYERS_DIR={folder.parent}", "NVCC=", "-j4", "libraries", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    layers = importlib.import_module(f"{load_package(folder.parent, 'overwritten_layers')}.test")
    Test, keeps = layers.Test, layers.Keeps(top=["a", "b"])
    keeps.mode = "gpu"
    deterministic = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        one = torch.ones(3, 1)
        cpu, gpu, cpu_of_two, gpu_of_two = (Test() for _ in range(4))
        gpu.mode = gpu_of_two.mode = "gpu"
        for _ in range(3):  # the careful way, and recorded calls
            # The top has as many elements as bottom 0: nobody zeroes it.
            assert gpu(one).flatten().tolist() == [0, 1, 2]
            assert cpu(one).isnan().flatten().tolist() == [False, True, True]
            # Nobody has asked for the memory, so its contents are zeros.
            assert cpu(-one).flatten().tolist() == [0, 0, 0]
            # The top has more elements than bottom 0.
            assert gpu_of_two(one, one).flatten().tolist() == [0, 1, 2, 0, 0, 0]
            assert cpu_of_two(one, one).flatten().tolist() == [5, 0, 0, 0, 0, 0]
            # The layer reads the top's memory through a member.
            assert [y.flatten().tolist() for y in keeps(one)] == [[0, 1, 2], [0, 0, 0]]
    finally:
        torch.use_deterministic_algorithms(deterministic)
