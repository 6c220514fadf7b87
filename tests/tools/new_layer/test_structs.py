"""Structs by value: their fields, and launchers that take them one by one."""

import pytest
import torch

from cuffi import CaffeTypeError, load_inline
from tools.new_layer.inline import completed
from tools.new_layer.structs import structs_of


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("struct P { int n; long long m[2]; };", "int n, long long m[2]"),
        ("struct P { int n; float s; };", "int n, float s"),
        ("typedef struct { unsigned n; unsigned int a, b; } P;", "unsigned n, unsigned int a, unsigned int b"),
        ("typedef struct Own { const float *x, *y; int k[3]; } P;", "const float* x, const float* y, int k[3]"),
        ("struct P { public: int n = 3; static const int M = 4; };", "int n"),
        ("struct P { __device__ int f(int k) const { if (k) { return 1; } return n; } float z; };", "float z"),
        ("struct __align__(16) P { float4 v; unsigned long long m; };", "float4 v, unsigned long long m"),
        ("struct P { P(int n) : n(n) {} int n; };", None),  # it may mean more than its fields
        ("struct P { float** p; };", None),
        ("struct P { int n[2][3]; };", None),
        ("struct P { private: int n; };", None),
        ("struct P { std::vector<int> x; };", None),
        ("struct P { int n : 3; };", None),
        ("struct P { int& n; };", None),
        ("struct P { union { int a; float b; }; };", None),
        ("struct P { void (*f)(int); int n; };", None),
        ("struct P { virtual int f() { return 1; } int n; };", None),
        ("struct P { const int n; };", None),
        ("struct P {};", None),
    ],
)  # fmt: skip
def test_fields(text, fields):
    found = structs_of(text)["P"]
    assert (found is None) == (fields is None)
    shown = [
        f"{'const ' * f.is_const}{f.type}{'*' * f.is_pointer} {f.name}{f'[{f.count}]' if f.count else ''}"
        for f in found or ()
    ]
    assert ", ".join(shown) == (fields or "")


@pytest.mark.parametrize(
    "text", ["struct P : Q { int n; };", "class P { int n; };", "struct P;", "int n;", "struct { int n; } p;"]
)
def test_what_is_no_plain_struct(text):
    assert structs_of(text) == {}


@pytest.mark.parametrize(
    ("struct", "why"),
    [
        ("struct P { P(int n) {} int n; };", "k takes a P p, with a part that C can't give it"),
        ("struct Q { int& n; }; struct P { Q q; };", "k takes a P p_q, with a part that C can't give it"),
        ("struct Q; struct P { Q* q; };", "k takes a Q* p_q, which C can't give it"),
        ("struct Q { int n; }; struct P : Q { int m; };", "k takes a P p, which C can't give it"),
    ],
)
def test_what_c_cannot_give(struct, why):
    *_, without = completed(
        "m", struct + "__global__ void k(float* y, P p) {}\n__global__ void other(float* y) {}", "m.cu"
    )
    assert without == [f"a kernel without a launcher: {why}"]


@pytest.mark.parametrize(
    ("kind", "parts", "made"),
    [
        ("float4", "float p_x, float p_y, float p_z, float p_w", "make_float4(p_x, p_y, p_z, p_w)"),
        ("uchar1", "uint8_t p_x", "make_uchar1(p_x)"),
        ("half2", "float p_x, float p_y", "__floats2half2_rn(p_x, p_y)"),
        ("__half2", "float p_x, float p_y", "__floats2half2_rn(p_x, p_y)"),
        ("nv_bfloat162", "float p_x, float p_y", "__floats2bfloat162_rn(p_x, p_y)"),
        ("__nv_bfloat162", "float p_x, float p_y", "__floats2bfloat162_rn(p_x, p_y)"),
        ("cuFloatComplex", "float p_x, float p_y", "make_cuFloatComplex(p_x, p_y)"),
        ("cuDoubleComplex", "double p_x, double p_y", "make_cuDoubleComplex(p_x, p_y)"),
    ],
)
def test_the_parts_of_cudas_own(kind, parts, made):
    declared, text, _ = completed("m", f"__global__ void k({kind} p, float* y) {{}}\n", "m.cu")
    assert declared.startswith(f"int m_k({parts}, float *y, ") and f"{made}, y);" in " ".join(text.split())


def test_values_arrive(cache):
    """upfirdn2d's way: one struct with pointers, sizes and flags."""
    text = """#include <cuda_fp16.h>
    enum Mode { ADD = 3, SCALE = 5 };
    namespace q { struct Params {
      const float* x; float* y;
      int2 size; long long stride[2]; float gain; unsigned char shift; Mode mode; bool flip; half one;
      __host__ __device__ int count() const { return size.x * size.y; }
    }; }
    __global__ void run(const q::Params p, float more) {
      for (int i = threadIdx.x; i < p.count(); i += blockDim.x) {
        const float value = p.x[i / p.size.x * p.stride[0] + i % p.size.x * p.stride[1]];
        const float changed = p.mode == SCALE ? value * p.gain : value + p.gain;
        p.y[p.flip ? p.count() - 1 - i : i] = changed + p.shift + __half2float(p.one) + more;
      }
    }
    void start(q::Params p) { run<<<1, 32>>>(p, 0.5f); }
    """
    run = load_inline("m", text, backends="host").run
    x, y = torch.randn(5, 7), torch.empty(5, 7)
    given = dict(
        p_size_x=7, p_size_y=5, p_stride_0=7, p_stride_1=1, p_gain=1.5, p_shift=200, p_one=0.25, more=0.5
    )
    run(p_x=x, p_y=y, p_mode=5, p_flip=False, **given)
    torch.testing.assert_close(y, x * 1.5 + 200.75)
    run(p_x=x, p_y=y, p_mode=3, p_flip=True, **given)
    torch.testing.assert_close(y, (x + 202.25).flip(0, 1))
    struct = dict(x=x, y=y, size=(7, 5), stride=(7, 1), gain=1.5, shift=200, mode=5, flip=False, one=0.25)
    run(struct, 0.5)
    torch.testing.assert_close(y, x * 1.5 + 200.75)
    with pytest.raises(CaffeTypeError, match="m: m_run: p_y: missing"):
        run(p_x=x, p_mode=3, p_flip=True, **given)


def test_structs_in_structs(cache):
    text = """typedef struct pair { const float* a; int n[2]; } Pair;
    struct P { pair first; Pair second; float* y; };
    __global__ void run(P p) {
      const int i = threadIdx.x;
      p.y[i] = p.first.a[i] * p.first.n[1] + p.second.a[i] * p.second.n[0];
    }
    void start(P p) { run<<<1, 8>>>(p); }
    """
    run = load_inline("m", text, backends="host").run
    a, b, y = torch.randn(8), torch.randn(8), torch.empty(8)
    run(dict(first=dict(a=a, n=(1, 3)), second=dict(a=b, n=(5, 7)), y=y))
    torch.testing.assert_close(y, a * 3 + b * 5)
    with pytest.raises(CaffeTypeError, match="p_second_a: missing"):
        run(dict(first=dict(a=a, n=(1, 3)), second=dict(n=(5, 7)), y=y))
