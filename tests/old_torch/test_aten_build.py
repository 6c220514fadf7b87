"""Which files and options a build of an extension has."""

import os
from pathlib import Path

import pytest
import torch
from support.typed import not_none
from support.workshop import CORE, ROOT

from cuffi.loading import recipe
from cuffi.old_torch import aten_build, cpp_extension
from cuffi.old_torch.aten_build import TorchExtension


def test_a_kernel_in_a_header_of_another_folder(extensions, tmp_path):
    for folder in ("src/gpu", "include/cuda"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "include" / "cuda" / "fill.cuh").write_text(
        "__global__ void fill(float* x, int n) {\n"
        "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] = i;\n}\n"
    )
    source = tmp_path / "src" / "gpu" / "k.cu"
    source.write_text(
        '#include <torch/extension.h>\n#include "cuda/fill.cuh"\n'
        "void run(torch::Tensor x) { fill<<<1, 32>>>(x.data_ptr<float>(), x.numel()); }\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }\n'
    )
    module = cpp_extension.load("fills", [source], extra_include_paths=[tmp_path / "include"])
    module.run(x := torch.zeros(5))
    assert x.tolist() == [0, 1, 2, 3, 4]


SCALE = """
#include <torch/extension.h>
#include "scale.h"
__global__ void scale(const float* x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = FACTOR * x[threadIdx.x];
}
at::Tensor scaled(at::Tensor x) {
  TORCH_CHECK(x.numel() < 33, "at most 32");
  auto y = at::empty_like(x);
  scale<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scaled", &scaled); }
"""


def test_a_folder_with_a_name_of_a_shell(session_cache, tmp_path, nvcc, monkeypatch):
    """nvcc starts the C++ compiler by a shell, and splits what it passes on at commas."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / 'their files, it\'s $(touch ran) `touch ran` "all"'
    (folder / "cuda").mkdir(parents=True)
    (folder / "cuda" / "scale.h").write_text("#define FACTOR 3\n")
    (folder / "cuda" / "scale.cu").write_text(SCALE)
    (folder / "none.cpp").write_text("")
    monkeypatch.setenv("CUFFI_CACHE", str(session_cache))
    monkeypatch.setenv("NVCC", nvcc)
    monkeypatch.setattr(recipe, "core_in", lambda cache: CORE.core)
    sources = [folder / "cuda" / "scale.cu", folder / "none.cpp"]
    module = cpp_extension.load(
        "scale_it", sources, extra_cuda_cflags=["-fmad=false"], backends=["host", "cuda"], arch="sm_90"
    )
    assert module.scaled(torch.ones(2)).tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="at most 32"):
        module.scaled(torch.ones(40))
    assert sorted(os.listdir(tmp_path)) == [folder.name]
    assert not list(session_cache.rglob("ran")) and not (ROOT / "ran").exists()


def test_an_extension_without_kernels_needs_no_library_for_a_gpu(extensions, nvcc, monkeypatch):
    """torch's operations do what its tensors on a GPU need."""
    monkeypatch.setenv("NVCC", nvcc)
    module = cpp_extension.load_inline(
        "plain", "int seven() { return 7; }", functions="seven", backends="cuda"
    )
    assert module.seven() == 7
    with pytest.raises(ValueError, match=r"backends: expected some of .*, got 'gpu'"):
        cpp_extension.load_inline("plain", "int seven() { return 7; }", functions="seven", backends="gpu")


def test_a_cache_in_a_path_that_make_cannot_work_in(session_cache, tmp_path, monkeypatch):
    monkeypatch.setenv("CUFFI_CACHE", str(tmp_path / "a cache"))
    monkeypatch.setenv("NVCC", "")
    monkeypatch.setattr(recipe, "core_in", lambda cache: CORE.core)
    module = cpp_extension.load_inline("cached", "int seven() { return 7; }", functions="seven")
    assert module.seven() == 7 and (tmp_path / "a cache") in Path(not_none(module.__file__)).parents


def test_each_file_has_its_own_constants(extensions, tmp_path):
    text = """#include <torch/extension.h>
__constant__ float factors[2] = {1, FACTOR};
__global__ void NAME_kernel(float* x) {
  __shared__ struct Both { float low, high; } both[1];
  if (threadIdx.x == 0) both->low = factors[0], both->high = factors[1];
  __syncthreads();
  x[threadIdx.x] *= threadIdx.x ? both->high : both->low;
}
void NAME(torch::Tensor x) { NAME_kernel<<<1, 2>>>(x.data_ptr<float>()); }
"""
    for name, factor in (("twice", "2"), ("thrice", "3")):
        (tmp_path / f"{name}.cu").write_text(text.replace("FACTOR", factor).replace("NAME", name))
    (tmp_path / "bind.cpp").write_text("""#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#ifdef WITH_CUDA
#error torch leaves this macro to the extension
#endif
inline float min(float a, float b) { return a > b ? b : a; }  // nvcc's are not in a .cpp
inline float least(float x) { return min(x, 7); }
void twice(torch::Tensor x);
void thrice(torch::Tensor x);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("twice", &twice), m.def("thrice", &thrice), m.def("least", [] { return least(9); });
}
""")
    module = cpp_extension.load("factors", [tmp_path / f for f in ("bind.cpp", "twice.cu", "thrice.cu")])
    x = torch.ones(2)
    module.twice(x), module.thrice(x)
    assert x.tolist() == [1, 6] and module.least() == 7


def test_a_kernel_that_was_not_rewritten_is_an_error(extensions, tmp_path):
    """Its body would run once, as a plain function."""
    (tmp_path / "k.cuh").write_text("__global__ void mark(float* x) { x[threadIdx.x] = 1; }\n")
    text = f'#include "{tmp_path}/k.cuh"\n#include <torch/extension.h>\n'
    text += "void run(torch::Tensor x) { mark<<<1, 32>>>(x.data_ptr<float>()); }\n"
    module = cpp_extension.load_inline("marks", "void run(torch::Tensor x);", text, functions="run")
    with pytest.raises(
        RuntimeError, match=r"run\(\): a kernel was launched that is not rewritten for the host"
    ):
        module.run(torch.zeros(32))


def test_options(tmp_path):
    (tmp_path / "a.cpp").write_text("")
    (tmp_path / "b.cu").write_text("")
    cxx = ["-O3", "-DA", "-D", "B=1", "-Wall", "-fopenmp", "-std=c++20", "-include", "x.h", "-UC", "-Iinc"]
    cxx.append("-I/usr/include")
    made = TorchExtension(
        "p.x", [tmp_path / "a.cpp", tmp_path / "b.cu"], cxx, ["-arch=sm_70", "-use_fast_math", "-DK"]
    )
    job = made._job({}, ["half h;", "PyInit_x", "#include <Python.h>"])
    assert job["cxx"] == ["-DA", "-DB=1", "-fopenmp", "-include", "x.h", "-UC"] and job["std"] == "20"
    assert job["cuda"] == ["-DK"] and job["nvcc"] == ["-use_fast_math"] and job["link"] == ["-fopenmp"]
    assert made.folders == [Path.cwd() / "inc"] and job["module"] == "x"
    for flag in ("-DTORCH_EXTENSION_NAME=x", "-DATEN_WITH_HALF", "-DPyInit_x=aten_own_init"):
        assert flag in job["flags"]


@pytest.mark.parametrize(("listed", "found"), [("9.0", "sm_90"), ("8.0;8.6+PTX", "sm_80 sm_86"), ("", None)])
def test_architectures(listed, found, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", listed)
    assert aten_build.arch_listed() == found


def test_what_is_precompiled_changes_no_meaning(extensions, tmp_path):
    """A file without torch's headers has none of their names, and options and macros hold for the headers, too."""
    (tmp_path / "plain.cpp").write_text("""#include <array>
using namespace std;
struct mutex { int n = 3; };
int optional = 4;  // these names are in headers of torch's headers
int sum() { return mutex().n + optional; }
""")
    (tmp_path / "near.h").write_text("#include <torch/extension.h>\n")
    (tmp_path / "bind.cpp").write_text("""#include "near.h"
int sum();
std::vector<long> facts() {
  bool ran = false;
  assert(ran = true);
  return {ran, __cplusplus / 100, sum()};
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("facts", &facts); }
""")
    for number, (flags, wanted) in enumerate(
        (([], [1, 2017, 7]), (["-DNDEBUG"], [0, 2017, 7]), (["-std=c++20"], [1, 2020, 7]))
    ):
        sources = [tmp_path / "bind.cpp", tmp_path / "plain.cpp"]
        assert cpp_extension.load(f"first_{number}", sources, extra_cflags=flags).facts() == wanted
