"""docs/errors: the commands of the page of each error run, on files that have this error elsewhere."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import ROOT
from support import python_with_torch

PAGES = ROOT / "docs" / "errors"
# What the users paste into a search, and the page that has it.
ERRORS = {
    "module 'cv2.dnn' has no attribute 'readNetFromCaffe'": "../opencv-5-removed-my-caffe-model.md",
    "No module named 'caffe'": "../run-a-pycaffe-script.md",
    "torch.utils.ffi is deprecated": "torch-utils-ffi-is-deprecated.md",
    "THC/THC.h: No such file": "thc-thc-h-no-such-file.md",
    'identifier "AT_CHECK" is undefined': "at-check-is-undefined.md",
    "at::DeprecatedTypeProperties": "deprecated-type-properties.md",
    "undefined symbol: _ZN2at": "undefined-symbol-zn2at.md",
}
# An extension of 2018 with each of these errors: torch 2 has none of THC, AT_CHECK and dispatch by x.type().
EXTENSION = {
    "setup.py": """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension
parts = [CUDAExtension("ops", ["ops.cpp", "ops_kernel.cu"])]
setup(name="ops", ext_modules=parts, cmdclass={"build_ext": BuildExtension})
""",
    "ops.cpp": """
#include <torch/extension.h>
at::Tensor scaled_cuda(at::Tensor x, double by);
at::Tensor scaled(at::Tensor x, double by) {
  AT_CHECK(x.type().is_cuda(), "x must be a CUDA tensor");
  AT_CHECK(x.is_contiguous(), "x must be contiguous");
  return scaled_cuda(x, by);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scaled", &scaled, "x times a number"); }
""",
    "ops_kernel.cu": """
#include <ATen/ATen.h>
#include <THC/THC.h>
extern THCState *state;
template <typename scalar_t>
__global__ void scaled_kernel(int n, const scalar_t* x, scalar_t by, scalar_t* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = by * x[i];
}
at::Tensor scaled_cuda(at::Tensor x, double by) {
  auto y = at::empty_like(x);
  const int n = x.numel();
  AT_DISPATCH_FLOATING_TYPES(x.type(), "scaled", ([&] {
    scaled_kernel<scalar_t><<<THCCeilDiv(n, 256), 256, 0, THCState_getCurrentStream(state)>>>(
        n, x.data<scalar_t>(), by, y.data<scalar_t>());
  }));
  THCudaCheck(cudaGetLastError());
  return y;
}
""",
    "check.py": """
import torch
import ops
x = torch.randn(1000).double().cuda()
assert torch.equal(ops.scaled(x, 3), 3 * x)
print("equal")
""",
}
# What is in the folder in which a page's commands run.
CREATED = {
    "torch-utils-ffi-is-deprecated.md": {
        "test.py": """
import torch
from _ext import old
out = torch.zeros(1)
old.old_fill(out, 2, 3, 0.5)
assert out.shape == (2, 3) and (out == 0.5).all()
print("equal")
"""
    },
    "opencv-5-removed-my-caffe-model.md": {
        "my_script.py": """
import cv2, numpy, sys
assert sys.argv[1:] == ["--its", "arguments"]
net = cv2.dnn.readNetFromCaffe("net.prototxt")
net.setInput(numpy.full((1, 2, 3, 3), -1, numpy.float32))
assert (net.forward() == 0).all()
print("equal")
"""
    },
    "run-a-pycaffe-script.md": {
        "demo.py": """
import caffe
net = caffe.Net('net.prototxt', caffe.TEST)
net.blobs['x'].data[...] = -1
assert (net.forward()['y'] == 0).all()
print 'equal'
"""
    },
}
NET = 'input: "x" input_shape { dim: 1 dim: 2 dim: 3 dim: 3 }\nlayer { name: "r" type: "ReLU" bottom: "x" top: "y" }\n'


def commands(page: Path) -> list[str]:
    """The lines that the page tells to type, without their comments."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    lines = [line.partition("#")[0].strip() for kind, text in found if not kind for line in text.splitlines()]
    return [line for line in lines if line]


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A PATH with the command `cuffi` and this Python, and an OpenCV without its importer, as OpenCV 5 is."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "cuffi").write_text('#!/bin/sh\nexec python -m cuffi "$@"\n')
    (folder / "python").symlink_to(python_with_torch.script())
    (folder / "cuffi").chmod(0o755)
    (folder / "of_opencv").mkdir()
    (folder / "of_opencv" / "python").write_text(
        f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    )  # sitecustomize runs
    (folder / "of_opencv" / "python").chmod(0o755)
    text = (
        "import cv2.dnn\nfor name in ('readNetFromCaffe', 'readNet'):\n    cv2.dnn.__dict__.pop(name, None)\n"
    )
    (folder / "of_opencv" / "sitecustomize.py").write_text(text)
    return folder


def typed(page: Path) -> list[str]:
    """The commands that run here. The folder is there, and what pip installs is this tree."""
    for command in commands(page):
        if command.startswith("pip"):
            assert re.fullmatch(
                r"pip install (/path/to/this/toolkit(/packaging/nets)?|-r requirements/\w+\.txt)", command
            )
    return [c for c in commands(page) if c.split()[0] not in ("cd", "git", "pip")]


@pytest.fixture
def run(programs, tmp_path, session_cache):
    def run(page: Path) -> str:
        """Run a page's commands; what the last prints."""
        name, folder = page.name, tmp_path / "their files"
        if name == "torch-utils-ffi-is-deprecated.md":
            shutil.copytree(ROOT / "tests" / "fixtures" / "ffi_extension", folder)
        folder.mkdir(exist_ok=True)
        files = CREATED.get(name, EXTENSION) | {"net.prototxt": NET}
        for file, text in files.items():
            (folder / file).write_text(text)
        found = [programs / "of_opencv"] if "opencv" in name else []
        environment = os.environ | {
            "PATH": os.pathsep.join(map(str, [*found, programs, os.environ["PATH"]])),
            "PYTHONPATH": os.pathsep.join(map(str, [*found, ROOT])),
            "CUFFI_CACHE": str(session_cache),
        }
        if not torch.cuda.is_available():
            environment["NVCC"] = ""  # nothing could run what it makes
        for command in typed(page):
            done = subprocess.run(
                command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout.strip().splitlines()[-1]

    return run


# Pages with the same commands, for the same files: one of them runs.
PAGES_OF = {}
for _error, _page in ERRORS.items():
    _found = (PAGES / _page).resolve()
    _files = _found.name if _found.name in CREATED else "EXTENSION"
    PAGES_OF.setdefault((_files, *typed(_found)), []).append(_error)


@pytest.mark.parametrize("errors", PAGES_OF.values(), ids=", ".join)
def test_the_commands_of_an_errors_page_run(run, errors):
    if "cv2" in errors[0]:
        pytest.importorskip("cv2")
    pages = [(PAGES / ERRORS[error]).resolve() for error in errors]
    assert all(error in page.read_text(encoding="utf-8") for error, page in zip(errors, pages, strict=True))
    assert run(pages[0]) == "equal"


def test_the_table_has_each_page():
    table = (PAGES / "README.md").read_text(encoding="utf-8")
    assert all(f"({page})" in table for page in ERRORS.values())
    assert {f"{file.name}" for file in PAGES.glob("*.md")} == {
        "README.md",
        *(p for p in ERRORS.values() if "/" not in p),
    }


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU's torch has its own extensions")
def test_torch_itself_says_the_first_errors():
    # In a process of its own: another test may have installed ours.
    done = python_with_torch.run([sys.executable, "-c", "import torch.utils.ffi"])
    assert "No module named 'torch.utils.ffi'" in done.stderr
