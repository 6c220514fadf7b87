"""make port on a small tree like a Caffe fork: functions that a layer calls and another file defines."""

import pytest
from support.fork import names


def test_function_that_is_called_without_a_header_of_its_own(fork, port):
    """Declared in a header that is taken, defined in a file of another name."""
    fork.write("include/caffe/util/twist.hpp", "void caffe_twist(int n);\n")
    fork.write("src/caffe/util/all_kinds.cpp", "void caffe_twist(int n) {}\n")
    fork.layer("Shift", body="caffe_twist(3);", includes='#include "caffe/util/twist.hpp"')
    port("Shift")
    assert "all_kinds.cpp" in names(port.folder / "shift")


def test_function_that_a_source_declares_itself(fork, port):
    """Another layer's source defines it; no header declares it."""
    other = fork.layer("Other")
    other.write_text(other.read_text() + "int grid_of(int n) { return n; }\n")
    source = fork.layer("Shift", body="grid_of(3);")
    port("Shift")
    assert "other_layer.cpp" not in names(port.folder / "shift")
    source.write_text(
        source.read_text().replace("namespace caffe {", "int grid_of(int n);\nnamespace caffe {", 1)
    )
    port("Shift", "--force")
    assert {"other_layer.cpp", "other_layer.hpp"} <= names(port.folder / "shift")


def test_template_that_another_header_defines(fork, port):
    """Declared where the layer sees it, defined in a header that only other layers include."""
    fork.write("include/caffe/util/wide.hpp", "template <typename T> T overlap(T a, T b) { return a + b; }\n")
    fork.write(
        "include/caffe/util/none.hpp", "struct Other { int overlap(int a); };\nvoid overlap(int a) {}\n"
    )
    fork.write("include/caffe/narrow.hpp", "template <typename T> T overlap(T a, T b);\n")
    fork.layer("Shift", body="overlap(1, 2);", includes='#include "caffe/narrow.hpp"')
    port("Shift")
    assert {"wide.hpp", "narrow.hpp"} <= names(port.folder / "shift") and "none.hpp" not in names(
        port.folder / "shift"
    )
    assert '#include "caffe/util/wide.hpp"' in (port.folder / "shift" / "additions.hpp").read_text()


INSIDE = "struct Twist {{ void turn(int n); void both() {{ turn(3); }} }};\n{}void Twist::turn(int n) {{}}\n"


@pytest.mark.parametrize("inline", ["", "inline "])
def test_member_function_of_a_class_is_no_other_files(fork, port, inline):
    """Another layer's source has a function of the name that a class's member function has."""
    fork.write("include/caffe/util/twist.hpp", INSIDE.format(inline))
    fork.write("src/caffe/util/other.cpp", "void turn(int n) {}\n")
    fork.layer("Shift", body="Twist().both();", includes='#include "caffe/util/twist.hpp"')
    port("Shift")
    assert "twist.hpp" in names(port.folder / "shift") and "other.cpp" not in names(port.folder / "shift")


HELPERS = """
namespace cv { class Mat; }
namespace caffe {
cv::Mat drawn(const cv::Mat& image, int size);
int twice(int n);
}
"""


@pytest.mark.parametrize("body, taken", [("", False), ("twice(3);", True), ("int (*f)(int) = twice;", True)])
def test_source_of_helpers_that_are_not_called(fork, port, body, taken):
    """The source of a header of helpers is taken if the layer uses one of them: alone, if another one needs OpenCV."""
    fork.write("include/caffe/util/helpers.hpp", HELPERS)
    source = fork.write(
        "src/caffe/util/helpers.cpp", "namespace caffe {\nint twice(int n) { return 2 * n; }\n}\n"
    )
    fork.layer("Shift", body=body, includes='#include "caffe/util/helpers.hpp"')
    port("Shift")
    assert "helpers.hpp" in names(port.folder / "shift")
    assert ("helpers.cpp" in names(port.folder / "shift")) == taken
    drawing = "cv::Mat drawn(const cv::Mat& image, int size) { cv::Mat m; return m; }\n}\n"
    source.write_text(source.read_text().removesuffix("}\n") + drawing)
    port("Shift", "--force")
    assert "helpers.cpp" not in names(port.folder / "shift")
    assert ("additions.cpp" in names(port.folder / "shift")) == taken
    fork.layer("Shift", body=body + " drawn(x, 3);", includes='#include "caffe/util/helpers.hpp"')
    assert "helpers.cpp:3: ShiftLayer needs OpenCV" in port("Shift", "--force", fails=True)


AXPY = "template <typename T> void caffe_axpy(int n, T a, const T* x, {}T* y);\n"
SPECIAL = """
namespace caffe {{
template <> void caffe_axpy<float>(int n, float a, const float* x, {}float* y) {{}}
{}}}
"""


def test_function_that_is_defined_is_not_called(fork, port):
    """An overload of a stock function, in a header and a source of its own: the definition's head calls nothing."""
    for stem, more, other in (("math_functions", "", ""), ("twist", "int step, ", "void bend() {}\n")):
        head = AXPY.format(more) + ("void bend();\n" if other else "")
        fork.write(f"include/caffe/util/{stem}.hpp", f"namespace caffe {{\n{head}}}\n")
        fork.write(f"src/caffe/util/{stem}.cpp", SPECIAL.format(more, other))
    fork.layer("Shift", body="bend();", includes='#include "caffe/util/twist.hpp"')
    assert "by hand" not in port("Shift") and "twist.cpp" in names(port.folder / "shift")


@pytest.mark.parametrize("of", ["Softmax", "Turn"])
def test_sub_layer_of_which_only_the_registration_was_published(fork, port, of):
    """The toolkit has stock's Softmax. Nobody has the other."""
    creator = (
        f"shared_ptr<Layer<Dtype> > GetIt(const LayerParameter& p) {{ return new {of}Layer<Dtype>(p); }}"
    )
    text = f'#include "caffe/layers/{of.lower()}_layer.hpp"\ntemplate <typename Dtype>\n{creator}\n'
    fork.write("src/caffe/layer_factory.cpp", f"{text}REGISTER_LAYER_CREATOR({of}, GetIt);\n")
    fork.layer("Shift", body=f'LayerParameter p; p.set_type("{of}"); LayerRegistry<Dtype>::CreateLayer(p);')
    if of == "Softmax":
        assert "by hand" not in port("Shift")
        assert not any("softmax" in name for name in names(port.folder / "shift"))
    else:
        assert "layer_factory.cpp:4: Turn is registered, but no header defines" in port("Shift", fails=True)


def test_fields_of_stock_beside_a_message_that_was_published_alone(fork, port):
    """Its file has no LayerParameter, so that is stock's; the build adds the field of the layer's own message."""
    fork.write("src/caffe/proto/caffe.proto", "message ShiftParameter { optional float gamma = 3; }\n")
    reads = "this->layer_param_.loss_param().normalize(); this->layer_param_.{}().gamma();"
    fork.layer("Shift", body=f"LossParameter_NormalizationMode mode; {reads.format('shift_param')}")
    fork.layer("Other", body=reads.format("other_param"))
    assert "by hand" not in port("Shift")
    assert "OtherLayer reads other_param, which no message of the tree has" in port("Other", fails=True)


def test_kernels_whose_declarations_are_comments(fork, port):
    """The fork does not build that file: the layer has only CPU code."""
    fork.layer("Shift", members="// virtual void Forward_gpu();")
    kernels = '#include "caffe/layers/shift_layer.hpp"\nnamespace caffe {\ntemplate <typename Dtype>\n%s\n}\n'
    fork.write("src/caffe/layers/shift_layer.cu", kernels % "void ShiftLayer<Dtype>::Forward_gpu() {}")
    port("Shift")
    assert "shift_layer.cu" not in names(port.folder / "shift")
    fork.layer("Twist", members="virtual void Forward_gpu();")
    fork.write(
        "src/caffe/layers/twist_layer.cu",
        (kernels % "void TwistLayer<Dtype>::Forward_gpu() {}").replace("shift", "twist"),
    )
    port("Twist")
    assert "twist_layer.cu" in names(port.folder / "twist")
