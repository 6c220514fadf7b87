"""make port: the messages, macros and settings that it writes beside the fork's files."""

import pytest
from support.fork import CORE, names

from cuffi.caffe_layers.make.layer_folder import LayerFolder


def test_messages_of_another_package(fork, port):
    """A second .proto defines a message of the same name in a package of its own. Nothing includes it."""
    fork.layer("Shift")
    (fork.root / "src/caffe/proto/caffe.proto").unlink()
    message = "message ShiftParameter { optional int32 size = 1; }\n"
    fork.write(
        "proto/caffe.proto",
        f"package caffe;\nmessage LayerParameter {{ optional string type = 2; }}\n{message}",
    )
    fork.write("proto/more.proto", f"package more;\n{message}")
    fork.write("proto/own.proto", "message TwistParameter { optional int32 size = 1; }\n")
    port("Shift")
    assert {"caffe.proto", "own.proto"} == {n for n in names(port.folder / "shift") if n.endswith(".proto")}
    fork.layer("Twist", includes='#include "more.pb.h"')
    port("Twist")
    assert "more.proto" in names(port.folder / "twist")


def test_code_of_debug_builds(fork, port):
    """Caffe's Makefile defines NDEBUG. So code of debug builds does not count, and is not compiled."""
    fork.layer("Shift", body="\n#ifndef NDEBUG\ncv::Mat seen; cv::imwrite(name, seen);\n#endif\n")
    port("Shift")
    assert "#define NDEBUG\n" in (port.folder / "shift/additions.hpp").read_text()
    fork.layer("Twist")
    port("Twist")
    assert "additions.hpp" not in names(port.folder / "twist")


@pytest.mark.parametrize(
    "check, most", [("CHECK_LE(num_axes(), 4);", 4), ("CHECK_LE(num_axes(), 5) << 5;", 5), ("", 32)]
)
def test_axes_that_a_forks_blob_allows(fork, port, check, most):
    """Forks for volumes and videos ask blobs of five axes for their num()."""
    function = f"int LegacyShape(int index) const {{ {check} return shape_[index]; }}"
    fork.write("include/caffe/blob.hpp", CORE % ("Blob", function))
    fork.layer("Shift")
    port("Shift")
    file = port.folder / "shift/additions.cpp"
    line = f"static const int legacy_axes = caffe::most_legacy_axes() = {most};\n"
    written = file.read_text() if file.exists() else ""
    assert written == ("" if most == 4 else f'#include "caffe/blob.hpp"\n{line}')
    assert ("blob.hpp:4: blobs of up to" in (port.folder / "shift/ORIGIN").read_text()) == (most != 4)


@pytest.mark.parametrize(
    ("place", "include"),
    [
        ("third_party/eigen/Eigen/Dense", "third_party/eigen/Eigen/Dense"),
        ("3rdparty/eigen/Eigen/Dense", "Eigen/Dense"),
        ("src/3rdparty/Eigen/Dense", "Eigen/Dense"),
    ],
)
def test_headers_that_the_tree_carries_with_it(fork, port, place, include):
    """A header-only library is linked to, and the compiler finds it."""
    fork.write(place, '#include "src/Core.h"\n')
    fork.write(
        place.replace("Dense", "src/Core.h"), "namespace Eigen { template <class T> T two() { return 2; } }"
    )
    fork.layer(
        "Shift", includes=f"#include <{include}>", body="top[0]->mutable_cpu_data()[0] = Eigen::two<Dtype>();"
    )
    assert "by hand" not in port("Shift")
    folder = port.folder / "shift"
    assert (folder / include).read_text() == '#include "src/Core.h"\n'
    link = include.partition("/")[0]
    assert f"\n{link}  {place.removesuffix(include)}{link}: a link" in (folder / "ORIGIN").read_text()
    assert "by hand" not in port("Shift")  # again
    layer = LayerFolder(str(folder))
    assert not [file for file in layer.files if "Eigen" in file]


def test_a_library_that_is_compiled(fork, port):
    """It needs more than its folder in the compiler's path."""
    fork.write("third_party/eigen/Eigen/Dense.h", "")
    fork.write("third_party/eigen/Eigen/src/dense.cpp", "")
    fork.layer("Shift", includes='#include "third_party/eigen/Eigen/Dense.h"')
    said = port("Shift")
    assert (
        "to do by hand: src/caffe/layers/shift_layer.cpp:3: ShiftLayer needs third_party/eigen/Eigen/Dense.h"
        in said
    )
    assert f"CPLUS_INCLUDE_PATH={fork.root}/ make" in said or f"CPLUS_INCLUDE_PATH={fork.root} make" in said
