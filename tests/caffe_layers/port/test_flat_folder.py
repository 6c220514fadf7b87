"""make port on layers without a tree. The same files in a tree are the reference."""

import shutil

import pytest
from support.fork import names

WHOLE = 'syntax = "proto2";\npackage caffe;\nmessage LayerParameter { optional string type = 2; }\n'


@pytest.fixture
def loose(fork, tmp_path):
    """Copy the tree's files, but not its core, into one folder, or each into the folder that `where` says."""

    def copy(where=lambda path: ""):
        folder = tmp_path / "loose"
        for path in (
            p for p in fork.root.rglob("*") if p.is_file() and p.name not in ("blob.hpp", "layer.hpp")
        ):
            (folder / where(path)).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, folder / where(path) / path.name)
        return folder

    return copy


def contents(folder):
    return {
        name: (folder / name).read_bytes() for name in names(folder) if name not in ("ORIGIN", "__init__.py")
    }


@pytest.mark.parametrize(
    "where", [lambda path: "", lambda path: f"caffe_layers/{path.suffix[1:]}"], ids=["one folder", "folders"]
)
def test_files_alone_are_ported_as_from_a_tree(fork, port, loose, where):
    fork.write("include/caffe/util/own.hpp", "namespace caffe { int own(int n); }\n")
    fork.write(
        "src/caffe/util/own.cpp", '#include "caffe/util/own.hpp"\nint caffe::own(int n) { return n; }\n'
    )
    twice = "namespace caffe { inline int twice(int n) { return 2 * n; } }\n"
    fork.write("include/caffe/util/math_functions.hpp", twice)
    includes = '#include "caffe/util/own.hpp"\n#include "caffe/util/math_functions.hpp"'
    fork.layer("Shift", body="own(twice(bottom[0]->count()));", includes=includes)
    fork.layer("Other")
    port("Shift")
    port("Shift", "--name", "alone", caffe=loose(where))
    assert contents(port.folder / "alone") == contents(port.folder / "shift")
    assert {"own.hpp", "own.cpp", "additions.hpp", "caffe.proto"} < names(port.folder / "alone")
    place = (where(fork.root / "shift_layer.cpp") + "/shift_layer.cpp").lstrip("/")
    origin = (port.folder / "alone/ORIGIN").read_text()
    assert f"  shift_layer.cpp  {place}\n" in origin and "tree     loose" in origin


def test_header_included_by_its_name_alone(fork, port, loose):
    source = fork.layer("Shift")
    source.write_text(source.read_text().replace("caffe/layers/shift_layer.hpp", "shift_layer.hpp"))
    port("Shift", caffe=loose())
    assert "shift_layer.hpp" in names(port.folder / "shift")


def test_all_types_of_a_folder(fork, port, loose):
    fork.layer("Shift")
    fork.layer("Other", body="leveldb::DB* db;")
    said = port("all", "--unbuilt", caffe=loose())
    assert "2 types: 1 ported, 1 refused" in said or "2 types: 1 refused, 1 ported" in said
    assert "reads a database" in said


def test_two_files_of_one_name(fork, port, loose):
    fork.layer("Shift")
    folder = loose()
    (folder / "old").mkdir()
    shutil.copy(folder / "shift_layer.cpp", folder / "old")
    port("Shift", caffe=folder)  # two copies of one file are no matter
    (folder / "old/shift_layer.cpp").write_text("// another version\n")
    said = port("Shift", caffe=folder, fails=True)
    assert "shift_layer.cpp and old/shift_layer.cpp are two files of one name" in said


@pytest.mark.parametrize("has_all", [False, True])
def test_excerpt_of_the_messages(fork, port, loose, has_all):
    """An excerpt of LayerParameter has the layer's field alone. The fields of stock Caffe are there, too."""
    excerpt = (
        "message LayerParameter { optional ShiftParameter shift_param = 200; }\nmessage ShiftParameter {}\n"
    )
    fork.write("src/caffe/proto/caffe.proto", WHOLE if has_all else excerpt)
    fork.layer("Shift", body="this->layer_param_.loss_param().has_normalize();")
    said = port("Shift", caffe=loose(), fails=has_all)
    assert ("reads loss_param, which no message of the tree has" in said) == has_all


def test_field_that_begins_like_an_accessor(fork, port):
    message = "message ShiftParameter {}\nmessage LayerParameter { optional ShiftParameter add_shift_param = 200; }\n"
    fork.write("src/caffe/proto/caffe.proto", message)
    fork.layer("Shift", body="this->layer_param_.add_shift_param();")
    port("Shift")
