"""make port: refusals and their messages."""

import re

import pytest
from support.fork import CORE, names
from support.workshop import ROOT, make

# What a header of layers that read data declares, in forks of 2015 and later.
BASE_DATA = """
namespace caffe {
template <typename Dtype> class Batch { public: Blob<Dtype> data_, label_; };
template <typename Dtype> class BaseDataLayer : public Layer<Dtype> {
 public:
  explicit BaseDataLayer(const LayerParameter& param) : Layer<Dtype>(param) {}
};
template <typename Dtype> class BasePrefetchingDataLayer : public BaseDataLayer<Dtype>, public InternalThread {
 public:
  explicit BasePrefetchingDataLayer(const LayerParameter& param) : BaseDataLayer<Dtype>(param) {}
};
}
"""
READING = """
  virtual void load_batch(Batch<Dtype>* batch);
  shared_ptr<db::Cursor> cursor_;
  BlockingQueue<Batch<Dtype>*> free_;
  cv::Mat Turned(const cv::Mat& image, cv::Scalar color = cv::Scalar(0, 0, 0));
  hid_t file_;
  hsize_t row_;
"""
WHOLE = """
  virtual void Reshape(const vector<Blob<Dtype>*>& bottom, const vector<Blob<Dtype>*>& top) {}
  virtual void Backward_cpu(const vector<Blob<Dtype>*>&, const vector<bool>&, const vector<Blob<Dtype>*>&) {}
"""


def test_unknown_type_names_the_nearest(fork, port):
    fork.layer("EdgeShift"), fork.layer("Twist")
    output = port("EgdeShift", fails=True)
    assert "registers no layer EgdeShift. Near it: EdgeShift" in output and "Twist" not in output
    assert "It has: EdgeShift, Twist" in port("Xyz", fails=True)
    assert "Python: not ported. it runs Python code" in port("Python", fails=True)


def test_header_that_is_missing_in_the_tree(fork, port):
    """The layer was published without its own header."""
    fork.layer("Shift")
    (fork.root / "include/caffe/layers/shift_layer.hpp").unlink()
    output = port("Shift", fails=True)
    assert (
        'no header defines a class ShiftLayer nor one whose type() says "Shift"; shift_layer.hpp, which'
        in output
    )


def test_source_that_is_missing_in_the_tree(fork, port):
    """Only the header was published; the type is registered in another file."""
    fork.layer("Shift").unlink()
    fork.write(
        "src/caffe/layer_factory.cpp",
        '#include "caffe/layers/shift_layer.hpp"\nnamespace caffe {\nREGISTER_LAYER_CLASS(Shift);\n}\n',
    )
    said = port("Shift", fails=True)
    assert re.search(r"shift_layer\.hpp:\d+: no source defines ShiftLayer's functions", said)
    assert not list(port.folder.iterdir())


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
        (dict(body="cv::Rect_<Dtype> a; cv::Size2f b; cv::Point c;\ncv::Mat d;"), r"_layer\.cpp:8: .* needs OpenCV"),
        (dict(body="Mat image = imread(name);"), r"shift_layer\.cpp:7: ShiftLayer needs OpenCV \(imread\)"),
        (dict(body="Solver<Dtype>* s = 0;"), r"shift_layer\.cpp:7: ShiftLayer needs the Solver"),
        (dict(body='Messenger::AddListener("SOLVER_ITER_CHANGED", handler);'),
         r"shift_layer\.cpp:7: ShiftLayer waits for messages of the Solver.*\(AddListener\)"),
        (dict(body="leveldb::DB* db;"), r"shift_layer\.cpp:7: ShiftLayer reads a database"),
        (dict(members="bp::object self_;"), r"shift_layer\.hpp:\d+: ShiftLayer is a Python layer"),
        (dict(body="CUDNN_CHECK(cudnnCreate(&handle_));"), r"shift_layer\.cpp:7: ShiftLayer needs cuDNN"),
        (dict(members="cudnnHandle_t handle_;", body="cudnnCreate(&handle_);"), r"cpp:7: .* needs cuDNN \(cudnnCreate"),
        (dict(base="CuDNNConvolutionLayer"), r"shift_layer\.hpp:5: ShiftLayer needs cuDNN \(CuDNNConvolutionLayer"),
        (dict(body="bottom[0]->gpu_data_of_row(1);"), r"shift_layer\.cpp:7: .*gpu_data_of_row.*/blob\.hpp:4"),
        (dict(body="bottom[0]->offset(device, 1, 2, 3, 4, 5);"),
         r"shift_layer\.cpp:7: ShiftLayer uses an overload of offset .*/blob\.hpp:5"),
        (dict(body="LAPACKE_sgesvd(LAPACK_ROW_MAJOR, 'A', 'A', 3, 3, a, 3, s, u, 3, v, 3, b);"),
         r"shift_layer\.cpp:7: ShiftLayer calls LAPACK.*\(LAPACKE_sgesvd\)"),
        (dict(body="cblas_sgemm(a); cblas_sspr(b);"), r"shift_layer\.cpp:7: .* calls a BLAS function .*\(cblas_sspr\)"),
        (dict(body="cublasSgemm(a); cublasSgetrfBatched(b);"), r"cpp:7: .* calls a BLAS .*\(cublasSgetrfBatched\)"),
        (dict(body="vsSin(3, a, y); vsRngUniform(0, s, 3, y, 0, 1);"), r"cpp:7: .* calls Intel's MKL \(vsRngUniform"),
        (dict(includes="#include <curand.h>", body="curandGenerate(g, x, 3);"), r"cpp:7: .* calls cuRAND itself"),
        (dict(body="this->net_->Reshape();"), r"shift_layer\.cpp:7: ShiftLayer uses net_.*/layer\.hpp:5"),
        (dict(body="filler->Fill_noisy(blob);"), r"shift_layer\.cpp:7: .*Fill_noisy of .*/filler\.hpp:4\)"),
        (dict(body="if (all_iterations < 3) return;"), r"shift_layer\.cpp:7: .*all_iterations of .*/common\.hpp:1\)"),
        (dict(members="DataTransformer<Dtype> t_;", body="t_.Transform(image, top[0]);"),
         r"shift_layer\.cpp:7: ShiftLayer reads its data itself.*DataTransformer::Transform"),
        (dict(body="curandGenerateUniform(generator, x, 3);"), "ShiftLayer calls cuRAND itself"),
        (dict(body="curand_poisson(&state, 3);"), "of cuRAND in its kernels than uniform and normal"),
        (dict(body="__declspec(aligned(64)) float a[8];"), r"_layer\.cpp:7: .*Microsoft's or Intel's compiler"),
    ],
)  # fmt: skip
def test_refused_with_place_and_reason(fork, port, made, reason):
    fork.write("include/caffe/common.hpp", "extern int all_iterations;\n")
    blobs = "int gpu_data_of_row(int n) const;\n  template <class D> int offset(D, int, int, int, int, int) const;"
    fork.write("include/caffe/blob.hpp", CORE % ("Blob", blobs))
    fork.write("include/caffe/filler.hpp", CORE % ("Filler", "void Fill_noisy(Blob<Dtype>* blob);"))
    fork.layer("Shift", **made)
    output = port("Shift", fails=True)
    assert re.search(reason, output), output
    assert not list(port.folder.iterdir())


def test_function_that_a_fork_gave_to_layer(fork, port):
    """Another class of the toolkit may have a function of the same name, as Blob does here."""
    layer = fork.root / "include/caffe/layer.hpp"
    layer.write_text(layer.read_text().replace("void SetUp();", "void SetUp();\n  int offset(int n);"))
    fork.layer("Shift", body="this->offset(1);")
    assert re.search(
        r"cpp:7: ShiftLayer uses offset of .*\(include/caffe/layer\.hpp:5\)", port("Shift", fails=True)
    )
    fork.layer("Other", body="bottom[0]->offset(1); this->SetUp();")
    assert "to do by hand" not in port("Other")
    fork.layer("Own", members="int offset(int n);", body="this->offset(1);")
    port("Own")


def test_overload_that_the_fork_gave_to_a_class_of_the_core(fork, port):
    head = "class SyncedMemory { public: void free(); const void* cpu_data(); };"
    fork.write("include/caffe/syncedmem.hpp", f"namespace caffe {{\n{head}\n}}\n")
    fill = "virtual void Fill(Blob<Dtype>* b) = 0;\n  virtual void Fill(Blob<Dtype>* b, int first, int last) = 0;"
    fork.write("include/caffe/filler.hpp", CORE % ("Filler", fill))
    net = "Net(const NetParameter& param, const Net* root);\n  Dtype Forward(int first, int last);"
    fork.write("include/caffe/net.hpp", CORE % ("Net", net))
    says = r"shift_layer.cpp:7: ShiftLayer uses an overload of {} of its fork's core \(include/caffe/{}\)"
    for body, name, place in (
        ("bottom[0]->data()->free();", "free", "syncedmem.hpp:2"),
        ("filler->Fill(blob, 0, 3);", "Fill", "filler.hpp:5"),
        ("net_.reset(new Net<Dtype>(param, NULL));", "Net", "net.hpp:4"),
    ):
        fork.layer("Shift", body=body)
        assert re.search(says.format(name, place), port("Shift", fails=True))
    fork.layer(
        "Twist",
        body="Blob<Dtype>* blob; Filler<Dtype>* filler; bottom[0]->data()->cpu_data(); filler->Fill(blob);"
        "net_.reset(new Net<Dtype>(param)); other->Forward(bottom, top);",
    )
    port("Twist")


def test_variable_that_a_fork_gave_to_layer(fork, port):
    """The fork's layers pass values to each other with it."""
    layer = fork.root / "include/caffe/layer.hpp"
    static = "void SetUp();\n  static vector<shared_ptr<Blob<Dtype> > > shared;\n  static int get();"
    layer.write_text(layer.read_text().replace("void SetUp();", static))
    fork.layer("Shift", body="Layer<Dtype>::shared[0]->mutable_cpu_data();")
    said = port("Shift", fails=True)
    assert re.search(r"cpp:7: ShiftLayer uses shared of .*\(include/caffe/layer\.hpp:5\)", said), said
    fork.layer("Other", members="int shared;", body="shared = 3; Other::shared; Layer<Dtype>::SetUp();")
    assert "to do by hand" not in port("Other")


def test_one_place_for_each_file_and_reason_will_do(fork, port):
    """OpenCV in the source, OpenCV in the header, a name of the fork's own."""
    fork.write("include/caffe/common.hpp", "extern int all_iterations;\n")
    body = "cv::Mat a;\nleveldb::DB* b; all_iterations;\ncv::Mat c; all_iterations;"
    fork.layer("Shift", members="cv::Mat m_; cv::Mat n_;", body=body)
    assert port("Shift", fails=True).endswith("ShiftLayer needs OpenCV (cv) (and 2 more)\n")


@pytest.mark.parametrize(
    "condition", ["ifdef USE_OPENCV", "ifdef USE_CUDNN", "ifdef CPU_ONLY", "ifdef CURAND_H_", "if USE_OPENCV"]
)
def test_what_is_not_compiled_does_not_count(fork, port, condition):
    fork.layer(
        "Shift",
        body=f"\n#{condition}\ncv::Mat m; cudnnCreate(0);\n#endif",
        includes="#include <opencv2/opencv.hpp>",
    )
    port("Shift")


@pytest.mark.parametrize("header", ["caffe/layers/fork_layers.hpp", "caffe/data_layers.hpp"])
def test_a_header_whose_other_classes_read_data(fork, port, header):
    """They are only declared; each of them is refused."""
    thread = "namespace caffe {\nclass InternalThread { void StopIt(); };\n}\n"
    fork.write("include/caffe/internal_thread.hpp", thread)
    fork.write("include/caffe/layers/base_data_layer.hpp", BASE_DATA)
    files = ("blob", "internal_thread", "layers/base_data_layer", "proto/caffe.pb", "util/db")
    text = "".join(f'#include "caffe/{file}.h{"" if ".pb" in file else "pp"}"\n' for file in files)
    text += '#include "caffe/loss_layers.hpp"\n'  # which brings neuron_layers.hpp
    if header == "caffe/data_layers.hpp":  # which has the classes of all that read, too
        text = text.replace('#include "caffe/layers/base_data_layer.hpp"\n', '#include "caffe/layer.hpp"\n')
        text = (
            "#ifndef CAFFE_DATA_LAYERS_HPP_\n#define CAFFE_DATA_LAYERS_HPP_\n" + text + BASE_DATA + "#endif\n"
        )
    fork.write(f"include/{header}", text + '#include "hdf5.h"\n')
    for base in ("BaseDataLayer", "BasePrefetchingDataLayer"):
        fork.layer(f"Of{base}", header=header, base=base, members=READING, body="this->StopIt();")
    body = "caffe_set(top[0]->count(), Dtype(0), top[0]->mutable_cpu_data());"
    fork.layer("Other", header=header, base="NeuronLayer")
    fork.layer("Zero", header=header, body=body, members=WHOLE)
    for base in ("BaseDataLayer", "BasePrefetchingDataLayer"):
        assert f"Of{base}Layer reads its data itself" in port(f"Of{base}", fails=True)
    assert "by hand" not in port("Zero")
    (port.folder / "zero" / "caffe.proto").unlink()  # stock's messages will do
    settings = [f"LAYERS_DIR={port.folder}", "NVCC=", "-j4"]
    done = make(*settings, "libraries", timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr


def test_headers_of_what_is_not_used_do_not_matter(fork, port):
    fork.write("include/caffe/data_transformer.hpp", "class DataTransformer { cv::Mat m; };\n")
    fork.write("src/gtest/gtest.h", "class Test;\n")  # which Caffe's tests are made with
    files = '#include "caffe/data_transformer.hpp"\n#include "hdf5.h"\n#include <gtest/gtest.h>'
    fork.layer("Shift", includes=files)
    port("Shift")
    assert not {"data_transformer.hpp", "gtest.h"} & names(port.folder / "shift")


def test_tree_of_2014(fork, port):
    fork.layer("Shift")
    fork.write("src/caffe/layers/old_layer.cpp", "REGISTER_LAYER_CLASS(OLD, OldLayer);\n")
    assert re.search(r"old_layer\.cpp:1: a tree of 2014", port("Shift", fails=True))


@pytest.mark.parametrize(
    "setting, reason",
    [
        ("USE_CUDNN", "needs cuDNN"),
        ("USE_OPENCV", "needs OpenCV"),
        ("CPU_ONLY", "only in builds without CUDA"),
    ],
)
def test_type_that_is_registered_only_with_what_there_is_not(fork, port, setting, reason):
    source = fork.layer("Shift", body="cv::Mat seen;")
    fork.layer("Other")
    text = source.read_text()
    source.write_text(
        text.replace("REGISTER", f"#ifdef {setting}\nREGISTER").replace("(Shift);", "(Shift);\n#endif")
    )
    assert re.search(
        rf"Shift: not ported. src/caffe/layers/shift_layer.cpp:\d+: Shift .*{reason}",
        port("Shift", fails=True),
    )
    output = port("all", "--unbuilt")
    assert "2 types: " in output and reason in output


@pytest.mark.parametrize("word", ["Ftype", "MItype"])
def test_layers_of_several_types(fork, port, word):
    """NVCaffe's have two, those of Caffe with OpenCL three."""
    fork.layer("Shift", members=f"Blob<{word}> rows_;")
    assert re.search("ShiftLayer is .* (two|three) types each", port("Shift", fails=True))


def test_tree_of_2014_by_its_factory(fork, port):
    """It is older than REGISTER_LAYER_CLASS: a switch over types. Asking for all says so, too."""
    factory = "\n\nconst LayerParameter_LayerType& type = param.type();\nswitch (type) {}\n"
    fork.write("src/caffe/layer_factory.cpp", factory)
    for types in ("AbsVal", "all"):
        assert "layer_factory.cpp:3: a tree of 2014" in port(types, fails=True)


def test_tree_that_registers_nothing(fork, port):
    assert "registers no layer: nothing in its src/ has REGISTER_LAYER_CLASS" in port(
        "all", "--unbuilt", fails=True
    )


def test_header_of_boost_that_is_not_there(fork, port):
    """Editors insert such headers of which nothing is used: these are left empty."""
    includes = '#include <vector>\n#include <boost/geometry.hpp>\n#include "curand.h"\n#include <cusparse.h>'
    fork.layer("Unused", includes=includes, body="boost::shared_ptr<int> p;", members=WHOLE)
    port("Unused")
    made = make(
        "libraries", LAYERS_DIR=port.folder, LAYERS="unused", NVCC="", BUILD=port.folder.parent / "build"
    )
    assert made.returncode == 0, made.stdout + made.stderr


def test_layer_whose_functions_need_a_library(fork, port):
    """It is always registered. Without the library nothing defines its functions."""
    source = fork.layer("Shift")
    text = source.read_text()
    begin = text.index("template <typename Dtype>")
    end = text.index("INSTANTIATE_CLASS")
    source.write_text(f"{text[:begin]}#ifdef USE_OPENCV\n{text[begin:end]}#endif\n{text[end:]}")
    assert "ShiftLayer needs OpenCV" in port("Shift", fails=True)


def test_a_function_that_exists_with_opencv_alone(fork, port):
    """The layer's own code names nothing of OpenCV. What it calls does, in a file that the toolkit replaces."""
    source = fork.layer(
        "Shift", body="SaveImages(bottom[0]->cpu_data());", includes='#include "caffe/util/io.hpp"'
    )
    source.write_text(f"#ifdef USE_OPENCV\n{source.read_text()}#endif\n")
    fork.write("include/caffe/util/io.hpp", "template <typename Dtype> int SaveImages(const Dtype* data);\n")
    saving = "template <>\nint SaveImages<float>(const float* data) { cv::imwrite(data); return 0; }\n"
    fork.write("src/caffe/util/io.cpp", f"#ifdef USE_OPENCV\n{saving}#endif\n")
    assert re.search(r"shift_layer\.cpp:8: ShiftLayer needs OpenCV \(SaveImages\)", port("Shift", fails=True))


SYNCED = """
namespace caffe {
class SyncedMemory {
 public:
  const void* cpu_data();
  void* mutable_cpu_data();
  size_t size() { return size_; }
  void resize(size_t size);
  void swap(SyncedMemory& other);
  void warm(int side);
 private:
  size_t size_;
};
}
"""


@pytest.mark.parametrize(
    ("use", "refused"),
    [
        ("std::vector<int> v; v.resize(3, 0); v.swap(v);", ""),
        ("this->sizes_->resize(3);", ""),
        ("bottom[0]->data()->resize(3);", "resize"),
        ("bottom[0]->data()->warm(3);", "warm"),
        ("memory->warm(3);", "warm"),
    ],
)
def test_a_member_of_the_fork_s_core_with_a_container_s_name(fork, port, use, refused):
    fork.write("include/caffe/syncedmem.hpp", SYNCED)
    fork.layer("Shift", body=use)
    output = port("Shift", fails=bool(refused))
    assert (f"uses {refused} of its fork's core (include/caffe/syncedmem.hpp" in output) == bool(refused)


@pytest.mark.parametrize(("owner", "refused"), [("Bank", True), ("ShiftLayer", False)])
def test_a_function_of_the_fork_s_layer_that_a_copied_class_has_too(fork, port, owner, refused):
    """this->f() is Layer's, unless the layer's own class declares it."""
    core = (ROOT / "cuffi/caffe_layers/include/caffe/layer.hpp").read_text()
    at = core.index("virtual ~Layer()")
    fork.write("include/caffe/layer.hpp", core[:at] + "int get_scratch(int n) { return n; }\n  " + core[at:])
    fork.write(
        "include/caffe/bank.hpp", "namespace caffe { class Bank { public: int get_scratch(int n); }; }\n"
    )
    members = "" if owner == "Bank" else "  int get_scratch(int n) { return 2 * n; }\n"
    fork.layer("Shift", includes='#include "caffe/bank.hpp"', members=members, body="this->get_scratch(3);")
    output = port("Shift", fails=refused)
    assert ("uses get_scratch of its fork's core" in output) == refused


LOST = """syntax = "proto2";
package caffe;
message LayerParameter {
  optional string name = 1;
  optional string type = 2;
  optional ShiftParameter shift_param = 140;
  optional LostParameter lost_param = 143;
}
message ShiftParameter { optional float by = 1; }
"""


@pytest.mark.parametrize(("field", "refused"), [("shift_param", False), ("lost_param", True)])
def test_a_field_whose_message_the_tree_lacks(fork, port, field, refused):
    fork.write("src/caffe/proto/caffe.proto", LOST)
    fork.layer("Shift", body=f"this->layer_param_.{field}();")
    output = port("Shift", fails=refused)
    assert ("reads lost_param, which no message of the tree has" in output) == refused
