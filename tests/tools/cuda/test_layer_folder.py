"""The file of a Caffe layer's folder for an #include."""

import pytest

from tools.cuda.layer_folder import LayerFolder


@pytest.fixture
def folder(tmp_path) -> LayerFolder:
    for name in (
        "common.hpp",
        "util/common.hpp",
        "x_layer.hpp",
        "deep/er/only.hpp",
        "notes.txt",
        "x_layer.cu",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return LayerFolder(f"{tmp_path}/")


@pytest.mark.parametrize(
    ("include", "file"),
    [
        ("caffe/layers/x_layer.hpp", "x_layer.hpp"),
        ("x_layer.hpp", "x_layer.hpp"),
        ("caffe/util/common.hpp", "util/common.hpp"),  # the longest end wins
        ("caffe/common.hpp", "common.hpp"),
        ("er/only.hpp", "deep/er/only.hpp"),
        ("only.hpp", None),
        ("notes.txt", None),  # no source and no header
        ("caffe/layers/other_layer.hpp", None),
    ],
)
def test_the_file_that_is_meant(folder, include, file):
    assert folder.find(include) == file
    assert folder.find(include) == file  # from memory


def test_paths_within_the_folder(folder, tmp_path):
    assert folder.relative(str(tmp_path / "util" / "common.hpp")) == "util/common.hpp"
    assert folder.files == ["common.hpp", "deep/er/only.hpp", "util/common.hpp", "x_layer.cu", "x_layer.hpp"]
