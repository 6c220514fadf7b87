"""What the device code of a file needs of other files."""

import pytest

from tools.cuda.across import foreign_functions, foreign_variables, needs_others
from tools.cuda.analysis import Unit
from tools.cuda.source import Source

DECLARED = """
#define HD __host__ __device__
extern __constant__ float w[4], v;
__device__ extern int hits;
HD float f(float x, int i);
struct A { __device__ float g() const; __device__ A() = default; virtual __device__ int p() = 0; };
__device__ float own(float); __device__ float own(float x) { return x; }
extern __constant__ int here = 3; __constant__ float q[3] = {1, 2, v};
namespace x { extern __managed__ int m; }
__global__ void k(float*);
float host(float);
"""


def test_what_a_file_declares_alone():
    sources = [Source(DECLARED, "a.cu")]
    assert foreign_functions(sources) == {"f", "g"}
    assert foreign_variables(sources) == {"w", "v", "hits", "m"}
    assert foreign_variables([*sources, Source("__constant__ float w[2 + 2], v = 3;", "a.h")]) == {
        "hits",
        "m",
    }


@pytest.mark.parametrize(
    ("other", "needs"),
    [
        ("HD float f(float x, int i) { return x; }", True),
        ("__device__ float A::g() const { return 1; }", True),
        ("__device__ int hits;", True),
        ("static __device__ int other;", False),
        ("__global__ void k(float*) {}", False),
        ("float host(float x) { return x; }", False),
        ("__device__ float own(float);", True),
    ],
)
def test_two_files(other, needs):
    assert needs_others([[Source(DECLARED, "a.cu")], [Source(other, "b.cu")]]) is needs
    assert needs_others([[Source(other, "b.cu")], [Source(DECLARED, "a.cu")]]) is needs
    assert not needs_others([[Source(DECLARED + other, "a.cu")]])


@pytest.mark.parametrize(("body", "mode"), [("y[i] = f(i);", "kThreads"), ("y[i] = g(i);", "kRange")])
def test_what_is_declared_alone_may_wait_and_ask_for_its_thread(body, mode):
    text = "__device__ float f(int);\n__device__ float g(int); __device__ float g(int i) { return i; }\n"
    text += f"__global__ void k(float* y, int n) {{ CUDA_KERNEL_LOOP(i, n) {{ {body} }} }}"
    unit = Unit(text, "a.cu")
    assert [kernel.mode for kernel in unit.kernels(unit.main)] == [mode]
