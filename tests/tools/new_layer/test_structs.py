"""Structs by value: their fields, and launchers that take them one by one."""

import random
from typing import Any

import numpy as np
import pytest
import torch

from cuffi import CaffeTypeError, CaffeValueError, load_inline
from tools.cuda.lexer import Lexed
from tools.new_layer.inline import completed
from tools.new_layer.structs import layout_of, structs_of, without_addresses


def tokens_of(text):
    return Lexed(text).tokens


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
        ("struct P { P(int n) : n(n) {} int n; };", "int n"),
        ("struct P { P(const P& p); int n; };", None),  # a copy may mean more than its fields
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
        ("class P { public: P() {} int n; };", "int n"),
        ("class P { int n; };", None),
        ("struct P { P(int k) : n(k), m{0} {} float* n; int m; int operator()(int i); };", "float* n, int m"),
        ("struct P { ~P() {} int n; };", None),
    ],
)  # fmt: skip
def test_fields(text, fields):
    found = structs_of(tokens_of(text))["P"]
    assert (found is None) == (fields is None)
    shown = [
        f"{'const ' * f.is_const}{f.type}{'*' * f.is_pointer} {f.name}{f'[{f.count}]' if f.count else ''}"
        for f in found or ()
    ]
    assert ", ".join(shown) == (fields or "")


@pytest.mark.parametrize(
    "text",
    [
        "struct P : Q { int n; };",
        "template <int N> struct P { int n; };",
        "struct P;",
        "int n;",
        "struct { int n; } p;",
    ],
)
def test_what_is_no_plain_struct(text):
    assert structs_of(tokens_of(text)) == {}


@pytest.mark.parametrize(
    ("struct", "why"),
    [
        ("struct P { P(const P&) {} int n; };", "k takes a P p, with a part that C can't give it"),
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
    assert f"\nint m_k({parts}, float *y, " in declared and f"{made}, y);" in " ".join(text.split())


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


KINDS = {
    "char": "i1", "bool": "?", "short": "i2", "int": "i4", "unsigned": "u4", "float": "f4", "double": "f8",
    "long long": "i8", "unsigned char": "u1", "size_t": "u8",
}  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_bytes_of_a_struct(seed):
    """numpy's aligned records are C's structs."""
    choose = random.Random(seed)
    texts, types, structs = [], {}, {}
    for number in range(4):
        fields, record = [], []
        for i in range(choose.randint(1, 6)):
            kind = choose.choice([*KINDS, *types])
            count = choose.choice([0, 0, 1, 3])
            fields.append(f"{kind} f{i}{f'[{count}]' * bool(count)};")
            record.append((f"f{i}", types.get(kind) or KINDS[kind], (count,) if count else ()))
        texts.append(f"struct S{number} {{ {' '.join(fields)} }};")
        types[f"S{number}"] = np.dtype(record, align=True)
        structs |= structs_of(tokens_of(texts[-1]))
    for name, wanted in types.items():
        assert layout_of(structs[name], structs) == (wanted.itemsize, wanted.alignment)
    assert without_addresses(map(tokens_of, texts)) == set(types)


def test_vectors_in_a_struct():
    (fields,) = structs_of(tokens_of("struct P { float x; float4 v; int2 i; uchar3 c; };")).values()
    assert layout_of(fields, {}) == (48, 16)
    assert layout_of(structs_of(tokens_of("struct P { unknown x; };"))["P"], {}) is None


ROWS = """
struct Vec { float x, y, z; __device__ float sum() const { return x + y + z; } };
typedef struct { Vec centre; double radius; short ids[3]; } Sphere;
struct Node { Node* next; float v; };
__constant__ Sphere bounds[2];
__global__ void total(const Sphere* spheres, double* out, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = spheres[i].centre.sum() + spheres[i].radius + spheres[i].ids[2] + bounds[1].radius;
}
__global__ void move(Sphere* s, int n) { if (threadIdx.x < n) s[threadIdx.x].centre.y += 1, s[threadIdx.x].ids[0]++; }
__global__ void walk(Node* n) { n->v = 1; }
void fill(Sphere* h) { cudaMemcpyToSymbol(bounds, h, sizeof(bounds)); }
"""


def test_arrays_of_structs_are_bytes(cache):
    with pytest.warns(RuntimeWarning, match=r"walk takes a Node\* n, which C can't give it"):
        m = load_inline("rows_of", ROWS, backends="host")
    kind = np.dtype([("centre", "f4", 3), ("radius", "f8"), ("ids", "i2", 3)], align=True)
    records: Any = np.zeros(7, kind)
    drawn = np.random.default_rng(0)
    records["centre"], records["radius"] = drawn.random((7, 3)), drawn.random(7)
    records["ids"] = drawn.integers(-9, 9, (7, 3))
    rows, bounds = (torch.from_numpy(a.view(np.uint8).copy()) for a in (records, records[:2]))
    out = torch.zeros(7, dtype=torch.float64)
    geometry = {
        f"{what}_{axis}": 8 if what + axis == "blockx" else 1 for what in ("grid", "block") for axis in "xyz"
    }
    m.total(rows, out, 7, bounds_values=bounds, **geometry)
    wanted = records["centre"].sum(1) + records["radius"] + records["ids"][:, 2] + records["radius"][1]
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-6)
    m.move(rows, 7, **geometry)
    moved: Any = rows.numpy().view(kind)
    np.testing.assert_array_equal(moved["centre"][:, 1], records["centre"][:, 1] + np.float32(1))
    np.testing.assert_array_equal(moved["ids"][:, 0], records["ids"][:, 0] + 1)
    with pytest.raises(CaffeValueError, match="bounds_values"):
        m.total(rows, out, 7, bounds_values=bounds[:-1], **geometry)


CLASSES = """
template <typename T> struct Vector {
  T x, y, z;
  __host__ __device__ Vector(T s) : x(s), y(s), z(s) {}
  __host__ __device__ Vector operator*(T s) const { Vector r(0); r.x = x * s; r.y = y * s; r.z = z * s; return r; }
};
using Vector3 = Vector<double>;
namespace scene {
class Ray {
  Vector<float> from, to;
 public:
  __device__ float length() const { return to.x - from.x + to.y - from.y + to.z - from.z; }
};
struct Lens { Lens(float z, int n) : zoom(z), count(n) {} float zoom; int count, sizes[2]; };
}
__global__ void scale(Vector3* v, scene::Lens lens) {
  v[threadIdx.x] = v[threadIdx.x] * lens.zoom;
  v[threadIdx.x].x += lens.sizes[1] * lens.count;
}
__global__ void lengths(const scene::Ray* rays, float* out) { out[threadIdx.x] = rays[threadIdx.x].length(); }
"""


def test_classes_are_bytes_and_structs_with_constructors_are_their_fields(cache):
    m = load_inline("classes", CLASSES, backends="host")
    v = torch.rand(4, 3, dtype=torch.float64)
    bytes_ = v.clone().view(torch.uint8)
    m.scale(bytes_, {"zoom": 2.0, "count": 3, "sizes": (7, 5)}, grid=1, block=4)
    wanted = v * 2
    wanted[:, 0] += 15
    torch.testing.assert_close(bytes_.view(torch.float64).view(4, 3), wanted)
    rays, out = torch.rand(5, 6), torch.empty(5)
    m.lengths(rays.view(torch.uint8), out, grid=1, block=5)
    torch.testing.assert_close(out, rays[:, 3:].sum(1) - rays[:, :3].sum(1))


@pytest.mark.parametrize(
    ("texts", "plain"),
    [
        (["struct A { int n; A(int k) : n(k) {} };", "struct B { A a[3]; int2 v; };"], "AB"),
        (["struct A { int* n; };", "struct B { A a; };", "typedef struct { float v; } C;"], "C"),
        (["struct A { int f(int* p) { return *p & 1; } union { int a; float b; }; };"], "A"),
        (
            [
                "struct A { ~A(); int n; };",
                "struct B { std::vector<int> n; };",
                "struct C { void (*f)(int); };",
            ],
            "",
        ),
        (["class A { public: A(int k) : n(k) {} private: int n; };", "struct B : public A { A m; };"], "AB"),
        (["struct A { A(int k) : n(nullptr) {} int* n; };", "struct B { A(*f)(int); };"], ""),
        (
            [
                "template <typename T> struct V { T x, y; V operator*(V o) { return o; } };",
                "using V3 = V<double>;",
            ],
            ["V", "V3"],
        ),
        (
            ["struct A { std::array<float, 3> v; enum { N = 2 }; int w[N * 2]; };", "typedef A Other;"],
            ["A", "Other"],
        ),
        (["struct A { union { int n; float* x; }; };", "struct B { int x = f(&y); ~B() = default; };"], "B"),
        (["struct A : B { int n; };", "struct C { virtual int f(); };", "struct D { int& n; };"], ""),
    ],
)
def test_structs_that_a_tensor_may_have(texts, plain):
    assert without_addresses(map(tokens_of, texts)) == set(plain)


def test_an_if_leaves_the_fields_open():
    """Which of them a compiler sees is unknown, so nobody may give them one by one."""
    text = "struct P {\n  int n;\n#ifdef BIG\n  int m;\n#endif\n};\n__global__ void k(float* y, P p) {}"
    *_, without = completed("m", text + "__global__ void other(float* y) {}", "m.cu")
    assert without == ["a kernel without a launcher: k takes a P p, with a part that C can't give it"]
