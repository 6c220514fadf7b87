"""load_inline of a file that needs more of its project: other files, folders of headers, headers that macros name."""

from pathlib import Path

import pytest
import torch

from cuffi import CaffeBuildError, CaffeTypeError, load_inline

pytestmark = pytest.mark.usefixtures("cache")

HEADER = """
#define N 2
extern __constant__ float scale[N];
extern __constant__ long* steps;
namespace of { extern __constant__ int one; }
__device__ float other(float);
"""
KERNELS = """
#include "common.cuh"
__global__ void uses(float* y) { y[threadIdx.x] = scale[threadIdx.x] * steps[threadIdx.x] + of::one; }
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / ".git").mkdir()

    def written(place: str, text: str) -> Path:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
        return tmp_path / place

    written("include/common.cuh", HEADER)
    return written


def filled(layer) -> list[float]:
    y = torch.zeros(2)
    one = torch.tensor([7], dtype=torch.int32)
    layer.uses(y, one, torch.tensor([0.5, 2]), torch.tensor([4, 5]), 1, 1, 1, 2, 1, 1)
    return y.tolist()


def test_constants_of_another_file(project):
    """A launcher takes their values, a pointer's as a tensor."""
    layer = load_inline("m", project("src/k.cu", KERNELS), backends="host")
    assert filled(layer) == [9, 17]


def test_nvcc_takes_the_declarations_for_definitions(project, monkeypatch, nvcc):
    """It refused those that the host has in the launchers' text. A call for a GPU says that there is no such symbol."""
    monkeypatch.setenv("NVCC", nvcc)
    layer = load_inline("m", project("src/k.cu", KERNELS), arch="sm_80", backends="cuda")
    assert layer.layer.backends() == ["cuda"]


def test_functions_of_another_file(project):
    text = KERNELS + "__global__ void calls(float* y) { y[threadIdx.x] = other(y[threadIdx.x]); }\n"
    file = project("src/k.cu", text)
    with pytest.raises(CaffeBuildError, match=r"undefined reference to `other\(float\)'[^$]*sources=\[...\]"):
        load_inline("m", file, backends="host")
    own = '#include "common.cuh"\n__constant__ float scale[N];\nnamespace of { __constant__ int one = 3; }\n'
    own += "static int factor = 6;\n__device__ float other(float x) { return factor * x; }\n"
    layer = load_inline("m", file, backends="host", sources=[project("lib/k.cu", own)])
    y = torch.tensor([1.0, 2.0])
    layer.calls(y, 1, 1, 1, 2, 1, 1)
    assert y.tolist() == [6, 12]
    assert filled(layer) == [9, 17]


def test_a_header_that_a_macro_names(project):
    project("cases/flow/case.h", "#define Q 5\n")
    text = "#define CASE flow\n#define HASH(a) #a\n#define STR(a) HASH(a)\n#define FILE_ STR(cases/CASE/case.h)\n"
    project("include/case.h", text)
    text = '#include "case.h"\n#include FILE_ // the case\n'
    text += "__global__ void k(int* y) { *y = Q; }\n"
    y = torch.zeros(1, dtype=torch.int32)
    load_inline("m", project("k.cu", text), backends="host").k(y, 1, 1, 1, 1, 1, 1)
    assert y.item() == 5


def test_a_header_that_a_macro_with_two_meanings_names(project):
    project("a.h", "#define Q 5\n")
    project("b.h", "#define Q 6\n")
    text = '#ifdef B\n#define FILE_ "b.h"\n#else\n#define FILE_ "a.h"\n#endif\n#include FILE_\n'
    with pytest.raises(CaffeBuildError, match="No such file"):
        load_inline("m", project("k.cu", text + "__global__ void k(int* y) { *y = Q; }\n"), backends="host")


def test_a_given_macro_names_another_header_than_the_file(project):
    project("a.h", "#define Q 5\n")
    project("b.h", "#define Q 6\n")
    text = (
        '#ifndef FILE_\n#define FILE_ "a.h"\n#endif\n#include FILE_\n__global__ void k(int* y) { *y = Q; }\n'
    )
    y = torch.zeros(1, dtype=torch.int32)
    for macros, expected in (({}, 5), ({"FILE_": '"b.h"'}, 6)):
        module = load_inline("m", project("k.cu", text), backends="host", macros=macros)
        module.k(y, 1, 1, 1, 1, 1, 1)
        assert y.item() == expected


def test_folders_of_headers(project, tmp_path):
    project("repository/.git/x", "")
    file = project("repository/k.cu", "#include <deep/q.h>\n__global__ void k(int* y) { *y = Q; }\n")
    project("library/deep/q.h", '#include "r.h"\n')
    project("library/deep/r.h", "#define Q 11\n")
    with pytest.raises(CaffeBuildError, match=r"deep/q\.h: No such file"):
        load_inline("m", file, backends="host")
    y = torch.zeros(1, dtype=torch.int32)
    load_inline("m", file, backends="host", include_dirs=[tmp_path / "library"]).k(y, 1, 1, 1, 1, 1, 1)
    assert y.item() == 11


@pytest.mark.parametrize("given", [{"include_dirs": [3]}, {"sources": [None]}, {"sources": ["a.cu"]}])
def test_paths_that_are_none(given):
    with pytest.raises(CaffeTypeError, match=r"load_inline: (include_dirs|sources)"):
        load_inline("m", "__global__ void up(float* x) {}", backends="host", **given)
