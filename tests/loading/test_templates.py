"""load_inline of templates: the types that a file shows, by its launches, its instantiations and its pointers."""

import pytest
import torch

from cuffi import CaffeBuildError, CaffeRuntimeError, CaffeTypeError, load_inline

pytestmark = pytest.mark.usefixtures("cache")

BODY = """
template <typename T> __global__ void scale(const T* a, T* o, T by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) o[i] = a[i] * by;
}
"""


def test_int_beside_float():
    """By the declarations of a template's callers."""
    host = """
    template <typename T> void run(T* a, T* o, int n) { scale<<<(n + 31) / 32, 32>>>(a, o, (T)2, n); }
    int main() { int *a, *b; float *x = 0, *y; run(a, b, 8); run<float>(x, y, 8); }
    """
    scale = load_inline("m", BODY + host, backends="host").scale
    for dtype in (torch.float32, torch.float64, torch.int32):
        a = torch.arange(50).to(dtype)
        o = torch.zeros_like(a)
        scale(a, o, -3, 50)
        assert torch.equal(o, a * -3)
    with pytest.raises(
        CaffeTypeError, match=r"a: expected a tensor of float32, float64, int32 \(its template"
    ):
        scale(a.half(), o.half(), 1, 50)
    scale(a, o, -(2**31), 1)
    # Twice: a launch whose argument throws leaves nothing behind.
    for bad in (2.5, 2.0**31, float("nan"), float("inf"), 2.5):
        with pytest.raises(CaffeRuntimeError, match=r"by: .* is no number of the tensors' type"):
            scale(a, o, bad, 50)
    scale(a, o, 2, 50)
    assert torch.equal(o, a * 2)


def test_explicit_instantiations():
    text = BODY + "".join(
        f"template __global__ void scale<{t}>(const {t}*, {t}*, {t}, int);\n"
        for t in ("short", "float", "unsigned char", "long long")
    )
    scale = load_inline("m", text, backends="host").scale
    geometry = (1, 1, 1, 64, 1, 1)
    for dtype in (torch.float32, torch.int16, torch.uint8, torch.int64):
        a = torch.arange(50).to(dtype)
        o = torch.zeros_like(a)
        scale(a, o, 3, 50, *geometry)
        assert torch.equal(o, a * 3)
    with pytest.raises(CaffeRuntimeError, match="by: 18014398509481984"):  # a double may not hold it
        scale(a, o, 2**54, 50, *geometry)


def test_one_whole_type_is_the_kernels():
    host = "void go(int n) { unsigned char *p = 0, *q; scale<<<1, 64>>>(p, q + 2, (unsigned char)2, n); }"
    scale = load_inline("m", BODY + host, backends="host").scale
    a = torch.arange(50).byte()
    o = torch.zeros_like(a)
    scale(a, o, 2, 50)
    assert torch.equal(o, a * 2)


def test_a_type_that_a_template_is_not_compiled_for():
    text = BODY + "void go(float* a, int n) { scale<<<1, 64>>>(a, a, 2.f, n); }"
    scale = load_inline("m", text, backends="host").scale
    for dtype in (torch.float16, torch.int32):
        a = torch.arange(5).to(dtype)
        with pytest.raises(CaffeTypeError, match=r"float32 or float64 .*load_inline\(\.\.\., instances="):
            scale(a, a, 2, 5)
    given = {"scale": ["half", "__nv_bfloat16", "float"]}
    scale = load_inline("m", text, backends="host", instances=given).scale
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        a = torch.arange(5).to(dtype)
        o = torch.zeros_like(a)
        scale(a, o, 2, 5)
        assert torch.equal(o, a * 2)


def test_types_that_two_parameters_do_not_share():
    text = """template <typename T, typename U> __global__ void k(const T* a, U* o) { o[0] = a[0]; }
    void run(int* a, float* b, short* c) { k<<<1, 1>>>(a, b); k<<<1, 1>>>(b, c); }"""
    with pytest.raises(CaffeBuildError, match="has template parameters with the types"):
        load_inline("m", text, backends="host")
