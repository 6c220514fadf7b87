"""The layers that make finds in a folder: their kind, their files, and their features."""

import os

import pytest

from cuffi.folders import toolkit_folders
from tools.make.folders import Folder, folders

REGISTERED = "REGISTER_LAYER_CLASS(One);\n"


def test_a_native_layer(folder):
    files = {
        "one.cu": "",
        "two.cu": "",
        "deep/three.cu": "",
        "one_ffi.cpp": "",
        "one.h": "",
        "deep/x.cuh": "",
    }
    more = {"notes.txt": "", ".hidden.cu": "", "__pycache__/a.cu": "", "one.proto": "", "deep/two.proto": ""}
    found = folder(**files, **more)
    assert (found.name, found.sources, found.headers) == (
        "one",
        ["one.cu", "two.cu"],
        ["deep/x.cuh", "one.h"],
    )
    assert (
        found.others == ["one.proto"]
        and found.kind.name == "native"
        and not found.has_init
        and not found.refused
    )
    assert found.has("notes.txt") and not found.has("no.txt")
    assert folder(**{"__init__.py": ""}).has_init


@pytest.mark.parametrize(
    ("declared", "defined", "needs"),
    [
        ("__device__ float f(float);", "__device__ float f(float x) { return x; }", True),
        (
            "#define DEV __device__\nDEV float f(float);",
            "#define DEV __device__\nDEV float f(float x) {}",
            True,
        ),
        ("extern __constant__ float w[3];", "__constant__ float w[3];", True),
        ("extern __constant__ float w[3];", "", False),
        ("__device__ float f(float);", "float f(float x) { return x; }", True),
        ("float f(float);", "float f(float x) { return x; }", False),
    ],
)
def test_device_code_that_is_linked(folder, declared, defined, needs):
    assert (
        folder(
            **{"one.cu": '#include "deep/x.cuh"\n', "deep/x.cuh": declared, "two.cu": defined}
        ).needs_others
        is needs
    )
    assert not folder(**{"one.cu": declared + defined}).needs_others


def test_a_caffe_layer(folder):
    found = folder(**{"one.cpp": REGISTERED, "deep/two.cc": "", "three.cu": "", "one.hpp": "", "b.inl": ""})
    assert found.kind.name == "caffe" and found.sources == ["deep/two.cc", "one.cpp", "three.cu"]
    assert found.headers == ["b.inl", "one.hpp"]


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("#if __CUDA_ARCH__ >= 700", True),
        ("#if __CUDA_ARCH__ >= 800", False),
        ("#if __CUDA_ARCH__ < 800", False),
        ("#if __CUDA_ARCH__ >= 8000", True),
        ("#if __CUDA_ARCH__ > 800", True),
        ("#ifdef __CUDA_ARCH__", False),
        ("# ifndef __CUDA_ARCH__", False),
        ("#if defined(__CUDA_ARCH__)", False),
        ("#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 600", True),
        ("#include <cuda/barrier>", True),
        ("#include <cooperative_groups.h>", True),
        ("#include <mma.h>", True),
        ("", False),
    ],
)
def test_what_asks_for_the_architecture(folder, text, asks):
    assert folder(**{"one.cu": "", "one.cuh": text}).asks_arch == asks


def test_no_layer_of_the_toolkit_asks_for_it():
    """It would be compiled once for each GPU, which takes twice as long."""
    shipped = {str(path.parent) for place in toolkit_folders() for path in place.glob("*/*.cu")}
    assert len(shipped) > 8 and not [path for path in shipped if Folder(path).asks_arch]


def test_all_folders(tmp_path):
    for name in ("one", "build", ".git", "_private", "class", "empty", "two"):
        (tmp_path / name).mkdir()
        if name != "empty":
            (tmp_path / name / "a.cu").touch()
    (tmp_path / "file.cu").touch()
    os.symlink("nowhere", tmp_path / "two" / "b.cu")
    found, unfit = folders(str(tmp_path))
    assert list(found) == ["one", "two"] and list(unfit) == ["class"]
    assert found["two"].sources == ["a.cu", "b.cu"] and found["two"].path == str(tmp_path / "two")


def test_a_folder_that_cannot_be_read(tmp_path, monkeypatch):
    """It is left out with the reason, and the others are built."""
    for name in ("closed", "open"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.cu").write_text("\n")
    known = os.scandir

    def scandir(path):
        if os.path.basename(os.fspath(path).rstrip("/")) == "closed":
            raise PermissionError(13, "Permission denied")
        return known(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found, unfit = folders(str(tmp_path))
    assert list(found) == ["open"] and unfit == {"closed": "it cannot be read: Permission denied"}
