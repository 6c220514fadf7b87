"""Kernels by NVRTC, as far as no GPU is needed: what is compiled, what each launcher computes, and what is chosen."""

import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from support.typed import not_none

import cuffi
from cuffi.loading import kernel_build, load_inline, loaded, nvrtc, toolkit
from cuffi.runtime import extension
from cuffi.runtime.kernels import KernelLibrary

needs_nvrtc = pytest.mark.skipif(not nvrtc.candidates(), reason="needs NVRTC")


@pytest.fixture(autouse=True)
def _without_nvcc(own_cache, monkeypatch):
    monkeypatch.setenv("NVCC", "")
    monkeypatch.delenv("CUFFI_CUDA", raising=False)


def build(name: str, text: str, **more):
    loaded._imported.clear()
    module = load_inline.load_inline(name, text, backends="cuda", arch="sm_90", **more)
    library = KernelLibrary(name, module.layer.folder, "cuda")
    return library, json.loads((module.layer.folder / "_cuda.kernels").read_text())


def launch(library: KernelLibrary, function: str, values: dict):
    """(why, problem, the kernel's C++ number, grid, block, shared, arguments as bytes, offsets)"""
    edge, words = extension.extension("test"), []
    for kind, name in library.signatures[function]["parameters"]:
        value = values.get(name, 0)
        words.append(
            struct.unpack("<q", struct.pack("<d", value))[0] if kind in ("float", "double") else int(value)
        )
    return edge.compute(library.runner(function), tuple(words))


def arguments(found, formats: str) -> tuple:
    return tuple(
        struct.unpack_from(f"<{letter}", found[6], at)[0]
        for letter, at in zip(formats, found[7], strict=True)
    )


def name_of(described: dict, found) -> str:
    return next(name for number, _, name in described["kernels"] if number == found[2])


RELU6 = """template <typename Dtype> __global__ void relu6(const int n, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, n) { out[i] = min(max(in[i], Dtype(0)), Dtype(6)); } }"""


@needs_nvrtc
@pytest.mark.parametrize(("dtype", "mangled", "size"), [(0, "If", 4), (1, "Id", 8)])
@pytest.mark.parametrize("n", [1, 100, 512, 513, 10**6, 2**31 - 1])
def test_a_template_and_its_geometry(dtype, mangled, size, n):
    library, described = build("relu6", RELU6)
    found = launch(library, "relu6_kernel", {"n": n, "in_": 4096, "out": 8192, "dtype": dtype})
    assert found[:2] == (None, 0) and mangled in name_of(described, found)
    # Vector loops (include/caffe_vector_loop.h): below 2 MiB a thread for each element, else for 32 bytes.
    each = 1 if n * size < 2**21 else 16 // size * 2
    assert found[3:6] == ((math.ceil(n / (each * 128)), 1, 1), (128, 1, 1), 0)
    assert arguments(found, "iqq") == (n, 4096, 8192)


@needs_nvrtc
def test_what_a_launcher_refuses():
    library, _ = build("relu6", RELU6)
    why, problem, *_ = launch(library, "relu6_kernel", {"n": 2**31, "dtype": 0})
    assert (why, problem) == (None, 1)  # CAFFE_NO_INT
    _, problem, *_ = launch(library, "relu6_kernel", {"n": 3, "dtype": 2})
    assert problem == 4  # CAFFE_NO_DTYPE


GEOMETRY = """struct P { float scale; char letter; int add[2]; double last; };
enum Mode { kPlain = 3, kTwice = 8 };
namespace own { constexpr int kTile = 64; }
using own::kTile;
#define DIVUP(a, b) (((a) + (b) - 1) / (b))
template <int kWidth, bool kSquare>
__global__ void all(const float* x, short* y, int n, P p, float4 v, Mode mode, bool flag, unsigned char c) {}
void run(const float* x, short* y, int n, P p, float4 v, Mode mode) {
  dim3 grid(DIVUP(n, kTile), 3), block(16, n > 100 ? 2 : 1);
  all<16, true><<<grid, block, n * sizeof(float) / 2>>>(x, y, n, p, v, mode, true, 1);
  all<32, false><<<grid, block, n * sizeof(float) / 2>>>(x, y, n, p, v, mode, true, 1);
}
"""


@needs_nvrtc
@pytest.mark.parametrize("n", [1, 64, 65, 100, 101, 100000])
@pytest.mark.parametrize(
    ("width", "square", "mangled"), [(16, 1, "Li16ELb1"), (32, 0, "Li32ELb0"), (16, 0, "Li16ELb0")]
)
def test_structs_vectors_enums_and_instances(n, width, square, mangled):
    library, described = build("every", GEOMETRY)
    values = {
        "x": 4096, "y": 8192, "n": n, "p_scale": 0.5, "p_letter": -5, "p_add_0": 7, "p_add_1": -3, "p_last": 0.25,
        "v_x": 1.0, "v_y": 2.0, "v_z": 3.0, "v_w": 4.0, "mode": 8, "flag": 1, "c": 200, "kWidth": width,
        "kSquare": square,
    }  # fmt: skip
    found = launch(library, "every_all", values)
    assert found[:2] == (None, 0) and mangled in name_of(described, found)
    assert found[3:6] == ((-(-n // 64), 3, 1), (16, 2 if n > 100 else 1, 1), n * 4 // 2)
    content, offsets = found[6], found[7]
    assert offsets == (0, 8, 16, 24, 48, 64, 68, 69)
    assert struct.unpack_from("<qqi", content) == (4096, 8192, n)
    assert struct.unpack_from("<fb", content, 24) == (0.5, -5) and struct.unpack_from("<ii", content, 32) == (
        7,
        -3,
    )
    assert struct.unpack_from("<d", content, 40) == (0.25,)
    assert struct.unpack_from("<4f", content, 48) == (1.0, 2.0, 3.0, 4.0)
    assert struct.unpack_from("<iBB", content, 64) == (8, 1, 200)


@needs_nvrtc
def test_no_instance_is_a_problem():
    library, _ = build("every", GEOMETRY)
    assert launch(library, "every_all", {"n": 5, "kWidth": 17})[1] == 5  # CAFFE_NO_INSTANCE


MEAN = """__global__ void part(const float* x, int n) {}
void run(const float* x, int n) { part<<<(int)ceil(n / 100.0), 128, (int)ceilf(n * 0.3f) * 4>>>(x, n); }"""


@needs_nvrtc
@pytest.mark.parametrize("n", [0, 1, 99, 100, 101, 12345, 16777217])
def test_real_numbers_as_the_hosts_compiler_computes_them(n):
    library, _ = build("means", MEAN)
    found = launch(library, "means_part", {"x": 4096, "n": n})
    single = struct.unpack("<f", struct.pack("<f", n))[0] * struct.unpack("<f", struct.pack("<f", 0.3))[0]
    shared = math.ceil(struct.unpack("<f", struct.pack("<f", single))[0]) * 4
    assert (found[3][0], found[5]) == (math.ceil(n / 100.0), shared)


SYMBOLS = """__constant__ float weights[4];
namespace own { __device__ float* table; }
using own::table;
__global__ void reads(float* x, int n) { x[threadIdx.x] = weights[threadIdx.x % 4] + table[threadIdx.x]; }
void run(float* x, int n, const float* w, float* t) {
  cudaMemcpyToSymbol(weights, w, sizeof(weights));
  cudaMemcpyToSymbol(own::table, &t, sizeof(t));
  reads<<<1, n>>>(x, n);
}"""


@needs_nvrtc
def test_variables_that_the_host_code_fills():
    library, described = build("symbols", SYMBOLS)
    (program,) = described["programs"].values()
    assert "weights" in program["symbols"] and len(program["symbols"]) == 2
    found = launch(library, "symbols_reads", {"x": 4096, "n": 32, "weights_values": 512, "table": 1024})
    assert found[:2] == (None, 0)


HOST_CODE = """#include <vector>
#include <string>
#include <iostream>
#include <cuda_runtime.h>
static std::vector<int> sizes;
static std::string said = "x";
inline int divup(int a, int b) { return (a + b - 1) / b; }
template <typename T> struct Holder { T* data; std::vector<T> all; Holder() : data(nullptr) {} };
__device__ float helper(float v) { return v + 1; }
__global__ void adds(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = helper(x[i]); }
int main() {
  std::vector<float> host(10);
  float* x; cudaMalloc(&x, 40);
  adds<<<divup(10, 32), 32>>>(x, 10);
  std::cout << host[0] << said << std::endl;
}
"""


@needs_nvrtc
def test_host_code_is_left_out():
    with pytest.warns(RuntimeWarning, match="host code that does not compile here is left out"):
        library, _ = build("adds", HOST_CODE)
    assert list(library.signatures) == ["adds_kernel"]


OF_LIBRARIES = """#include <bits/stdc++.h>
#include <thread>
#include <unordered_map>
#include <cublas_v2.h>
#include <cudnn.h>
struct Job { cublasHandle_t handle; cudaDataType type; std::mutex lock; std::vector<unsigned char> x; std::string y; };
std::vector<float> differences(std::vector<float> const& values, const std::map<int, std::string>& names);
void say(std::ostream& out, std::function<void(int)> then);
__global__ void adds(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 1; }
void check(cudnnStatus_t status) { if (status != CUDNN_STATUS_SUCCESS) abort(); }
int main() { float* x; cudaMalloc(&x, 40); adds<<<1, 32>>>(x, 10); check(cudnnCreate(0)); }
"""


@needs_nvrtc
def test_what_only_host_code_needs():
    """Headers of C++ and of CUDA's libraries, also where these are installed; declarations and structs of theirs."""
    library, _ = build("adds", OF_LIBRARIES)
    assert list(library.signatures) == ["adds_kernel"]


@needs_nvrtc
def test_errors_have_the_strings_lines():
    with pytest.raises(cuffi.CaffeBuildError) as raised:
        build("wrong", "__global__ void wrong(float* x) {\n  x[0] = undefined_name;\n}")
    assert "wrong.cu(2): error" in str(raised.value) and "undefined_name" in str(raised.value)
    assert str(raised.value).startswith("wrong does not build by NVRTC")


@needs_nvrtc
def test_functions_of_its_own_need_nvcc():
    text = 'extern "C" int f(float* x, void* stream) { return 0; }'
    with pytest.raises(cuffi.CaffeBuildError, match=r"f: NVRTC cannot build it: .*extern \"C\".*nvcc can"):
        build("f", text)


@needs_nvrtc
def test_nothing_is_started_and_the_cache_has_it(monkeypatch):
    """A new string: no make, no compiler, no Python; and a second time no NVRTC."""

    def refuse(*arguments, **options):
        raise AssertionError(f"a process was started: {arguments}")

    for module, starter in ((subprocess, "Popen"), (os, "posix_spawn"), (os, "fork"), (os, "system")):
        monkeypatch.setattr(module, starter, refuse)
    monkeypatch.setenv("PATH", "/nonexistent")
    build("relu6", RELU6)
    monkeypatch.setattr(nvrtc, "find", lambda: pytest.fail("NVRTC was asked"))
    build("relu6", RELU6)


@needs_nvrtc
def test_which_architectures():
    known = not_none(nvrtc.find()).architectures()
    assert kernel_build.targets("", known) == [f"compute_{known[0]}"]
    assert kernel_build.targets("sm_90 sm_80 sm_90", known) == ["sm_80", "sm_90"]
    assert kernel_build.targets("sm_999", known) == [f"compute_{known[-1]}"]
    with pytest.raises(cuffi.CaffeValueError, match="this NVRTC knows"):
        kernel_build.targets("sm_10", known)
    with pytest.raises(cuffi.CaffeValueError, match="expected architectures"):
        kernel_build.targets("volta", known)


@needs_nvrtc
def test_two_architectures_and_their_ptx():
    module = load_inline.load_inline("relu6", RELU6, backends="cuda", arch="sm_80 sm_90")
    there = {path.name for path in module.layer.folder.iterdir()}
    assert {"_cuda.sm_80.cubin", "_cuda.sm_90.cubin", "_cuda.compute_90.ptx", "_cuda.kernels"} <= there


@pytest.mark.parametrize(
    ("word", "backends", "has_gpu", "nvcc", "nvrtc_there", "expected"),
    [
        ("", "cuda", True, "nvcc", True, True),
        ("", "cuda", False, "nvcc", True, True),
        ("nvcc", "cuda", True, "nvcc", True, False),
        ("", None, True, "nvcc", True, False),
        ("", None, True, "", True, True),
        ("", None, False, "", True, False),
        ("", ("host", "cuda"), True, "nvcc", True, False),
        ("", ("host", "cuda"), True, "", True, True),
        ("nvrtc", None, True, "nvcc", True, True),
        ("nvrtc", "host", True, "nvcc", True, False),
        ("", "cuda", True, "nvcc", False, False),
    ],
)
def test_what_chooses_nvrtc(monkeypatch, word, backends, has_gpu, nvcc, nvrtc_there, expected):
    monkeypatch.setenv(kernel_build.VARIABLE, word)
    monkeypatch.setattr(toolkit, "find_nvcc", lambda: nvcc)
    monkeypatch.setattr(nvrtc, "candidates", lambda: [Path("/x/libnvrtc.so.13")] if nvrtc_there else [])
    assert kernel_build.compiles(backends, has_gpu) == expected


def test_a_choice_that_cannot_be_met(monkeypatch):
    monkeypatch.setattr(nvrtc, "candidates", lambda: [])
    monkeypatch.setenv(kernel_build.VARIABLE, "nvrtc")
    with pytest.raises(cuffi.CaffeRuntimeError, match="CUFFI_CUDA=nvrtc: there is no NVRTC"):
        kernel_build.compiles("cuda", True)
    monkeypatch.setenv(kernel_build.VARIABLE, "gcc")
    with pytest.raises(cuffi.CaffeValueError, match="CUFFI_CUDA: expected nvcc or nvrtc, got 'gcc'"):
        kernel_build.compiles("cuda", True)


def test_where_libraries_are_looked_for(monkeypatch, tmp_path):
    for place in ("nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cu13/lib/libnvrtc-builtins.so.13.0",
                  "nvidia/cu13/lib/libnvrtc.alt.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"):  # fmt: skip
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    monkeypatch.delenv(nvrtc.VARIABLE, raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    found = [path.name for path in nvrtc.candidates() if tmp_path in path.parents]
    assert found == ["libnvrtc.so.13", "libnvrtc.so.12"]
    monkeypatch.setenv(nvrtc.VARIABLE, "/elsewhere/libnvrtc.so")
    assert nvrtc.candidates() == [Path("/elsewhere/libnvrtc.so")]
