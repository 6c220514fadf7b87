"""make port: additions of a fork to files that the toolkit replaces."""

import importlib
import re

import pytest
import torch
from support.fork import BLOB, BLOB_CPP, CLASS, SOURCE, names
from support.workshop import ROOT, make

from cuffi.runtime.cases import load_package


def test_function_in_a_file_that_the_toolkit_replaces(fork, port):
    """Without its own header it is not cut out; the message has the call and the definition."""
    fork.write("include/caffe/util/twist.hpp", "void caffe_gpu_twist(int n);\n")
    fork.write("src/caffe/util/math_functions.cu", "\n\nvoid caffe_gpu_twist(int n) {}\n")
    fork.layer("Shift", body="caffe_gpu_twist(3);", includes='#include "caffe/util/twist.hpp"')
    output = port("Shift")
    assert re.search(
        r"by hand: src/caffe/layers/shift_layer\.cpp:7: caffe_gpu_twist .*math_functions\.cu:3", output
    )


def test_what_the_forks_core_includes_for_all(fork, port):
    """Another layer of the aggregate header uses a class that only the fork's layer.hpp includes."""
    fork.write("include/caffe/util/coords.hpp", "template <typename Dtype> class Coords {};\n")
    layer = fork.root / "include/caffe/layer.hpp"
    layer.write_text('#include "caffe/util/coords.hpp"\n' + layer.read_text())
    fork.layer("Shift", header="caffe/vision_layers.hpp")
    fork.layer("Other", header="caffe/vision_layers.hpp", members="Coords<Dtype> coords();")
    port("Shift")
    folder = port.folder / "shift"
    assert "coords.hpp" in names(folder)
    assert '#include "caffe/util/coords.hpp"' in (folder / "additions.hpp").read_text()


def test_structs_of_the_forks_own_beside_the_core(fork, port):
    """A specialization for one is no class that derives from it; what names it stands behind it."""
    fork.write("include/caffe/common.hpp", "namespace caffe {\nstruct OnHost {};\nstruct Unused {};\n}\n")
    side = "template <typename Mode> struct Side {};\ntemplate <> struct Side<OnHost> { int device; };\n"
    fork.write("include/caffe/util/side.hpp", '#include "caffe/common.hpp"\n' + side)
    math = "template <typename Mode> struct Tally {};\ntemplate <> struct Tally<OnHost> {};\n"
    turn = "template <typename Dtype>\nvoid turn(int n)"
    text = f'#include "caffe/common.hpp"\nnamespace caffe {{\n{math}{turn};\n}}\n'
    fork.write("include/caffe/util/math_functions.hpp", text)
    fork.write("include/caffe/util/math_functions.cuh", '#include "math_functions.hpp"\n')
    fork.write("src/caffe/util/math_functions.cpp", f"namespace caffe {{\n{turn} {{}}\n}}\n")
    fork.layer("Shift", body="Side<OnHost> side;", includes='#include "caffe/util/side.hpp"')
    includes = '#include "caffe/util/math_functions.cuh"'
    fork.layer("Turn", body="Tally<int> tally; turn<Dtype>(3);", includes=includes)
    port("Shift", "Turn")
    assert "struct OnHost {};" in (port.folder / "shift/additions.hpp").read_text()
    header, source = ((port.folder / f"turn/additions.{end}").read_text() for end in ("hpp", "cpp"))
    assert 0 < header.index("struct OnHost {};") < header.index("struct Tally<OnHost>")
    assert header.count("void turn(int n);") == source.count("void turn") == 1 and "Unused" not in header


@pytest.mark.parametrize("includes", ['#include "caffe/proto/caffe.pb.h"\n', ""])
def test_messages_that_an_addition_names(fork, port, includes):
    """Layers may use protobuf's reflection, as FlowNet2's augmentations do."""
    take = "float take(const TakeParameter& p)"
    fork.write("include/caffe/util/rng.hpp", f"{includes}namespace caffe {{ {take}; }}\n")
    fork.write(
        "src/caffe/util/rng.cpp",
        f'#include "caffe/util/rng.hpp"\nnamespace caffe {{ {take} {{ return 1; }} }}\n',
    )
    body = (
        "const google::protobuf::FieldDescriptor* f; param.GetReflection()->GetFloat(param, f); take(param);"
    )
    fork.layer("Shift", body=body, includes='#include "caffe/util/rng.hpp"')
    port("Shift")
    lines = (port.folder / "shift/additions.hpp").read_text().split("\n")
    assert lines.index('#include "caffe/proto/caffe.pb.h"') < lines.index(f"{take};")


def test_another_name_of_the_namespace(fork, port):
    blob = fork.root / "include/caffe/blob.hpp"
    fork.layer("Shift")
    port("Shift")
    assert not (port.folder / "shift/additions.hpp").exists()
    blob.write_text(blob.read_text().replace("namespace caffe {", "namespace caffe9 {"))
    port("Shift", "--force")
    assert "#define caffe9 caffe\n" in (port.folder / "shift/additions.hpp").read_text()


def test_function_of_a_header_for_kernels(fork, port):
    """That header is one of kernels' compilers alone; it includes what the toolkit has, and what it has not."""
    draw = "__device__ float draw_one(int i) { curandState s; curand_init(i, 0, 0, &s); return curand_uniform(&s); }"
    text = f"#include <curand_kernel.h>\n#include <thrust/async/sort.h>\nnamespace caffe {{\n{draw}\n}}\n"
    fork.write(
        "include/caffe/util/math_functions.hpp", "namespace caffe { void draw_all(int n, float* x); }\n"
    )
    fork.write("include/caffe/util/math_functions.cuh", text)
    all_of_them = (
        "__global__ void filling(int n, float* x) { CUDA_KERNEL_LOOP(i, n) { x[i] = draw_one(i); } }"
    )
    call = "void draw_all(int n, float* x) { filling<<<1, 32>>>(n, x); }"
    includes = "".join(f'#include "caffe/util/math_functions.{end}"\n' for end in ("hpp", "cuh"))
    fork.write(
        "src/caffe/util/math_functions.cu", f"{includes}namespace caffe {{\n{all_of_them}\n{call}\n}}\n"
    )
    fork.layer("Shift", body="draw_all(3, 0);", includes='#include "caffe/util/math_functions.hpp"')
    assert "by hand" not in port("Shift")
    header = (port.folder / "shift/additions.hpp").read_text()
    guarded = header[header.index("#if defined(__CUDACC__)") : header.index("#endif")]
    assert draw in guarded and "<curand_kernel.h>" in guarded and "thrust" not in header


@pytest.mark.parametrize("condition", ["", "#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600\n#else"])
def test_forks_own_atomic_add_of_double(fork, port, condition):
    """Old forks bring it to where CUDA had none. In the toolkit's namespace it would hide those for float and int."""
    own = "__device__ double atomicAdd(double* address, double value) { return *address += value; }"
    end = "#endif" if condition else ""
    fork.write("include/caffe/common.cuh", f"{condition}\n{own}\n{end}\n")
    fork.write("include/caffe/util/im2col.hpp", "namespace caffe { void add_all(int n, float* x); }\n")
    kernel = (
        "__global__ void adding(int n, float* x) { CUDA_KERNEL_LOOP(i, n) { atomicAdd(x + i / 2, 1.f); } }"
    )
    call = "void add_all(int n, float* x) { adding<<<1, 32>>>(n, x); }"
    includes = '#include "caffe/common.cuh"\n#include "caffe/util/im2col.hpp"\n'
    fork.write("src/caffe/util/im2col.cu", f"{includes}namespace caffe {{\n{kernel}\n{call}\n}}\n")
    fork.layer("Shift", body="add_all(3, 0);", includes='#include "caffe/util/im2col.hpp"')
    assert "by hand" not in port("Shift")
    written = {path.name: path.read_text() for path in (port.folder / "shift").glob("additions*")}
    assert "adding<<<1, 32>>>(n, x)" in written["additions.cu"]
    assert not any("double" in text for text in written.values())


@pytest.mark.parametrize(
    "launch", ["spin_kernel<Dtype><<<1, 32>>>(3);", "spin_kernel<Dtype> << <1, 32>> >(3);"]
)
def test_kernel_that_a_layer_launches_itself(fork, port, launch):
    """It is taken like a called function: declared in the header, defined in the source."""
    head = "template <typename Dtype>\n__global__ void spin_kernel(const int n)"
    fork.write("include/caffe/util/math_functions.hpp", f"namespace caffe {{\n{head};\n}}\n")
    source = (
        f"namespace caffe {{\n{head} {{}}\ntemplate __global__ void spin_kernel<float>(const int n);\n}}\n"
    )
    fork.write("src/caffe/util/math_functions.cu", '#include "caffe/util/math_functions.hpp"\n' + source)
    fork.layer("Shift", includes='#include "caffe/util/math_functions.hpp"', body=launch)
    port("Shift")
    header, kernels = ((port.folder / f"shift/additions.{end}").read_text() for end in ("hpp", "cu"))
    assert f"{head};" in header and f"{head} {{}}" in kernels and "spin_kernel<float>" in kernels


def test_overload_of_a_function_that_the_toolkit_has_by_a_macro(fork, port):
    """The toolkit has two forms of im2col_cpu, and no declaration shows one of them."""
    text = "template <typename Dtype>\nvoid im2col_cpu(const Dtype* x, int padding, Dtype* y) {}\n"
    fork.write("include/caffe/util/im2col.hpp", f"namespace caffe {{\n{text}}}\n")
    includes = '#include "caffe/util/im2col.hpp"'
    fork.layer("Shift", body="im2col_cpu(x, 3, y);", includes=includes)
    port("Shift")
    assert text.strip() in (port.folder / "shift/additions.hpp").read_text()
    fork.layer("Twist", body="im2col_cpu(x, 1, 2, 3, 4, 5, 6, 7, 8, 9, y);", includes=includes)
    port("Twist")
    assert not (port.folder / "twist/additions.hpp").exists()


def test_include_of_a_library_beside_what_is_taken(fork, port):
    """The fork's file of functions includes armadillo; the function that is taken is plain C++."""
    text = "#include <armadillo>\n#include <limits>\nnamespace caffe { %s }\n"
    fork.write("include/caffe/util/math_functions.hpp", text % "int turn(int n);")
    fork.write("src/caffe/util/math_functions.cpp", text % "int turn(int n) { return -n; } int arma(int n);")
    fork.layer("Shift", body="turn(3);")
    port("Shift")
    source = (port.folder / "shift/additions.cpp").read_text()
    assert "#include <limits>" in source and "int turn(int n)" in source
    assert "#if __has_include(<armadillo>)\n#include <armadillo>\n#endif\n" in source


MATH = """
#include <cmath>
#include "caffe/common.hpp"
#define DEFINE_TWICE(name) inline int name##_twice(int n) { return 2 * n; }
#define DEFINE_AND_INSTANTIATE_GPU_UNARY_FUNC(name, operation) \\
  template <typename Dtype> __global__ void name##_kernel(const int n, const Dtype* x, Dtype* y) { operation; } \\
  template <> void caffe_gpu_##name<float>(const int n, const float* x, float* y) {} \\
  template <> void caffe_gpu_##name<double>(const int n, const double* x, double* y) {}
namespace caffe {
struct Turn {  // in degrees
  float angle = 90;
};
DEFINE_TWICE(turn)
inline float in_radians(const Turn& turn) { return turn.angle * 3.14159274f / 180; }
DEFINE_TWICE(twist)
template <typename Dtype>
void caffe_gpu_cubed(const int n, const Dtype* x, Dtype* y);
template <typename Dtype>
void caffe_gpu_twist(const int n, const Turn& turn, const Dtype* x, Dtype* y);
template <typename Dtype>
void caffe_gpu_nobody_asks_for(const int n, Dtype* y);
}  // namespace caffe
"""
MATH_CU = """
#include "caffe/util/math_functions.hpp"
namespace caffe {
template <typename Dtype>
__global__ void twist_kernel(const int n, const float angle, const Dtype* x, Dtype* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = x[i] * angle; }
}
template <>
void caffe_gpu_twist<float>(const int n, const Turn& turn, const float* x, float* y) {
  twist_kernel<float><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, in_radians(turn), x, y);
}
template <>
void caffe_gpu_twist<double>(const int n, const Turn& turn, const double* x, double* y) {
  twist_kernel<double><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, in_radians(turn), x, y);
}
DEFINE_AND_INSTANTIATE_GPU_UNARY_FUNC(sqrd, y[index] = x[index] * x[index]);
DEFINE_AND_INSTANTIATE_GPU_UNARY_FUNC(cubed, y[index] = x[index] * x[index]
                                      * x[index]);
template <> void caffe_gpu_nobody_asks_for<float>(const int n, float* y) { not even C++; }
}  // namespace caffe
"""
# The toolkit's LossLayer is part of an object that the library has anyway.
LOSS = """
#include "caffe/layer.hpp"
namespace caffe {
template <typename Dtype>
class LossLayer : public Layer<Dtype> {
 public:
  explicit LossLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
  int Twice(int n);
};
}  // namespace caffe
"""
LOSS_CPP = """
#include "caffe/layers/loss_layer.hpp"
namespace caffe {
template <typename Dtype>
int LossLayer<Dtype>::Twice(int n) { return 2 * n; }
INSTANTIATE_CLASS(LossLayer);
}  // namespace caffe
"""
TWIST = """
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    top[0]->ReshapeLike(*bottom[0]);
  }
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    caffe_gpu_cubed(bottom[0]->count(), bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
    caffe_gpu_twist(turn_twice(2) + 1, Turn(), top[0]->gpu_data(), top[0]->mutable_gpu_data());
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>&, const vector<bool>&, const vector<Blob<Dtype>*>&) {}
"""


def test_what_a_fork_added_to_a_file_that_the_toolkit_replaces(fork, port):
    """What a layer names of it, and what that names in turn, word for word; and it works. Two functions are defined
    by a macro's call, in a header by the fork's own macro, in a source by stock Caffe's."""
    fork.write(
        "src/caffe/proto/caffe.proto", (ROOT / "cuffi/caffe_layers/core/proto/caffe.proto").read_text()
    )
    fork.write("include/caffe/util/math_functions.hpp", MATH)
    fork.write("src/caffe/util/math_functions.cu", MATH_CU)
    fork.write("include/caffe/blob.hpp", BLOB)
    fork.write("src/caffe/blob.cpp", BLOB_CPP)
    check = "CHECK_EQ(bottom[0]->above_middle(), 2); CHECK_EQ(bottom[0]->middle(), 3);"
    members = f"#ifdef USE_CUDA\n{TWIST}\n#endif"
    fork.write("include/caffe/layers/loss_layer.hpp", LOSS)
    fork.write("src/caffe/layers/loss_layer.cpp", LOSS_CPP)
    fork.write("include/caffe/twist.hpp", '#include "caffe/layers/loss_layer.hpp"\n')
    body = f"assert(bottom->size()); CHECK_EQ(this->Twice(3), 6); Forward_gpu(bottom, top); {check}"
    fork.layer("Twist", base="LossLayer", header="caffe/twist.hpp", body=body, members=members)
    output = port("Twist")
    assert "by hand" not in output
    assert (
        "hpp: of it, into additions.*: DEFINE_TWICE, Turn, caffe_gpu_cubed, caffe_gpu_twist, in_radians, turn_twice, "
        in output
    )
    folder = port.folder / "twist"
    header, source = (folder / "additions.hpp").read_text(), (folder / "additions.cu").read_text()
    assert "struct Turn {  // in degrees\n  float angle = 90;\n};\ninline float in_radians" in header
    assert "template <typename Dtype>\n__global__ void twist_kernel" in source
    assert not re.search(r"\(twist\)|sqrd|nobody_asks_for", header + source)
    origin = (folder / "ORIGIN").read_text()
    assert "additions.hpp  include/caffe/util/math_functions.hpp:10\n" in origin
    assert "additions.cu  src/caffe/util/math_functions.cu:4\n" in origin

    settings = [f"LAYERS_DIR={port.folder}", "-j4"]
    done = make(*settings, *([] if torch.cuda.is_available() else ["NVCC="]), "libraries", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    Twist = importlib.import_module(f"{load_package(port.folder, 'twisted_layers')}.twist").Twist
    for device in ["cpu", "cuda"][: 1 + torch.cuda.is_available()]:
        x = torch.tensor([4, 1, 3, 2, 5], dtype=torch.float64, device=device)
        torch.testing.assert_close(Twist()(x), x**3 * float(torch.tensor(torch.pi / 2, dtype=torch.float32)))


def test_class_that_a_fork_added_beside_one_of_the_toolkits(fork, port):
    """The toolkit has a source for this header. The class is cut out, and the source of its own functions is taken."""
    header = "include/caffe/layers/base_conv_layer.hpp"
    fork.write(
        header,
        "namespace caffe {\ntemplate <typename Dtype> class OwnBase { void forward_cpu_bias(); };\n}\n",
    )
    source = "template <typename Dtype> void caffe::OwnBase<Dtype>::forward_cpu_bias() {}\n"
    fork.write("src/caffe/layers/own_base.cpp", f'#include "caffe/layers/base_conv_layer.hpp"\n{source}')
    fork.layer("Shift", body="OwnBase<Dtype> own;", includes='#include "caffe/layers/base_conv_layer.hpp"')
    port("Shift")
    found = names(port.folder / "shift")
    assert {"additions.hpp", "own_base.cpp"} <= found and "base_conv_layer.hpp" not in found


def test_files_put_there_by_hand_without_their_message(tmp_path):
    """make names the missing message; that message alone is enough."""
    folder = tmp_path / "mine" / "lift"
    folder.mkdir(parents=True)
    backward = "(const vector<Blob<Dtype>*>&, const vector<bool>&, const vector<Blob<Dtype>*>&) {}"
    text = CLASS.format(name="Lift", base="NeuronLayer", members=f"virtual void Backward_cpu{backward}")
    (folder / "lift_layer.hpp").write_text('#include "caffe/layers/neuron_layer.hpp"\n' + text)
    body = "top[0]->mutable_cpu_data()[0] = bottom[0]->cpu_data()[0] + this->layer_param_.lift_param().by();"
    source = SOURCE.format(name="Lift", header="caffe/layers/lift_layer.hpp", includes="", body=body,
                           register="REGISTER_LAYER_CLASS(Lift);")  # fmt: skip
    (folder / "lift_layer.cpp").write_text(source)
    settings = [f"LAYERS_DIR={folder.parent}", "NVCC=", "-j4"]
    failed = make(*settings, timeout=900)
    assert (
        failed.returncode
        and f"lift: LayerParameter has no lift_param: put the fork's caffe.proto into {folder}"
        in failed.stdout
    )
    (folder / "lift.proto").write_text(
        "message LiftParameter { optional float by = 1 [default = 2]; }\n"
        "extend LayerParameter { optional LiftParameter lift_param = 164; }\n"
    )
    done = make(*settings, "libraries", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    Lift = importlib.import_module(f"{load_package(folder.parent, 'lifted_layers')}.lift").Lift
    assert Lift(lift_param={"by": 3})(torch.ones(1)).item() == 4 and Lift()(torch.ones(1)).item() == 3


OVERLOADED = """
namespace caffe {
template <typename Dtype> void caffe_sqr(const int n, const Dtype* x, Dtype* y);
template <typename Dtype> void caffe_sqr(const int n, const Dtype* x, Dtype* y, Dtype least);
}
"""
OVERLOADED_CPP = """
#include "caffe/util/math_functions.hpp"
namespace caffe {
template <> void caffe_sqr<float>(const int n, const float* x, float* y) { stock(); }
template <> void caffe_sqr<float>(const int n, const float* x, float* y, float least) { fork(); }
}
"""


def test_overload_that_a_fork_added_to_a_stock_function(fork, port):
    """It has another number of arguments than the stock function."""
    fork.write("include/caffe/util/math_functions.hpp", OVERLOADED)
    fork.write("src/caffe/util/math_functions.cpp", OVERLOADED_CPP)
    fork.layer("Shift", body="caffe_sqr(n, x, f(y, z));")
    fork.layer("Limit", body="caffe_sqr<Dtype>(n, x, f(y, z), Dtype(3));")
    port("Shift", "Limit")
    assert not {name for name in names(port.folder / "shift") if "additions" in name}
    header, source = ((port.folder / "limit" / f"additions{kind}").read_text() for kind in (".hpp", ".cpp"))
    assert "Dtype least);" in header and header.count("caffe_sqr") == 1
    assert "fork();" in source and "stock();" not in source


def test_overload_of_a_function_that_the_toolkits_macros_name(fork, port):
    """DEFINE_CAFFE_CPU_UNARY_FUNC(sign, y[i] = caffe_sign<Dtype>(x[i])) declares no caffe_sign."""
    function = (
        "template <typename Dtype>\ninline int caffe_sign(Dtype x, Dtype least) { return x > least; }\n"
    )
    fork.write("include/caffe/util/math_functions.hpp", f"namespace caffe {{\n{function}}}\n")
    fork.layer("Shift", body="caffe_sign(x, Dtype(3));")
    port("Shift")
    assert "Dtype least)" in (port.folder / "shift" / "additions.hpp").read_text()


def test_switch_that_the_forks_makefile_sets(fork, port):
    """Without it the file compiles to nothing."""
    source = fork.layer("Shift")
    source.write_text(f"#ifdef USE_SHIFT\n{source.read_text()}\n#ifndef SLOW\n#endif\n#endif\n")
    fork.layer("Limit")
    port("Shift", "Limit")
    assert "#define USE_SHIFT\n" in (port.folder / "shift" / "additions.hpp").read_text()
    assert "registered only with USE_SHIFT" in (port.folder / "shift" / "ORIGIN").read_text()
    assert not (port.folder / "limit" / "additions.hpp").exists()


def test_names_of_variables_and_parameters_in_the_toolkits_headers_are_free(fork, port):
    """`length` is a local variable somewhere in them: a fork's Blob::length() is the fork's all the same."""
    fork.write("include/caffe/blob.hpp", BLOB.replace("below_middle", "length").replace("cached_", "count_"))
    fork.layer("Shift", body="bottom[0]->length();")
    port("Shift")
    assert "length() const" in (port.folder / "shift" / "additions_blob.hpp").read_text()
