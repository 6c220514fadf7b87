"""make port, on a small tree of the shape of a Caffe fork; and what the build makes for a Caffe layer's folder."""

import hashlib
import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import ROOT, make

sys.path.insert(0, str(ROOT / "tools"))
sys.path.insert(0, str(ROOT / "tools" / "caffetest"))

import aggregate
import caffe_build
import gather
from caffe_folder import LayerFolder

from layers._cases import load_package

CLASS = """
namespace caffe {{
template <typename Dtype>
class {name}Layer : public {base}<Dtype> {{
 public:
  explicit {name}Layer(const LayerParameter& param) : {base}<Dtype>(param) {{}}
  virtual inline const char* type() const {{ return "{name}"; }}
 protected:
  virtual void Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top);
  {members}
}};
}}
"""
SOURCE = """
#include "{header}"
{includes}
namespace caffe {{
template <typename Dtype>
void {name}Layer<Dtype>::Forward_cpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {{
  {body}
}}
INSTANTIATE_CLASS({name}Layer);
{register}
}}
"""
CORE = "namespace caffe {\ntemplate <typename Dtype> class %s {\n public:\n  %s\n};\n}\n"


class Fork:
    """A Caffe tree in the making."""

    def __init__(self, root: Path):
        self.root = root
        self.write("include/caffe/blob.hpp", CORE % ("Blob", "const Dtype* gpu_data_of_row(int n) const;"))
        self.write("include/caffe/layer.hpp", CORE % ("Layer", "void SetUp();\n  Net<Dtype>* net_;"))
        self.write(
            "src/caffe/proto/caffe.proto", 'syntax = "proto2";\npackage caffe;\nmessage LayerParameter {}\n'
        )
        self.write("LICENSE", "do what you like\n")
        (root / "src/caffe/layers").mkdir()

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def layer(
        self, name, body="", includes="", base="Layer", members="", header="", register="REGISTER_LAYER_CLASS"
    ):
        """One class, in a header of its own or at the end of `header`, and its source."""
        stem = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() + "_layer"
        path = header or f"caffe/layers/{stem}.hpp"
        text = CLASS.format(name=name, base=base, members=members)
        file = self.root / "include" / path
        self.write(
            f"include/{path}", (file.read_text() if file.exists() else '#include "caffe/layer.hpp"\n') + text
        )
        source = SOURCE.format(
            name=name, header=path, includes=includes, body=body, register=f"{register}({name});"
        )
        return self.write(f"src/caffe/layers/{stem}.cpp", source)


@pytest.fixture
def fork(tmp_path):
    return Fork(tmp_path / "fork")


@pytest.fixture
def port(fork, tmp_path):
    """Run the tool; what it printed, and the folder of layers."""
    (tmp_path / "mine").mkdir()

    def run(*arguments, caffe=fork.root, fails=False):
        command = [
            sys.executable,
            ROOT / "tools" / "port",
            "--caffe",
            caffe,
            "--layers-dir",
            tmp_path / "mine",
        ]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True)
        assert not done.stderr and done.returncode == int(fails), done.stderr + done.stdout
        return done.stdout

    run.folder = tmp_path / "mine"
    return run


def names(folder: Path) -> set[str]:
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}


# ------------------------------------------------------------------------------------ what is copied


def test_layer_is_copied_byte_for_byte(fork, port):
    source = fork.layer("EdgeShift")
    source.write_bytes(b"// \xc0\xb1\r\n" + source.read_bytes())
    fork.write("src/caffe/layers/edge_shift_layer.cu", "INSTANTIATE_CLASS(EdgeShiftLayer);\n")
    fork.layer("Other")
    output = port("EdgeShift")
    folder = port.folder / "edge_shift"
    files = {"edge_shift_layer.cpp", "edge_shift_layer.cu", "edge_shift_layer.hpp", "caffe.proto"}
    assert names(folder) == files | {"ORIGIN", "__init__.py"}
    assert (folder / "edge_shift_layer.cpp").read_bytes() == source.read_bytes()
    origin = (folder / "ORIGIN").read_text()
    for file in files:
        assert f"{hashlib.sha256((folder / file).read_bytes()).hexdigest()}  {file}  " in origin
    assert "tree     fork\n" in origin and "licence  LICENSE" in origin and "not under git" in origin
    assert (folder / "__init__.py").read_text() == (
        '"""EdgeShift, a Caffe layer: see ORIGIN."""\n'
        "from .._caffe import caffe_layer\n\n"
        'EdgeShift = caffe_layer(__name__, "EdgeShift")\n'
    )
    assert "make LAYERS_DIR=" in output and "verify" in output


@pytest.mark.skipif(not shutil.which("git"), reason="no git")
def test_origin_knows_the_commit(fork, port):
    fork.layer("Shift")
    git = ["git", "-C", str(fork.root), "-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    port("Shift")
    assert f"commit   {head}" in (port.folder / "shift" / "ORIGIN").read_text()


def test_class_in_an_aggregate_header(fork, port):
    """The header comes whole; of the classes in it only the base has its source copied."""
    for name, base in (("Base", "Layer"), ("Shift", "BaseLayer"), ("Other", "Layer")):
        fork.layer(name, base=base, header="caffe/vision_layers.hpp")
    port("Shift")
    found = names(port.folder / "shift")
    assert {
        "vision_layers.hpp",
        "shift_layer.cpp",
        "base_layer.cpp",
    } <= found and "other_layer.cpp" not in found


def test_class_that_only_the_forks_aggregate_header_has(fork, port):
    """The toolkit has a loss_layers.hpp, without this class: the fork's is taken."""
    fork.layer("SpecialLoss", header="caffe/loss_layers.hpp")
    fork.layer("Shift", base="SpecialLossLayer", includes='#include "caffe/loss_layers.hpp"')
    port("Shift")
    assert {"loss_layers.hpp", "special_loss_layer.cpp"} <= names(port.folder / "shift")


def test_helpers_and_sublayers_come_along(fork, port):
    fork.write("include/caffe/util/twist.hpp", '#include "caffe/util/deeper.hpp"\nvoid twist();\n')
    fork.write("include/caffe/util/deeper.hpp", "void deeper();\n")
    fork.write("src/caffe/util/twist.cpp", "void twist() {}\n")
    fork.write("src/caffe/util/twist.cu", "void twist_gpu() {}\n")
    fork.write("include/caffe/util/unused.hpp", "void unused();\n")
    fork.layer("Inner")
    includes = '#include "caffe/util/twist.hpp"\n#include <caffe/layers/inner_layer.hpp>'
    fork.layer("Shift", includes=includes, members="shared_ptr<InnerLayer<Dtype> > inner_;")
    output = port("Shift")
    found = names(port.folder / "shift")
    assert {"twist.hpp", "deeper.hpp", "twist.cpp", "twist.cu", "inner_layer.hpp", "inner_layer.cpp"} <= found
    assert "unused.hpp" not in found
    assert re.search(r"src/caffe/util/twist.cu: .*twist\.hpp declares", output)


def test_base_that_the_toolkit_has_is_not_copied(fork, port):
    fork.layer("Loss")
    fork.layer("ShiftLoss", base="LossLayer", includes='#include "caffe/layers/loss_layer.hpp"')
    port("ShiftLoss")
    assert not {"loss_layer.hpp", "loss_layer.cpp"} & names(port.folder / "shift_loss")


def test_the_forks_own_version_of_a_stock_layer(fork, port):
    fork.layer("Softmax")
    port("Softmax")
    assert {"softmax_layer.hpp", "softmax_layer.cpp"} <= names(port.folder / "softmax")


def test_function_that_is_called_without_a_header_of_its_own(fork, port):
    """Declared in a header that came along, defined in a file of another name."""
    fork.write("include/caffe/util/twist.hpp", "void caffe_twist(int n);\n")
    fork.write("src/caffe/util/all_kinds.cpp", "void caffe_twist(int n) {}\n")
    fork.layer("Shift", body="caffe_twist(3);", includes='#include "caffe/util/twist.hpp"')
    port("Shift")
    assert "all_kinds.cpp" in names(port.folder / "shift")


def test_sublayers_made_by_type_come_along(fork, port):
    """Named by no class; the toolkit has a Softmax."""
    fork.layer("Inner"), fork.layer("Softmax")
    fork.layer("Shift", body='p.set_type("Inner"); q.set_type("Softmax"); filler.set_type("constant");')
    port("Shift")
    found = names(port.folder / "shift")
    assert {"inner_layer.hpp", "inner_layer.cpp"} <= found and "softmax_layer.cpp" not in found


def test_stock_layer_with_a_member_of_the_forks(fork, port):
    """The toolkit's LossLayer has no such function: where it is called, the fork's LossLayer is taken."""
    fork.layer("Loss", members="Dtype TwistedNormalizer(int n);")
    loss = dict(base="LossLayer", includes='#include "caffe/layers/loss_layer.hpp"')
    fork.layer("Shift", body="this->TwistedNormalizer(3);", **loss)
    fork.layer("Other", **loss)
    port("Shift", "Other")
    assert {"loss_layer.hpp", "loss_layer.cpp"} <= names(port.folder / "shift")
    assert not {"loss_layer.hpp", "loss_layer.cpp"} & names(port.folder / "other")


def test_equal_names_get_folders(fork, port):
    """Of two files, and of one that would hide a header of the toolkit's."""
    fork.write("include/caffe/util/shift.hpp", "int a;\n")
    fork.write("include/caffe/other/shift.hpp", "int b;\n")
    fork.write("include/caffe/util/common.hpp", "int c;\n")
    includes = "".join(f'#include "caffe/{p}.hpp"\n' for p in ("util/shift", "other/shift", "util/common"))
    fork.layer("Shift", includes=includes)
    port("Shift")
    folder = port.folder / "shift"
    assert {"util/shift.hpp", "other/shift.hpp", "util/common.hpp"} <= names(folder)
    layer = LayerFolder(str(folder))
    assert layer.find("caffe/other/shift.hpp") == "other/shift.hpp"
    assert layer.find("caffe/util/common.hpp") == "util/common.hpp" and layer.find("caffe/common.hpp") is None


# -------------------------------------------------------------------------------------- what is refused


def test_unknown_type_names_the_nearest(fork, port):
    fork.layer("EdgeShift"), fork.layer("Twist")
    output = port("EgdeShift", fails=True)
    assert "registers no layer EgdeShift. Near it: EdgeShift" in output and "Twist" not in output
    assert "It has: EdgeShift, Twist" in port("Xyz", fails=True)
    assert "Python: not ported. it runs Python code" in port("Python", fails=True)


def test_not_a_tree(fork, port, tmp_path):
    assert "no such folder" in port("X", caffe=tmp_path / "nowhere", fails=True)
    assert f"There is one in it: CAFFE={fork.root}" in port("X", caffe=tmp_path, fails=True)
    assert "the toolkit itself" in port("X", caffe=ROOT, fails=True)
    assert "not a Caffe tree" in port("X", caffe=ROOT / "docs", fails=True)


@pytest.mark.parametrize(
    "made, reason",
    [
        (dict(base="BaseDataLayer"), r"shift_layer\.hpp:\d+: ShiftLayer reads its data itself"),
        (dict(body="cv::Mat image;"), r"shift_layer\.cpp:7: ShiftLayer needs OpenCV"),
        (dict(body="Solver<Dtype>* s = 0;"), r"shift_layer\.cpp:7: ShiftLayer needs the Solver"),
        (dict(body="leveldb::DB* db;"), r"shift_layer\.cpp:7: ShiftLayer reads a database"),
        (dict(members="bp::object self_;"), r"shift_layer\.hpp:\d+: ShiftLayer is a Python layer"),
        (dict(body="CUDNN_CHECK(cudnnCreate(&handle_));"), r"shift_layer\.cpp:7: ShiftLayer works by cuDNN only"),
        (dict(body="bottom[0]->gpu_data_of_row(1);"), r"shift_layer\.cpp:7: .*gpu_data_of_row.*/blob\.hpp:4"),
        (dict(body="this->net_->Reshape();"), r"shift_layer\.cpp:7: ShiftLayer uses net_.*/layer\.hpp:5"),
        (dict(body="using namespace thrust; device_vector<Dtype> v;"), r"shift_layer\.cpp:7: .*uses thrust on"),
        (dict(body="thrust::sort(thrust::cuda::par, a, b);"), r"shift_layer\.cpp:7: .*thrust::cuda"),
        (dict(members="DataTransformer<Dtype> t_;", body="t_.Transform(image, top[0]);"),
         r"shift_layer\.cpp:7: ShiftLayer reads its data itself.*DataTransformer::Transform"),
        (dict(body="curandGenerateUniform(generator, x, 3);"), "ShiftLayer calls cuRAND itself"),
        (dict(body="curand_poisson(&state, 3);"), "of cuRAND in its kernels more than uniform and normal"),
        (dict(members="void F(vector<Blob<Dtype>*>* top);"), "interface of late 2014"),
    ],
)  # fmt: skip
def test_refused_with_place_and_reason(fork, port, made, reason):
    fork.layer("Shift", **made)
    output = port("Shift", fails=True)
    assert re.search(reason, output), output
    assert not list(port.folder.iterdir())


@pytest.mark.parametrize("macro", ["USE_OPENCV", "USE_CUDNN", "CPU_ONLY"])
def test_what_is_not_compiled_does_not_count(fork, port, macro):
    fork.layer(
        "Shift",
        body=f"\n#ifdef {macro}\ncv::Mat m; cudnnCreate(0);\n#endif",
        includes="#include <opencv2/opencv.hpp>",
    )
    port("Shift")


def test_a_header_whose_other_classes_cannot_compile(fork, port):
    """An aggregate header stands or falls as a whole."""
    core = "namespace caffe {\ntemplate <typename Dtype> class InternalThread {};\n}\n"
    fork.write("include/caffe/internal_thread.hpp", core)
    fork.layer("Prefetch", header="caffe/data_layers.hpp", base="InternalThread")
    fork.layer("Dummy", header="caffe/data_layers.hpp")
    refusal = port("Dummy", fails=True)
    assert re.search(
        r"data_layers\.hpp:\d+: DummyLayer: in its header PrefetchLayer derives from InternalThread, which",
        refusal,
    )


def test_a_blob_of_the_forks_own(fork, port):
    """A Blob of another kind, which only a fork whose Blob is virtual can pass around."""
    fork.layer("Sparse", members="SparseBlob<Dtype> rows_;", header="caffe/sparse_layer.hpp")
    blob = "namespace caffe {\ntemplate <typename Dtype> class SparseBlob : public Blob<Dtype> {};\n}\n"
    fork.write("include/caffe/sparse_blob.hpp", '#include "caffe/blob.hpp"\n' + blob)
    layer = fork.root / "include/caffe/sparse_layer.hpp"
    layer.write_text('#include "caffe/sparse_blob.hpp"\n' + layer.read_text())
    port("Sparse")
    fork.write("include/caffe/blob.hpp", CORE % ("Blob", "virtual ~Blob();"))
    refusal = port("Sparse", "--name", "again", fails=True)
    assert "sparse_blob.hpp:3: SparseLayer: in its header SparseBlob derives from Blob, whose" in refusal
    assert "(include/caffe/blob.hpp:4)" in refusal


def test_headers_of_what_is_not_used_do_not_matter(fork, port):
    fork.write("include/caffe/data_transformer.hpp", "class DataTransformer { cv::Mat m; };\n")
    fork.layer("Shift", includes='#include "caffe/data_transformer.hpp"\n#include "hdf5.h"')
    port("Shift")
    assert "data_transformer.hpp" not in names(port.folder / "shift")


def test_tree_of_2014(fork, port):
    fork.layer("Shift")
    fork.write("src/caffe/layers/old_layer.cpp", "REGISTER_LAYER_CLASS(OLD, OldLayer);\n")
    assert re.search(r"old_layer\.cpp:1: a tree of 2014", port("Shift", fails=True))


def test_function_in_a_file_that_the_toolkit_replaces(fork, port):
    """Without a header of its own there it is not cut out, but said: where it is called and where it is."""
    fork.write("include/caffe/util/twist.hpp", "void caffe_gpu_twist(int n);\n")
    fork.write("src/caffe/util/math_functions.cu", "\n\nvoid caffe_gpu_twist(int n) {}\n")
    fork.layer("Shift", body="caffe_gpu_twist(3);")
    output = port("Shift")
    assert re.search(
        r"by hand: src/caffe/layers/shift_layer\.cpp:7: caffe_gpu_twist .*math_functions\.cu:3", output
    )


def test_what_the_forks_core_includes_for_all(fork, port):
    """Another layer of the aggregate header names a class that only the fork's layer.hpp brings."""
    fork.write("include/caffe/util/coords.hpp", "template <typename Dtype> class Coords {};\n")
    fork.layer("Shift", header="caffe/vision_layers.hpp")
    fork.layer("Other", header="caffe/vision_layers.hpp", members="Coords<Dtype> coords();")
    port("Shift")
    folder = port.folder / "shift"
    assert "coords.hpp" in names(folder)
    assert '#include "caffe/util/coords.hpp"' in (folder / "additions.hpp").read_text()


BLOB = """
#include <vector>
namespace caffe {
template <typename Dtype>
class Blob {
 public:
  void Reshape(const std::vector<int>& shape);
  inline Dtype middle() const { return cpu_data()[count_ / 2]; }
  Dtype above_middle() const;
  Dtype below_middle() const { return cached_; }
  virtual Dtype far_from_middle() const { return 0; }

 protected:
  Dtype cached_;
};
}  // namespace caffe
"""
BLOB_CPP = """
#include "caffe/blob.hpp"
namespace caffe {
template <typename Dtype>
Dtype Blob<Dtype>::above_middle() const {
  Dtype sum = 0;
  for (int i = 0; i < count_; ++i) sum += caffe_sign(cpu_data()[i] - middle()) > 0;
  return sum;
}
template <>
int Blob<int>::above_middle() const { NOT_IMPLEMENTED; return 0; }
INSTANTIATE_CLASS(Blob);
}  // namespace caffe
"""


def test_what_a_fork_added_to_blob(fork, port):
    """Functions that do with what the toolkit's Blob has; others are refused."""
    fork.write("include/caffe/blob.hpp", BLOB)
    fork.write("src/caffe/blob.cpp", BLOB_CPP)
    fork.layer("Above", body="top[0]->mutable_cpu_data()[0] = bottom[0]->above_middle();")
    assert "blob.hpp, class Blob: of it, into additions.*: above_middle, middle\n" in port("Above")
    folder = port.folder / "above"
    inside, outside = ((folder / f"additions{end}.hpp").read_text() for end in ("_blob", ""))
    assert inside == (
        "#pragma once\ninline Dtype middle() const { return cpu_data()[count_ / 2]; }\n"
        "Dtype above_middle() const;\n"
    )
    assert "template <typename Dtype>\nDtype Blob<Dtype>::above_middle" in outside
    assert "Blob<int>" not in outside and not (folder / "additions.cpp").exists()
    for name in ("below_middle", "far_from_middle"):
        fork.layer("Apart", body=f"bottom[0]->{name}();")
        refusal = port("Apart", fails=True)
        assert re.search(rf"uses {name}, which this fork added to Caffe's core \(.*blob.hpp:\d+\)", refusal)


MATH = """
#include <cmath>
#include "caffe/common.hpp"
#define DEFINE_TWICE(name) inline int name##_twice(int n) { return 2 * n; }
namespace caffe {
struct Turn {  // in degrees
  float angle = 90;
};
DEFINE_TWICE(turn)
inline float in_radians(const Turn& turn) { return turn.angle * 3.14159274f / 180; }
DEFINE_TWICE(twist)
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
template <> void caffe_gpu_nobody_asks_for<float>(const int n, float* y) { not even C++; }
}  // namespace caffe
"""
TWIST = """
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    top[0]->ReshapeLike(*bottom[0]);
  }
  virtual void Forward_gpu(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {
    caffe_gpu_twist(bottom[0]->count(), Turn(), bottom[0]->gpu_data(), top[0]->mutable_gpu_data());
  }
  virtual void Backward_cpu(const vector<Blob<Dtype>*>&, const vector<bool>&, const vector<Blob<Dtype>*>&) {}
"""


def test_what_a_fork_added_to_a_file_that_the_toolkit_replaces(fork, port):
    """What a layer names of it, and what that names in turn, word for word; and it works."""
    fork.write("src/caffe/proto/caffe.proto", (ROOT / "src/caffe/proto/caffe.proto").read_text())
    fork.write("include/caffe/util/math_functions.hpp", MATH)
    fork.write("src/caffe/util/math_functions.cu", MATH_CU)
    fork.write("include/caffe/blob.hpp", BLOB)
    fork.write("src/caffe/blob.cpp", BLOB_CPP)
    check = "CHECK_EQ(bottom[0]->above_middle(), 2); CHECK_EQ(bottom[0]->middle(), 3);"
    fork.layer("Twist", body=f"Forward_gpu(bottom, top); {check}", members=TWIST)
    output = port("Twist")
    assert "by hand" not in output
    assert (
        "math_functions.hpp: of it, into additions.*: Turn, caffe_gpu_twist, in_radians, twist_kernel"
        in output
    )
    folder = port.folder / "twist"
    header, source = (folder / "additions.hpp").read_text(), (folder / "additions.cu").read_text()
    assert "struct Turn {  // in degrees\n  float angle = 90;\n};\ninline float in_radians" in header
    assert "template <typename Dtype>\n__global__ void twist_kernel" in source
    assert not re.search("TWICE|nobody_asks_for", header + source)
    origin = (folder / "ORIGIN").read_text()
    assert "additions.hpp  include/caffe/util/math_functions.hpp:6\n" in origin
    assert "additions.cu  src/caffe/util/math_functions.cu:4\n" in origin

    settings = [f"LAYERS_DIR={port.folder}", f"BUILD={ROOT / 'build'}", "-j4"]
    done = make(*settings, *([] if torch.cuda.is_available() else ["NVCC="]), "libraries", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    Twist = importlib.import_module(f"{load_package(port.folder, 'twisted_layers')}.twist").Twist
    for device in ["cpu", "cuda"][: 1 + torch.cuda.is_available()]:
        x = torch.tensor([4, 1, 3, 2, 5], dtype=torch.float64, device=device)
        torch.testing.assert_close(Twist()(x), x * float(torch.tensor(torch.pi / 2, dtype=torch.float32)))


def test_macros_that_a_fork_added(fork, port):
    """Those that the layer names, and those that these name; and what they call."""
    fork.write(
        "include/caffe/common.hpp",
        """#define NOT_IMPLEMENTED LOG(FATAL) << "another text"
#define FORK_LIMIT 7
#ifdef CPU_ONLY
#define FORK_CHECK(n) nothing
#else
#define FORK_CHECK(n) \\
  CHECK_LT(fork_twice(n), FORK_LIMIT)
#endif
#define FORK_UNUSED 3
""",
    )
    fork.write(
        "include/caffe/util/math_functions.hpp",
        "namespace caffe {\ninline int fork_twice(int n) { return n * FORK_TWO; }\n}\n#define FORK_TWO 2\n",
    )
    fork.layer("Shift", body="FORK_CHECK(3); NOT_IMPLEMENTED;")
    assert "common.hpp: of it, into additions.*: FORK_CHECK, FORK_LIMIT\n" in port("Shift")
    assert {n for n in names(port.folder / "shift") if "additions" in n} == {"additions.hpp"}
    text = (port.folder / "shift" / "additions.hpp").read_text()
    assert "#define FORK_CHECK(n) \\\n  CHECK_LT(fork_twice(n), FORK_LIMIT)\n" in text
    assert text.index("#define FORK_TWO 2\n") < text.index("inline int fork_twice")
    assert not re.search("FORK_UNUSED|nothing|another text", text)
    assert "additions.hpp  include/caffe/common.hpp:6\n" in (port.folder / "shift" / "ORIGIN").read_text()


def test_files_put_there_by_hand_without_their_message(tmp_path):
    """make says what is missing; that message alone will do."""
    folder = tmp_path / "mine" / "lift"
    folder.mkdir(parents=True)
    backward = "(const vector<Blob<Dtype>*>&, const vector<bool>&, const vector<Blob<Dtype>*>&) {}"
    text = CLASS.format(name="Lift", base="NeuronLayer", members=f"virtual void Backward_cpu{backward}")
    (folder / "lift_layer.hpp").write_text('#include "caffe/layers/neuron_layer.hpp"\n' + text)
    body = "top[0]->mutable_cpu_data()[0] = bottom[0]->cpu_data()[0] + this->layer_param_.lift_param().by();"
    source = SOURCE.format(name="Lift", header="caffe/layers/lift_layer.hpp", includes="", body=body,
                           register="REGISTER_LAYER_CLASS(Lift);")  # fmt: skip
    (folder / "lift_layer.cpp").write_text(source)
    settings = [f"LAYERS_DIR={folder.parent}", f"BUILD={ROOT / 'build'}", "NVCC=", "-j4"]
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


def test_an_additions_includes_are_its_files(fork, port):
    """Those of the fork that come along, and the toolkit's; not what nobody has."""
    fork.write("include/caffe/util/im2col.hpp", "namespace caffe {\nvoid im2col_of_ours(int n);\n}\n")
    fork.write("include/caffe/common.cuh", "#define HELP\n")
    text = "".join(
        f'#include "caffe/{name}"\n' for name in ("common.cuh", "util/math_functions.hpp", "nobodys.hpp")
    )
    fork.write("src/caffe/util/im2col.cu", text + "namespace caffe {\nvoid im2col_of_ours(int n) {}\n}\n")
    fork.layer("Shift", body="im2col_of_ours(3);", includes='#include "caffe/common.cuh"')
    port("Shift")
    source = (port.folder / "shift" / "additions.cu").read_text()
    assert source.startswith(
        '#include "caffe/common.cuh"\n#include "caffe/util/math_functions.hpp"\nnamespace'
    )


def test_existing_folder_is_kept(fork, port):
    source = fork.layer("Shift")
    port("Shift")
    (port.folder / "shift" / "cases.py").write_text("mine\n")
    port("Shift")  # the same again is no harm
    source.write_text(source.read_text() + "// changed\n")
    assert "FORCE=1" in port("Shift", fails=True)
    assert "changed" not in (port.folder / "shift" / "shift_layer.cpp").read_text()
    port("Shift", "--name", "shift2")
    port("Shift", "--force")
    assert "changed" in (port.folder / "shift" / "shift_layer.cpp").read_text()
    assert (port.folder / "shift" / "cases.py").exists()
    assert (port.folder / "shift2" / "shift_layer.cpp").exists()


def test_all_types_in_a_table(fork, port):
    fork.layer("Shift"), fork.layer("Twist"), fork.layer("Feed", base="BaseDataLayer")
    output = port("all")
    assert "3 types: " in output and "1 refused" in output and "2 ported" in output
    assert {p.name for p in port.folder.iterdir()} == {"shift", "twist"}


def test_make_port(fork, tmp_path):
    fork.layer("Shift")
    (tmp_path / "mine").mkdir()
    done = make("port", f"CAFFE={fork.root}", "TYPE=Shift", f"LAYERS_DIR={tmp_path / 'mine'}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "mine" / "shift" / "ORIGIN").exists()
    done = make("port", f"LAYERS_DIR={tmp_path / 'mine'}")
    assert done.returncode and "CAFFE=/path/to/fork TYPE=" in done.stdout


# ------------------------------------------------------------- names of thrust and boost, and what they do

SORTS = """
#include "boost/iterator/counting_iterator.hpp"
#include "boost/smart_ptr.hpp"
#include "thrust/functional.h"
#include "thrust/reduce.h"
#include "thrust/sort.h"
#ifndef CAFFE_LEGACY_THRUST_SORT_H_
#error "another thrust"
#endif
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


@pytest.mark.parametrize("compiler", ["host", "nvcc"])
def test_thrust_sorts_host_memory(compiler, tmp_path, request):
    """Equal keys keep their order; and nvcc, which has a thrust of its own, takes ours."""
    (tmp_path / "sorts.cu").write_text(SORTS)
    command = [request.getfixturevalue("nvcc")]
    if compiler == "host":
        command = ["g++", "-DCAFFE_HOST_BACKEND=1", "-Iinclude/host", "-x", "c++"]
    command += [
        "-std=c++17",
        "-Iinclude",
        "-Iinclude/legacy",
        tmp_path / "sorts.cu",
        "-o",
        tmp_path / "sorts",
    ]
    subprocess.run(command, cwd=ROOT, check=True)
    said = subprocess.run([tmp_path / "sorts"], capture_output=True, text=True, check=True).stdout
    descending = sorted(range(40), key=lambda i: -(i * 7 % 3))
    pairs = [f"{i * 7 % 3}:{i}" for i in descending] + [f"{i}:{i * 7 % 3}" for i in range(40)]
    assert said == " ".join([*pairs, "39 0", "780 39\n"])


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


# ------------------------------------------------------------------------------ a fork's own tests of it


def test_what_a_forks_test_is_made_of(fork):
    """Helpers' sources come along, and a database is only missed where it is used."""
    for file in ("src/gtest/gtest-all.cpp", "src/caffe/util/twist.cpp", "src/caffe/util/twist.cu"):
        fork.write(file, "")
    for header in ("twist", "db"):
        fork.write(f"include/caffe/util/{header}.hpp", "")
    fork.layer("Shift", includes='#include "caffe/util/twist.hpp"')
    text = '#include "caffe/util/db.hpp"\n#include "caffe/layers/shift_layer.hpp"\n'
    fork.write("src/caffe/test/test_feed_layer.cpp", text + "db::DB* db;\n")
    fork.write("src/caffe/test/test_shift_layer.cpp", text + "#ifdef USE_LMDB\ndb::DB* db;\n#else\n#endif\n")
    tree = gather.Tree(fork.root)
    tests, left_out = tree.select(["all"])
    assert [t.name for t in tests] == ["test_shift_layer.cpp"]
    assert left_out == {"test_feed_layer.cpp": "a database"}
    found = {path.name for path in tree.files(tests)}
    assert {"shift_layer.hpp", "shift_layer.cpp", "twist.hpp", "twist.cpp", "twist.cu"} <= found
    assert "db.hpp" not in found


def test_layers_of_a_forks_tests_in_aggregate_headers(fork):
    """Trees before 2015-12: no header of that name says where the layer under test is."""
    for name in ("Shift", "Other"):
        fork.layer(name, header="caffe/vision_layers.hpp")
    texts = ["typename Dtype;\nShiftLayer<Dtype> layer(layer_param);\n"]

    def found(*more):
        return {path.name for path in aggregate.Layers(fork.root).in_aggregates([*texts, *more])}

    assert found() == {"vision_layers.hpp", "shift_layer.cpp"}
    assert "other_layer.cpp" in found("OtherLayer<float> layer;\n")
    old = fork.write("src/caffe/layers/old_layer.cpp", "REGISTER_LAYER_CLASS(OLD, OldLayer);\n")
    with pytest.raises(gather.NotATree, match="a tree of 2014"):
        found()
    old.unlink()
    fork.layer("Shift")
    assert found() == found("MockLayer<float> mock;\n") == set()


def test_what_a_fork_added_is_there_for_its_tests(fork):
    """For the layers whose sources come along; not of a header that comes along itself."""
    fork.write("include/caffe/util/math_functions.hpp", "inline int twist(int n) { return n; }\n")
    fork.write("include/caffe/common.hpp", "#define FORK_LIMIT 7\n#define OTHER_LIMIT 8\n")
    pooling = fork.write("include/caffe/layers/pooling_layer.hpp", "namespace caffe { struct Pooled {}; }\n")
    fork.layer("Shift", body="twist(FORK_LIMIT);\n  Pooled pooled;", header="caffe/vision_layers.hpp")
    fork.layer("Other", body="twist(OTHER_LIMIT);")
    files = [fork.root / "include/caffe/vision_layers.hpp", fork.root / "src/caffe/layers/shift_layer.cpp"]
    made = aggregate.Layers(fork.root).additions(files)["additions.hpp"]
    assert "#define FORK_LIMIT 7\n" in made and "inline int twist" in made and "struct Pooled" in made
    assert "OTHER_LIMIT" not in made
    assert "Pooled" not in aggregate.Layers(fork.root).additions([*files, pooling])["additions.hpp"]
    assert aggregate.Layers(fork.root).additions([pooling]) == {}


def test_what_the_toolkit_has_is_not_taken_for_a_forks_test(fork):
    """common.cuh is the fork's alone; common.cpp, its companion by name, is not."""
    test = fork.write("src/caffe/test/test_shift_layer.cpp", '#include "caffe/layers/shift_layer.hpp"\n')
    fork.write("src/gtest/gtest-all.cpp", "")
    fork.layer("Shift", includes='#include "caffe/common.cuh"')
    fork.write("include/caffe/common.cuh", "#define HELP\n")
    fork.write("src/caffe/common.cpp", "no C++\n")
    found = {path.name for path in gather.Tree(fork.root).files([test])}
    assert {"shift_layer.hpp", "shift_layer.cpp", "common.cuh"} <= found and "common.cpp" not in found


# ----------------------------------------------------------------- what the build makes for a folder


@pytest.fixture
def built(tmp_path):
    """The headers made for a folder of the given files."""

    def run(**files):
        folder = tmp_path / "x"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / re.sub("_(cpp|cu|hpp|cuh)$", r".\1", name)).write_text(text)
        caffe_build.make_headers(LayerFolder(str(folder)), tmp_path / "made")
        return tmp_path / "made"

    return run


def test_includes_by_a_forks_paths_find_the_folders_files(built, tmp_path):
    made = built(
        a_cpp='#include "caffe/layers/a.hpp"\n#include "caffe/layer.hpp"\n',
        a_hpp="#include <caffe/b.hpp>\n",
        b_hpp="",
    )
    assert names(made / "include") == {"caffe/layers/a.hpp", "caffe/b.hpp"}
    assert "#include <a.hpp>" in (made / "include/caffe/layers/a.hpp").read_text()
    listed = (made / "forwarded").stat().st_mtime_ns
    (tmp_path / "x" / "b.hpp").unlink()
    built()
    assert names(made / "include") == {"caffe/layers/a.hpp"}
    assert (made / "forwarded").stat().st_mtime_ns > listed


def test_list_of_headers_keeps_its_date(built):
    made = built(a_cpp='#include "caffe/layers/a.hpp"\n', a_hpp="")
    listed = (made / "forwarded").stat().st_mtime_ns
    built(a_cpp='#include "caffe/layers/a.hpp"\nint changed;\n')
    assert (made / "forwarded").stat().st_mtime_ns == listed
    built(additions_hpp="")  # which is included by an option: all objects are made anew
    assert (made / "forwarded").stat().st_mtime_ns > listed


def test_toolkits_headers_find_the_folders_files(built):
    """vision_layers.hpp is the toolkit's, and includes a common_layers.hpp, which here is the fork's."""
    made = built(a_cpp='#include "caffe/vision_layers.hpp"\n', common_layers_hpp="")
    assert names(made / "include") == {"caffe/common_layers.hpp"}


def test_empty_header_for_what_the_toolkit_has_nothing_of(built):
    made = built(a_cpp='#include "caffe/util/db.hpp"\n#include <leveldb/db.h>\n#include <vector>\n')
    assert names(made / "include") == {"caffe/util/db.hpp", "leveldb/db.h"}


HEADER = 'template <typename Dtype> class AOneLayer { const char* type() const { return "One"; } };\n'


def test_class_that_nobody_registers(built):
    made = built(a_hpp=HEADER, a_cpp="INSTANTIATE_CLASS(AOneLayer);\n")
    text = (made / "registration.cpp").read_text()
    assert "#include <a.hpp>" in text and 'Register<AOneLayer>("One")' in text
    built(a_cpp="INSTANTIATE_CLASS(AOneLayer);\nREGISTER_LAYER_CLASS(One);\n")
    assert "AOneLayer" not in (made / "registration.cpp").read_text()


def test_init_of_a_folder_made_by_hand(tmp_path, capsys):
    (tmp_path / "a.hpp").write_text(HEADER)
    (tmp_path / "a.cpp").write_text("INSTANTIATE_CLASS(AOneLayer);\nREGISTER_LAYER_CREATOR(Two, GetTwo);\n")
    assert caffe_build.make_init(LayerFolder(str(tmp_path))) == 0
    text = (tmp_path / "__init__.py").read_text()
    assert 'One = caffe_layer(__name__, "One")' in text and 'Two = caffe_layer(__name__, "Two")' in text
    compile(text, "__init__.py", "exec")
    assert "Two, One" in capsys.readouterr().out


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++")
def test_link_names_what_nobody_defines(tmp_path):
    texts = {
        "wrapper": 'extern "C" void *PyList_New(long); void *w() { return PyList_New(0); }',
        "layer": "namespace caffe { int engine(); int gone(int); }\n"
        "int l(int n) { return caffe::engine() + caffe::gone(n); }",
        "engine": "namespace caffe { int engine() { return 1; } }",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.cpp").write_text(text)

    def link():
        for name in texts:
            subprocess.run(
                ["g++", "-fPIC", "-g1", "-c", f"{name}.cpp", "-o", f"{name}.o"], cwd=tmp_path, check=True
            )
            subprocess.run(["ar", "rcs", f"{name}.a", f"{name}.o"], cwd=tmp_path, check=True)
        tool = [
            sys.executable,
            ROOT / "tools" / "caffe_link.py",
            "out.so",
            "wrapper.o",
            "layer.a",
            "engine.a",
        ]
        return subprocess.run([*tool, "--", "g++"], cwd=tmp_path, capture_output=True, text=True)

    done = link()
    assert done.returncode == 1 and "layer.cpp" in done.stdout and "caffe::gone(int)" in done.stdout
    assert "PyList" not in done.stdout and not list(tmp_path.glob("out*"))
    (tmp_path / "layer.cpp").write_text(texts["layer"].replace(" + caffe::gone(n)", ""))
    done = link()
    assert done.returncode == 0 and (tmp_path / "out.so").exists(), done.stdout


# ------------------------------------------------------------------------------------------ make's rules


@pytest.fixture
def planned(tmp_path):
    """What make would do for folders of the given sources; nothing is compiled."""

    def run(*settings, **folders):
        for name, files in folders.items():
            (tmp_path / name).mkdir(exist_ok=True)
            for file, text in files.items():
                (tmp_path / name / file).write_text(text)
        return make("-n", f"LAYERS_DIR={tmp_path}", "NVCC=", "V=1", *settings, "libraries")

    return run


REGISTERED = {"a_layer.cpp": "namespace caffe {\nREGISTER_LAYER_CLASS(A);\n}\n", "a_layer.cu": ""}
NATIVE = {"b.cu": "// INSTANTIATE_CLASS is only mentioned\n", "b.h": ""}


def test_folder_that_registers_a_layer_is_a_caffe_layer(planned, tmp_path):
    plan = planned(a=REGISTERED, b=NATIVE).stdout
    assert f"caffe_build.py init {tmp_path}/a" in plan and f"caffe_build.py init {tmp_path}/b" not in plan
    for source in ("a_layer.cpp", "a_layer.cu", "registration.cpp"):
        assert f"{tmp_path}/build/a/host/{source}.o" in plan
    assert f"caffe_link.py {tmp_path}/a/_host.abi3.so {tmp_path}/build/caffe/_host.o" in plan
    compiled = next(line for line in plan.splitlines() if f"-c {tmp_path}/a/a_layer.cpp" in line)
    assert re.search(
        rf"-I{tmp_path}/build/a/include -I{tmp_path}/a -Iinclude -Iinclude/legacy .* -w ", compiled
    )
    assert f"build_ffi.py {tmp_path}/b/b.h" in plan  # a native layer, as ever


def test_no_engine_without_a_caffe_layer(planned):
    assert "libcaffe.a" not in planned(b=NATIVE).stdout
    assert "libcaffe.a" not in planned("LAYERS=b", a=REGISTERED, b=NATIVE).stdout


def test_names_that_the_build_needs(planned):
    done = planned(engine=REGISTERED)
    assert done.returncode and "a layer cannot be called engine" in done.stderr
