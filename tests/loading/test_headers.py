"""load_inline of a file's path: its headers are found as its project's compiler would find them."""

from pathlib import Path

import pytest
import torch

from cuffi import CaffeBuildError, CaffeValueError, load_inline
from cuffi.loading.headers import with_headers

TWICE = "#pragma once\n__device__ float twice(float x) { return 2 * x; }\n"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def written(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


@pytest.mark.parametrize(
    ("header", "include", "is_found"),
    [
        ("include/common.h", '"common.h"', True),
        ("include/common.h", "<common.h>", True),
        ("common.h", '"common.h"', True),
        ("kernels/softmax/common.h", '"common.h"', True),
        ("kernels/common.h", '"kernels/common.h"', True),
        ("include/mine/common.h", '"mine/common.h"', True),
        ("include/common.h", '"../../include/common.h"', True),
        ("include/of/mine/common.h", '"mine/common.h"', True),  # the one file that ends so
        ("include/of/mine/common.h", "<mine/common.h>", True),
        ("windows/unistd.h", "<unistd.h>", False),  # the system's
        ("include/stdio.h", "<stdio.h>", False),  # the compiler's
        ("include/cuda_runtime.h", "<cuda_runtime.h>", False),  # the toolkit's
        ("../include/common.h", '"common.h"', False),  # outside of the repository
    ],
)
def test_where_headers_lie(project, header, include, is_found):
    written(project / header, TWICE)
    file = written(project / "kernels/softmax/softmax.cu", f"#include {include}\n")
    _, text, headers, *_ = with_headers(file)
    assert list(headers.values()) == [TWICE.encode()] * is_found
    assert (text == file.read_bytes()) == (not is_found)


def test_a_name_that_two_files_have_is_not_guessed(project):
    for folder in ("a/x", "b/x"):
        written(project / folder / "mine/common.h", TWICE)
    file = written(project / "k.cu", '#include "mine/common.h"\n')
    assert with_headers(file) == (file.read_bytes(), file.read_bytes(), {}, {}, project)


def test_headers_include_headers(project, cache):
    written(project / "include/deep/ends.cu", TWICE)  # make must not compile it
    written(project / "include/common.h", '#pragma once\n#include "deep/ends.cu"\n#include "common.h"\n')
    text = '#include "common.h"\n__global__ void k(float* x) { x[threadIdx.x] = twice(x[threadIdx.x]); }\n'
    file = written(project / "kernels/x/y.cu", text)
    x = torch.arange(4.0)
    load_inline("y", file, backends="host").k(x, 1, 1, 1, 4, 1, 1)
    assert x.tolist() == [0, 2, 4, 6]
    written(project / "include/deep/ends.cu", TWICE.replace("2 * x", "3 * x"))
    load_inline("y", file, backends="host").k(x, 1, 1, 1, 4, 1, 1)
    assert x.tolist() == [0, 6, 12, 18]
    # An error names the project's file.
    written(project / "include/deep/ends.cu", TWICE.replace("2 * x", "2 * z"))
    with pytest.raises(CaffeBuildError, match=rf"{project}/include/deep/ends.cu:2:\d+: error"):
        load_inline("y", file, backends="host")


def test_a_missing_header_is_named(project, cache):
    text = '#include "caffe/util/im2col.cuh"\n__global__ void k(float* x) { x[0] = 1; }\n'
    file = written(project / "k.cu", text)
    with pytest.raises(
        CaffeBuildError, match=rf"{file}:1:10: .*im2col.cuh(.|\n)*searched in .* up to {project}"
    ):
        load_inline("k", file, backends="host")
    with pytest.raises(CaffeBuildError, match=r"k.cu:1:10: .*im2col.cuh(.|\n)*A string has no folder"):
        load_inline("k", text, backends="host")


def test_a_path_that_is_no_file(tmp_path):
    with pytest.raises(CaffeValueError, match=r"cuda_source: .*gone.cu: No such file"):
        load_inline("k", tmp_path / "gone.cu")


def test_host_code_that_does_not_compile_is_left_out(project, cache):
    """A program around kernels, as projects have it: with cuDNN, and a function of another file."""
    written(
        project / "common.h",
        "#include <cudnn.h>\n#ifdef ENABLE_HALF\ntypedef half real;\n#else\ntypedef float real;\n#endif\n"
        "static cudnnHandle_t handle;\n"
        "void check(cudnnStatus_t status) { if (status != CUDNN_STATUS_SUCCESS) throw 1; }\n",
    )
    text = """#define ENABLE_HALF
#include "common.h"
__global__ void twice(const real* x, real* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hadd(x[i], x[i]);
}
void other(real*);
void run(const real* x, real* y, int n) {
  twice<<<(n + 31) / 32, 32>>>(x, y, n);
  other(y);
}
int main() { check(cudnnCreate(&handle)); run(nullptr, nullptr, 3); }
"""
    with pytest.warns(RuntimeWarning, match=r"left out: .*cudnn.h.*.*main \(line 12\).*run \(line 8\)"):
        module = load_inline("y", written(project / "y.cu", text), backends="host")
    x = torch.arange(100, dtype=torch.float16)
    y = torch.zeros_like(x)
    module.twice(x, y, 100)  # the grid is the launch's
    assert torch.equal(y, 2 * x)
    broken = written(project / "z.cu", text.replace("__hadd(x[i]", "__hadd(z[i]"))
    with pytest.raises(CaffeBuildError, match=r"z.cu:5:\d+: error: .z. was not declared"):
        load_inline("y", broken, backends="host")
