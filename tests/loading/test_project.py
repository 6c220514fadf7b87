"""load_inline of a file that needs more of its project: other files, folders of headers, headers that macros name."""

from pathlib import Path

import pytest
import torch

from cuffi import CaffeBuildError, CaffeTypeError, CaffeValueError, load_inline

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


# Device code of another file: it reads what host code fills, meets the other threads, asks for its thread.
HEADER_OF_PARTS = """
extern __constant__ float w[2];
__device__ float scaled(float x); __device__ float reversed(float x); __device__ float total(float x);
__device__ int who(); __device__ float grown(float x); __device__ float hidden(float x);
extern __device__ int hits;
"""
PARTS = """
#include "parts.cuh"
__constant__ float w[2]; __device__ float gain; __device__ int hits; static __constant__ float own;
__device__ float scaled(float x) { atomicAdd(&hits, 1); return x * w[threadIdx.x % 2]; }
__device__ float grown(float x) { return gain * x; }
__device__ float hidden(float x) { return own * x; }
void set(float g) { cudaMemcpyToSymbol(gain, &g, 4); }
__device__ int who() { return threadIdx.x + 1000 * blockIdx.x; }
__device__ float reversed(float x) {
  extern __shared__ float line[];
  line[threadIdx.x] = x;
  __syncthreads();
  return line[blockDim.x - 1 - threadIdx.x];
}
__device__ float total(float x) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, x);
  __syncthreads();
  return sum;
}
"""
CALLS = """
#include "parts.cuh"
__global__ void scales(const float* x, float* y) { y[threadIdx.x] = scaled(x[threadIdx.x]) + w[0]; }
__global__ void grows(const float* x, float* y) { y[threadIdx.x] = grown(x[threadIdx.x]); }
__global__ void reverses(const float* x, float* y) { y[threadIdx.x] = reversed(x[threadIdx.x]); }
__global__ void totals(const float* x, float* y) { y[threadIdx.x] = total(x[threadIdx.x]); }
__global__ void tells(int* y, int n) { CUDA_KERNEL_LOOP(i, n) { y[i] = who(); } }
__global__ void counts(int* y) { *y = hits; hits = 0; }
__global__ void hides(float* y) { *y = hidden(*y); }
"""


@pytest.fixture
def parts(project):
    project("parts.cuh", HEADER_OF_PARTS)
    return {"cuda_source": project("k.cu", CALLS), "sources": [project("lib/parts.cu", PARTS)]}


def test_device_code_of_another_file(parts):
    """Its threads and its variables are those of the kernel that calls it."""
    with pytest.warns(RuntimeWarning) as told:
        layer = load_inline("m", backends="host", **parts)
    said = " ".join(str(warning.message) for warning in told)
    assert "hides calls a function of another file that reads own, which host code fills in that file" in said
    x, y, w, one = torch.arange(8.0), torch.zeros(8), torch.tensor([2.0, 3]), (1, 1, 1, 8, 1, 1)
    layer.scales(x, y, w, *one)
    assert y.tolist() == (x * w.repeat(4) + 2).tolist()
    layer.grows(x, y, torch.tensor([1.5]), *one)
    assert y.tolist() == (1.5 * x).tolist()
    layer.reverses(x, y, *one, 32)
    assert y.tolist() == x.flip(0).tolist()
    layer.totals(x, y, *one)
    assert y.tolist() == [28] * 8
    numbers = torch.zeros(8, dtype=torch.int32)
    layer.tells(numbers, 8, 2, 1, 1, 4, 1, 1)
    assert numbers.tolist() == [0, 1, 2, 3, 1000, 1001, 1002, 1003]
    layer.counts(numbers, 1, 1, 1, 1, 1, 1)
    assert numbers[0] == 8


def test_nvcc_links_device_code_of_another_file(parts, monkeypatch, nvcc):
    """For more than one GPU, too; ptxas told of an unresolved function."""
    monkeypatch.setenv("NVCC", nvcc)
    with pytest.warns(RuntimeWarning):
        layer = load_inline("m", arch="sm_80 sm_90", backends="cuda", **parts)
    assert layer.layer.backends() == ["cuda"] and "m_reverses" in dir(layer)


def test_a_variable_that_no_file_defines():
    """nvcc took the declaration for a definition: the kernel read 0."""
    text = "extern __device__ int none;\n__global__ void k(int* y) { *y = none; }\n"
    with pytest.raises(CaffeBuildError, match="k reads none, which no file defines"):
        load_inline("m", text, backends="host")


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


HEADS = """
#if defined(CUDA)
#if defined(FAST)
__global__ void fast
#else
__global__ void slow
#endif
#else
void plain
#endif
  (float* x, int n) {
  int i = threadIdx.x;
#ifdef FAST
  if (i < n) x[i] *= 3;
#else
  if (i < n) x[i] *= 2;
#endif
}
"""


@pytest.mark.parametrize(
    ("macros", "name", "times"), [({"CUDA": ""}, "slow", 2), ({"CUDA": 1, "FAST": 0}, "fast", 3)]
)
def test_a_kernel_whose_name_an_if_chooses(macros, name, times):
    module, x = load_inline("m", HEADS, backends="host", macros=macros), torch.ones(4)
    assert dir(module) == ["layer", f"m_{name}"]
    getattr(module, name)(x, 3, 1, 1, 1, 4, 1, 1)
    assert x.tolist() == [times] * 3 + [1]


def test_a_kernel_that_every_if_leaves_out():
    with pytest.raises(CaffeBuildError, match=r"its #if leave out .* macros=\{"):
        load_inline("m", HEADS, backends="host")


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


def test_the_options_of_a_makefile(project, tmp_path):
    """C++20, a macro and a folder of headers; a GPU's architecture changes nothing here."""
    file = project(
        "repository/k.cu",
        "#include <concepts>\n#include <deep/q.h>\n"
        "template <std::integral T> __global__ void add(T* y) { y[threadIdx.x] += Q * N; }\n"
        "void run(int* y) { add<<<1, 2>>>(y); }\n",
    )
    project("library/deep/q.h", "#define Q 11\n")
    flags = ["-std=c++20", "-DN=3", f"-I{tmp_path / 'library'}", "-O3", "-arch=sm_80", "-Xcompiler", "-Wall"]
    y = torch.ones(2, dtype=torch.int32)
    load_inline("m", file, backends="host", flags=flags).add(y)
    assert y.tolist() == [34, 34]


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--what"], "flags: --what: no option that is known here"),
        (["-Xcompiler", "-fopenmp"], "flags: -fopenmp is for host code"),
        (["-lfoo"], "flags: -lfoo is for host code"),
    ],
)
def test_options_that_are_not_for_kernels(flags, why):
    with pytest.raises(CaffeValueError, match=why):
        load_inline("m", "__global__ void up(float* x) {}", backends="host", flags=flags)
