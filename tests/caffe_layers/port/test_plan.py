"""make port on a small tree like a Caffe fork: the copied files."""

import hashlib
import re
import shutil
import subprocess

import pytest
from support.fork import names
from support.workshop import make

from cuffi.caffe_layers.make.layer_folder import LayerFolder
from cuffi.caffe_layers.make.prepare import forwards
from tools.cuda.source import Source

# ------------------------------------------------------------------------------------ what is copied


def test_layer_is_copied_byte_for_byte(fork, port):
    source = fork.layer("EdgeShift")
    source.write_bytes(b"// \xc0\xb1\r\n" + source.read_bytes())
    kernels = '#include "caffe/layers/edge_shift_layer.hpp"\nINSTANTIATE_CLASS(EdgeShiftLayer);\n'
    fork.write("src/caffe/layers/edge_shift_layer.cu", kernels)
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
        "from cuffi import caffe_layer\n\n"
        'EdgeShift = caffe_layer(__name__, "EdgeShift")\n'
    )
    assert "make LAYERS_DIR=" in output and "verify" in output


def test_part_of_a_fork(fork, port):
    """Layers are published like this: at a fork's paths, without the files of its core."""
    fork.layer("Shift", body="shift(bottom[0]->count());", includes="static void shift(int) {}")
    for path in (
        "include/caffe/blob.hpp",
        "include/caffe/layer.hpp",
        "src/caffe/proto/caffe.proto",
        "LICENSE",
    ):
        (fork.root / path).unlink()
    port("Shift")
    assert names(port.folder / "shift") == {"shift_layer.hpp", "shift_layer.cpp", "ORIGIN", "__init__.py"}


@pytest.mark.skipif(not shutil.which("git"), reason="no git")
def test_origin_knows_the_commit(fork, port):
    fork.layer("Shift")
    git = ["git", "-C", str(fork.root), "-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    port("Shift")
    assert f"commit   {head}" in (port.folder / "shift" / "ORIGIN").read_text()


def test_includes_with_the_other_slash(fork, port):
    fork.write("include/caffe/util/own.hpp", "inline int own() { return 1; }\n")
    fork.layer("Shift", includes='#include "caffe\\util\\own.hpp"')
    port("Shift")
    assert "own.hpp" in names(port.folder / "shift")


def test_includes_of_ours_in_other_letters(fork, port):
    """Windows takes caffe/Filler.hpp for caffe/filler.hpp. Another's are its own."""
    fork.write("include/caffe/util/Own.hpp", "inline int own() { return 1; }\n")
    fork.layer(
        "Shift",
        includes='#include "caffe/Filler.hpp"\n#include "Caffe\\Common.hpp"\n#include "caffe/util/Own.hpp"',
    )
    port("Shift")
    assert "Own.hpp" in names(port.folder / "shift") and "Filler.hpp" not in names(port.folder / "shift")
    made = forwards(
        LayerFolder(str(port.folder / "shift")), {"a.cpp": Source('#include "caffe/Filler.hpp"\n', "a.cpp")}
    )
    assert made["caffe/Filler.hpp"] == "#include <caffe/filler.hpp>\n"


def test_what_only_nvcc_sees(fork, port):
    """Its includes are taken, too, and the source of a function that it calls."""
    fork.write("include/caffe/util/deep.cuh", "void deep();\n")
    fork.write("src/caffe/util/deep.cu", '#include "caffe/util/deep.cuh"\nvoid deep() {}\n')
    guarded = '#ifdef __CUDACC__\n#include "caffe/util/deep.cuh"\nvoid go() { deep(); }\n#endif'
    fork.layer("Shift", includes=guarded)
    port("Shift")
    assert {"deep.cuh", "deep.cu"} <= names(port.folder / "shift")


def test_class_in_an_aggregate_header(fork, port):
    """The header is copied whole; of its classes only the base has its source copied."""
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
    fork.write(
        "include/caffe/util/twist.hpp", '#include "caffe/util/deeper.hpp"\nvoid twist();\nvoid twist_gpu();\n'
    )
    fork.write("include/caffe/util/deeper.hpp", "void deeper();\n")
    fork.write("src/caffe/util/twist.cpp", "void twist() {}\n")
    fork.write("src/caffe/util/twist.cu", "void twist_gpu() {}\n")
    fork.write("include/caffe/util/unused.hpp", "void unused();\n")
    fork.layer("Inner")
    includes = '#include "caffe/util/twist.hpp"\n#include <caffe/layers/inner_layer.hpp>'
    body = "twist(); std::thread(twist_gpu);"
    fork.layer("Shift", body=body, includes=includes, members="shared_ptr<InnerLayer<Dtype> > inner_;")
    output = port("Shift")
    found = names(port.folder / "shift")
    assert {"twist.hpp", "deeper.hpp", "twist.cpp", "twist.cu", "inner_layer.hpp", "inner_layer.cpp"} <= found
    assert "unused.hpp" not in found
    assert re.search(r"src/caffe/util/twist.cu: .*twist\.hpp declares", output)


HELPERS = """#include "caffe/common.hpp"
namespace caffe {
void solve(int n, float* x);
void twice(int n, float* x);
inline void four_times(int n, float* x) { twice(n, x); twice(n, x); }
}
"""
SOURCES = """#include <cusparse.h>
#include "caffe/util/help.hpp"
namespace caffe {
static float factor() { return 2; }
void solve(int n, float* x) { cusparseHandle_t handle; cusparseCreate(&handle); }
void twice(int n, float* x) { for (int i = 0; i < n; ++i) x[i] *= factor(); }
}
"""


@pytest.mark.parametrize(
    ("body", "taken"),
    [("", False), ("twice(1, 0);", True), ("four_times(1, 0);", True), ("solve(1, 0);", None)],
)
def test_functions_beside_one_that_needs_a_library(fork, port, body, taken):
    """If another function of a source of helpers needs cuSPARSE, only those that are called are taken."""
    fork.write("include/caffe/util/help.hpp", HELPERS)
    fork.write("src/caffe/util/help.cpp", SOURCES)
    fork.layer("Shift", body=body, includes='#include "caffe/util/help.hpp"')
    if taken is None:
        assert "needs a library that the toolkit does not have (cusparseCreate)" in port("Shift", fails=True)
        return
    port("Shift")
    folder = port.folder / "shift"
    assert "help.hpp" in names(folder) and "help.cpp" not in names(folder)
    text = (folder / "additions.cpp").read_text() if taken else "twice factor"
    assert ("twice" in text and "factor" in text) and "solve" not in text
    assert (folder / "additions.cpp").exists() == taken


def test_base_that_the_toolkit_has_is_not_copied(fork, port):
    fork.layer("Loss")
    fork.layer("ShiftLoss", base="LossLayer", includes='#include "caffe/layers/loss_layer.hpp"')
    port("ShiftLoss")
    assert not {"loss_layer.hpp", "loss_layer.cpp"} & names(port.folder / "shift_loss")


def test_the_forks_own_version_of_a_stock_layer(fork, port):
    fork.layer("Softmax")
    port("Softmax")
    assert {"softmax_layer.hpp", "softmax_layer.cpp"} <= names(port.folder / "softmax")


@pytest.mark.parametrize(
    "member, use", [("int turns();", "this->turns();"), ("int turns_;", "this->turns_ = 1;")]
)
def test_member_that_the_fork_gave_to_a_stock_base(fork, port, member, use):
    """Then the fork's own base is taken."""
    fork.write("src/caffe/layers/loss_layer.cpp", '#include "caffe/layers/loss_layer.hpp"\n')
    fork.layer("Loss", members=member)
    for name, body in (("Shift", use), ("Other", "")):
        fork.layer(name, base="LossLayer", body=body, includes='#include "caffe/layers/loss_layer.hpp"')
        port(name)
        assert ("loss_layer.hpp" in names(port.folder / name.lower())) == bool(body)


def test_sublayers_made_by_type_come_along(fork, port):
    """No class names them. The toolkit has a Softmax."""
    fork.layer("Inner"), fork.layer("Softmax")
    fork.layer(
        "Shift",
        body='P p, q, filler; p.set_type("Inner"); q.set_type("Softmax"); filler.set_type("constant");',
    )
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


def test_what_lies_beside_a_name_that_is_taken(fork, port):
    """Both of a name go into folders of theirs, and a header that includes one by its name alone goes along."""
    for folder in ("fast", "slow"):
        fork.write(f"include/caffe/{folder}/part.h", "")
        fork.write(f"include/caffe/{folder}/{folder}.h", '#include "part.h"\n')
    fork.write("include/caffe/alone.h", '#include "caffe/fast/fast.h"\n#include "caffe/slow/slow.h"\n')
    fork.layer("Shift", includes='#include "caffe/alone.h"')
    port("Shift")
    found = {name for name in names(port.folder / "shift") if name.endswith(".h")}
    assert found == {"fast/fast.h", "fast/part.h", "slow/slow.h", "slow/part.h", "alone.h"}


def test_a_copy_of_a_source_that_lies_deeper(fork, port):
    """Another version of it, which cannot be linked together with it."""
    source = fork.layer("Shift")
    fork.write("src/caffe/layers/before/shift_layer.cpp", source.read_text() + "// older\n")
    port("Shift")
    found = names(port.folder / "shift")
    assert {name for name in found if name.endswith(".cpp")} == {"shift_layer.cpp"}
    assert (port.folder / "shift/shift_layer.cpp").read_text() == source.read_text()


def test_another_version_of_a_source_beside_it(fork, port):
    """It defines the same functions, and is not called as the header is."""
    source = fork.layer("Shift", members="void More();")
    fork.write("src/caffe/layers/shift_layer-x.cpp", source.read_text())
    header = (fork.root / "include/caffe/layers/shift_layer.hpp").read_text()
    fork.write("include/caffe/layers/shift_layer-x.hpp", header)
    more = "namespace caffe {\ntemplate <typename Dtype>\nvoid ShiftLayer<Dtype>::More() {}\n}\n"
    fork.write("src/caffe/layers/shift_layer_more.cpp", '#include "caffe/layers/shift_layer.hpp"\n' + more)
    port("Shift")
    found = {name for name in names(port.folder / "shift") if name.endswith(".cpp")}
    assert found == {"shift_layer.cpp", "shift_layer_more.cpp"}


@pytest.mark.parametrize("header", ["caffe/3rdparty/twist.h", "3rdparty/twist.h"])
def test_a_library_within_caffes_own_folders_is_caffes(fork, port, header):
    fork.write(f"include/{header}", "void twist();\n")
    fork.write(f"src/{header[:-2]}.cpp", "void twist() {}\n")
    fork.layer("Shift", includes=f'#include "{header}"', body="twist();")
    if header.startswith("caffe/"):
        port("Shift")
        assert {"twist.h", "twist.cpp"} <= names(port.folder / "shift")
    else:
        assert f"needs include/{header}, a library that the tree carries" in port("Shift")


def test_messages_in_c_that_somebody_put_under_git(fork, port):
    fork.write("src/caffe/proto/caffe.pb.h", "#error of another protobuf\n")
    fork.layer("Shift", includes='#include "caffe/proto/caffe.pb.h"')
    port("Shift")
    assert "caffe.pb.h" not in names(port.folder / "shift")


def test_equal_names_get_folders(fork, port):
    """Two files have one name, and one file would hide a header of the toolkit."""
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


def test_an_additions_includes_are_its_files(fork, port):
    """It includes the fork's files that come along, and the toolkit's, but not what nobody has."""
    fork.write("include/caffe/util/im2col.hpp", "namespace caffe {\nvoid im2col_of_ours(int n);\n}\n")
    fork.write("include/caffe/common.cuh", "#define HELP\n")
    text = "".join(
        f'#include "caffe/{name}"\n' for name in ("common.cuh", "util/math_functions.hpp", "nobodys.hpp")
    )
    text += "#include <boost/random.hpp>\n#include <boost/nobodys.hpp>\n"
    fork.write("src/caffe/util/im2col.cu", text + "namespace caffe {\nvoid im2col_of_ours(int n) {}\n}\n")
    includes = '#include "caffe/common.cuh"\n#include "caffe/util/im2col.hpp"'
    fork.layer("Shift", body="im2col_of_ours(3);", includes=includes)
    port("Shift")
    source = (port.folder / "shift" / "additions.cu").read_text()
    assert source.startswith(
        '#include <boost/random.hpp>\n#include "caffe/common.cuh"\n#include "caffe/util/math_functions.hpp"\nnamespace'
    )


def test_two_copies_of_a_library_keep_their_paths(fork, port):
    """Its files include each other by ../, which is right where they lie as they lay."""
    for place in ("caffe/one/twist", "caffe/two/part/twist"):
        fork.write(f"include/{place}/enums.h", "#pragma once\nenum {};\n")
        fork.write(f"include/{place}/device/scan.h", '#pragma once\n#include "../enums.h"\n')
    includes = '#include "caffe/one/twist/device/scan.h"\n#include "caffe/two/part/twist/device/scan.h"'
    fork.layer("Shift", includes=includes)
    port("Shift")
    folder = LayerFolder(str(port.folder / "shift"))
    assert {f for f in folder.files if f.endswith(".h")} == {
        f"{place}/{name}"
        for place in ("one/twist", "two/part/twist")
        for name in ("enums.h", "device/scan.h")
    }
    assert folder.find("caffe/two/part/twist/enums.h") == "two/part/twist/enums.h"
    assert folder.find("device/scan.h") == "one/twist/device/scan.h" and folder.find("scan.h") is None


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
    output = port("all", "--unbuilt")
    assert "3 types: " in output and "1 refused" in output and "2 ported" in output
    assert {p.name for p in port.folder.iterdir()} == {"shift", "twist", "build"}


def test_make_port(fork, tmp_path):
    """The message has the error of a layer that does not compile, and its folder stays."""
    fork.layer("Shift", body="top[0]->mutable_cpu_data()[0] = width_;")
    (tmp_path / "mine").mkdir()
    done = make("port", f"CAFFE={fork.root}", "TYPE=Shift", f"LAYERS_DIR={tmp_path / 'mine'}", "NVCC=")
    assert done.returncode
    assert "It does not compile: shift_layer.cpp:7:" in done.stdout and "two versions" in done.stdout
    assert (tmp_path / "mine" / "shift" / "ORIGIN").exists()
    done = make("port", f"LAYERS_DIR={tmp_path / 'mine'}")
    assert done.returncode and "CAFFE=/path/to/fork TYPE=" in done.stdout


# ------------------------------------------------------------- which of several files a name means


def test_a_class_elsewhere_in_the_tree_is_anothers(fork, port):
    """A library in include/ has a class of the name of a member function: only what a file includes is meant."""
    fork.write("include/library/common.h", "class type { PyObject* object; };\nclass Shape {};\n")
    fork.write("include/caffe/ours.hpp", "class Shape {};\n")
    fork.layer("Shift", members="Shape shape_;", includes='#include "caffe/ours.hpp"')
    port("Shift")
    assert "ours.hpp" in names(port.folder / "shift") and "common.h" not in names(port.folder / "shift")


def test_header_seen_only_through_one_that_the_toolkit_replaces(fork, port):
    """vision_layers.hpp is the toolkit's: what the fork's brings beside is included before everything."""
    fork.layer("Shift", header="caffe/custom_layers.hpp")
    fork.write("include/caffe/vision_layers.hpp", '#include "caffe/custom_layers.hpp"\n')
    source = fork.root / "src/caffe/layers/shift_layer.cpp"
    source.write_text(source.read_text().replace("custom_layers", "vision_layers"))
    port("Shift")
    assert '#include "caffe/custom_layers.hpp"' in (port.folder / "shift" / "additions.hpp").read_text()


def test_header_behind_one_of_the_toolkits(fork, port):
    """The toolkit's vision_layers.hpp includes a common_layers.hpp, too, which is the fork's then."""
    fork.layer("Shift", header="caffe/common_layers.hpp")
    fork.write("include/caffe/vision_layers.hpp", '#include "caffe/common_layers.hpp"\n')
    source = fork.root / "src/caffe/layers/shift_layer.cpp"
    source.write_text(source.read_text().replace("common_layers", "vision_layers"))
    port("Shift")
    assert "common_layers.hpp" in names(port.folder / "shift")
    assert not (port.folder / "shift" / "additions.hpp").exists()


def test_a_layer_says_that_it_reads_a_message_that_is_nowhere(fork, port):
    fork.layer("Shift", body="this->layer_param_.shift_param().by(); this->layer_param_.relu_param();")
    (fork.root / "src/caffe/proto/caffe.proto").unlink()
    output = port("Shift")
    assert re.search(r"by hand: src/caffe/layers/shift_layer\.cpp:7: .* reads shift_param", output)
    assert "relu_param" not in output
    assert "shift_param" in port("all", "--unbuilt")  # in the table's last column


def test_a_message_that_the_forks_caffe_proto_has_not(fork, port):
    """A message of which LayerParameter has no field gets one in the build."""
    fork.layer("Shift", body="this->layer_param_.add_param(); this->layer_param_.has_shift_param();")
    said = port("Shift", fails=True)
    assert "shift_layer.cpp:7: ShiftLayer reads shift_param, which no message of the tree has: add it" in said
    proto = fork.root / "src/caffe/proto/caffe.proto"
    proto.write_text(proto.read_text() + "message ShiftParameter { optional int32 by = 1; }\n")
    port("Shift")


CREATOR = """
#include "caffe/layers/edge_shift_layer.hpp"
namespace caffe {
#ifdef USE_CUDNN
int no_creator;
#endif
template <typename Dtype>
shared_ptr<Layer<Dtype> > GetShift(const LayerParameter& param) {
  return shared_ptr<Layer<Dtype> >(new EdgeShiftLayer<Dtype>(param));
}
REGISTER_LAYER_CREATOR(%s, GetShift);
}
"""


@pytest.mark.parametrize("type_name", ["SHIFT", "EdgeShift"])
def test_layer_that_a_function_makes(fork, port, type_name):
    """The fork's factory registers the class under another name, which only that function knows."""
    of_layer = "virtual void {}(const vector<Blob<Dtype>*>&, {}const vector<Blob<Dtype>*>&) {{}}"
    whole = of_layer.format("Reshape", "") + of_layer.format("Backward_cpu", "const vector<bool>&, ")
    fork.layer("EdgeShift", members=whole, register="// not here: ")
    fork.write("src/caffe/layer_factory.cpp", CREATOR % type_name)
    port(type_name)
    folder = port.folder / ("shift" if type_name == "SHIFT" else "edge_shift")
    if type_name == "EdgeShift":  # the toolkit registers what says its type
        assert "additions.cpp" not in names(folder)
        return
    lines = (folder / "additions.cpp").read_text().splitlines()
    assert lines[-2:] == ["REGISTER_LAYER_CREATOR(SHIFT, GetShift);", "}  // namespace caffe"]
    assert '#include "caffe/layers/edge_shift_layer.hpp"' in lines and "int no_creator;" not in lines
    assert "additions.cpp  src/caffe/layer_factory.cpp:11\n" in (folder / "ORIGIN").read_text()
    place = {"LAYERS_DIR": port.folder, "BUILD": port.folder.parent / "build"}
    made = make("all", with_torch=True, LAYERS="shift", NVCC="", **place)
    assert made.returncode == 0, made.stdout + made.stderr


def test_layer_behind_opencv_that_uses_nothing_of_it(fork, port):
    """It is registered with USE_OPENCV alone, and so built with that."""
    source = fork.layer("Shift")
    source.write_text(
        "#ifdef USE_OPENCV\n#include <opencv2/core/core.hpp>\n" + source.read_text() + "#endif\n"
    )
    port("Shift")
    assert (port.folder / "shift/additions.hpp").read_text() == "#pragma once\n#define USE_OPENCV\n"
    source.write_text(source.read_text().replace("namespace caffe {", "namespace caffe {\ncv::Mat seen;", 1))
    assert "Shift needs OpenCV" in port("Shift", fails=True)
