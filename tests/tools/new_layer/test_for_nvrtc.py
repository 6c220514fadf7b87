"""A string for NVRTC: which text it compiles. What it makes of that is in tests/loading/test_kernel_build.py."""

import re
from pathlib import Path

import pytest

from tools.new_layer import for_nvrtc
from tools.new_layer.for_nvrtc import NotForNvrtc, complete, prepare


@pytest.fixture
def prepared(tmp_path):
    def make(text: str, name: str = "k"):
        path = tmp_path / f"{name}.cu"
        path.write_text(text)
        return prepare(str(path), complete(str(path)))

    return make


TEMPLATE = """template <typename T> __global__ void scale(const int n, const T* x, T* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = x[i] * T(2); }
}
"""


def test_a_launcher_becomes_a_kernel_that_stores_its_launch(prepared):
    made = prepared(TEMPLATE)
    own, _, launchers = made.text.partition(for_nvrtc.MADE)
    assert (
        "<<<" not in launchers and "throw" not in launchers and "return cuffi::launch_status" not in launchers
    )
    assert 'extern "C" __global__ void k_scale(' in launchers
    wanted = "::cuffi::Packed<decltype(&scale<Dtype>)>::launch((16 * 16 + dtype), false, "
    assert wanted in launchers and "CUDA_VECTOR_LOOP" in own
    assert made.expressions == [(256, 1, "scale<float>"), (257, 1, "scale<double>")]
    assert list(made.functions) == ["k_scale"]


def test_each_instance_has_a_number(prepared):
    text = """template <typename T, typename I, int kTile, bool kFlag>
__global__ void take(const T* x, const I* at, T* y, int n) { y[0] = x[at[n % kTile]] * kFlag; }
void run(const float* x, const int* at, float* y, int n) {
  take<float, int, 8, true><<<n, 32>>>(x, at, y, n);
  take<float, int, 16, false><<<n, 32>>>(x, at, y, n);
}
"""
    made = prepared(text)
    numbers = [number for number, _, _ in made.expressions]
    names = [name for *_, name in made.expressions]
    assert len(set(numbers)) == len(set(names)) == len(names) and numbers == sorted(numbers)
    assert {re.sub(r"\s", "", name) for name in names} >= {
        "take<float,int,8,true>",
        "take<float,int,16,false>",
    } or all(name.startswith("take<") for name in names)
    for place in range(len(re.findall(r"::launch\(", made.text))):
        assert f"{16 + place}" in made.text


def test_two_launchers_keep_their_kernels_apart(prepared):
    made = prepared(TEMPLATE + TEMPLATE.replace("scale", "rescale"))
    assert [name for *_, name in made.expressions] == [
        "scale<float>",
        "scale<double>",
        "rescale<float>",
        "rescale<double>",
    ]
    assert "launch((16 * 16 + dtype)" in made.text and "launch((32 * 16 + dtype)" in made.text


def test_host_code_is_left_out_and_lines_stay(prepared):
    text = """#include <vector>
void host(std::vector<int>& all) {
  all.push_back(1);
}
int divup(int a, int b) { return below(a + b) / b; }
int below(int n) { return n - 1; }
__device__ float twice(float x) { return 2 * x; }
constexpr int kBlock = 32;
constexpr int half(int n) { return n / 2; }
__global__ void k(float* x, int n) { x[n] = twice(x[n]); }
struct Own { int n; int count() const { return n; } };
void run(float* x, int n) { k<<<divup(n, half(64)), kBlock>>>(x, n); }
"""
    own, _, launchers = prepared(text).text.partition(for_nvrtc.MADE)
    for name in ("host", "run"):
        assert f"void {name}(" not in own
    for name in ("__device__ float twice", "constexpr int half", "__global__ void k", "struct Own"):
        assert name in own
    if "divup(" in launchers:  # what a launch calls, and what that calls
        assert "int divup" in own and "int below" in own
    lines = own.split('#line 1 "')[1].split("\n")
    assert lines[10].startswith("__global__ void k(") and lines[7].startswith("__device__ float twice")


def test_variables_are_uploaded_by_the_launcher(prepared):
    text = """namespace own { __constant__ float weights[4]; }
__global__ void k(float* x) { x[0] = own::weights[1]; }
void run(float* x, const float* w) { cudaMemcpyToSymbol(own::weights, w, 16); k<<<1, 1>>>(x); }
"""
    made = prepared(text)
    assert made.symbols and made.symbols[0].endswith("own::weights")
    assert (
        "::cuffi::upload(" in made.text and "cudaMemcpyToSymbol" not in made.text.partition(for_nvrtc.MADE)[2]
    )


def test_a_cooperative_launch(prepared):
    text = """#include <cooperative_groups.h>
__global__ void k(float* x, int n) { cooperative_groups::this_grid().sync(); x[n] = 1; }
"""
    made = prepared(text)
    assert "::launch(16, true, dim3(" in made.text and "launch_cooperative" not in made.text


def test_functions_of_its_own_are_refused(prepared):
    with pytest.raises(NotForNvrtc, match="exports functions of its own"):
        prepared('extern "C" int f(float* x, void* stream) { return 0; }')


def test_local_headers_are_rewritten_beside_it(prepared, tmp_path):
    (tmp_path / "loop.cuh").write_text(TEMPLATE)
    made = prepared('#include "loop.cuh"\n__global__ void k(float* x) { x[0] = 1; }\n')
    assert "CUDA_VECTOR_LOOP" in "".join(made.headers.values()) or not made.headers
    assert Path(tmp_path, "loop.cuh").read_text() == TEMPLATE


@pytest.mark.parametrize(
    ("text", "first", "rest"),
    [
        ("a, b", "a", " b"),
        ("f(a, b), c", "f(a, b)", " c"),
        ("dim3{1, 2})", "dim3{1, 2}", ")"),
        ("a[b, c]", "a[b, c]", ""),
    ],
)
def test_the_first_argument(text, first, rest):
    assert for_nvrtc._first(text) == (first, rest)
