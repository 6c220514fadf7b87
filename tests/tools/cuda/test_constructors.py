"""Real numbers that become objects: bases, members, arguments, by each name that a class may have.

Each must be what the same with an explicit cast is; tests/include/test_real_arguments.py says by what.
"""

import pytest
from support.real_numbers import wrong_of

from tools.cuda.analysis import Unit
from tools.cuda.constructors import class_of
from tools.cuda.to_host import HostRewriter

CLASSES = """
struct B { int b; __device__ B(int k) : b(k) {} };
struct R { double b; __device__ R(double k) : b(k) {} };
struct O { int b; int w; __device__ O(int k) : b(k), w(0) {} __device__ O(double k) : b((int)k), w(1) {} };
template <typename T> struct G { T b; __device__ G(T k) : b(k) {} };
template <typename T> struct H { T b; __device__ H(int k, T m) : b(k + m * 0) {} };
struct P { int a; unsigned b; };
namespace ns { struct N { unsigned b; __device__ N(unsigned k) : b(k) {} }; }
typedef B TB; using UB = B; using GI = G<int>; template <typename T> using AG = G<T>; typedef G<unsigned> GU;
using UN = ns::N; using UP = P;
using RR = R; using OO = O; using INT = int;
struct D1 : B { using Base = B; __device__ D1(double x) : Base(x) {} };
struct D2 : B { typedef B Base; __device__ D2(double x) : Base(x) {} };
struct D3 : TB { __device__ D3(double x) : TB(x) {} };
struct D4 : G<int> { __device__ D4(double x) : G<int>(x) {} };
struct D5 : G<int> { using Base = G<int>; __device__ D5(double x) : Base(x) {} };
struct D6 : G<int> { __device__ D6(double x) : G(x) {} };
template <typename T> struct D7 : G<T> { using Base = G<T>; __device__ D7(double x) : Base(x) {} };
template <typename T> struct D8 : G<T> { __device__ D8(double x) : G<T>(x) {} };
struct D9 : ns::N { __device__ D9(double x) : ns::N(x) {} };
struct D10 : ns::N { using Base = ns::N; __device__ D10(double x) : Base(x) {} };
struct D11 : B { using B::B; };
struct D12 : B { using Base = B; using Base::Base; };
struct D13 : GI { __device__ D13(double x) : GI(x) {} };
template <typename T> struct D14 : AG<T> { __device__ D14(double x) : AG<T>(x) {} };
struct D15 : H<int> { using Base = H<int>; __device__ D15(double x) : Base(x, x) {} };
struct D16 : R { using Base = R; __device__ D16(double x) : Base(x) {} };
struct D17 : O { using Base = O; __device__ D17(double x) : Base(x) {} };
struct D18 : P { using Base = P; __device__ D18(double x) : Base{x, x} {} };
struct D19 : P { __device__ D19(double x) : P{x, x} {} };
template <typename X> struct D20 : X { __device__ D20(double x) : X(x) {} };
struct D21 : B { using Base = B; __device__ D21(double x); };
__device__ D21::D21(double x) : Base(x) {}
struct D22 : B { __device__ D22(double x, int) : D22(x) {} __device__ D22(int k) : B(k) {} };
struct D23 : B { using Base = B; __device__ D23(double x) : Base{x} {} };
struct Sh { unsigned s; int t; __device__ Sh(double x) : s((unsigned)x >> 31), t(1 << (int)(x * 20)) {} };
struct Pr { int a; double b; __device__ Pr(int k, double c) : a(k), b(c) {} };
struct Mem { G<int> g; B b; __device__ Mem(double x) : g(x), b(x) {} };
struct Mem2 { G<int> g{3}; B b{4}; INT i; int arr[2]; __device__ Mem2(double x) : g{x}, b{x}, i{x}, arr{x, x} {} };
struct Mem3 { P p; Pr q; H<int> h; B c[2]; __device__ Mem3(double x); };
__device__ Mem3::Mem3(double x) : p{x, x}, q(x, 3), h{x, 3}, c{x, x} {}
__device__ int take(B b) { return b.b; }
__device__ int takeg(G<int> b) { return b.b; }
__device__ B ret(double x) { return x; }
__device__ B ret2(double x) { return {x}; }
__device__ G<int> ret3(double x) { return x; }
__device__ UB ret4(double x) { return UB(x); }
"""
# Of what takes x itself, and of what takes it as a double.
OBJECTS = {
    "D1(x).b": "(int)(double)x",
    "D2(x).b": "(int)(double)x",
    "D3(x).b": "(int)(double)x",
    "D4(x).b": "(int)(double)x",
    "D5(x).b": "(int)(double)x",
    "D6(x).b": "(int)(double)x",
    "D9(x).b": "(unsigned)(double)x",
    "D10(x).b": "(unsigned)(double)x",
    "D13(x).b": "(int)(double)x",
    "D17(x).b": "(int)(double)x",
    "D18(x).b": "(unsigned)(double)x",
    "D19(x).b": "(unsigned)(double)x",
    "D21(x).b": "(int)(double)x",
    "D23(x).b": "(int)(double)x",
    "D7<int>(x).b": "(int)(double)x",
    "D8<unsigned>(x).b": "(unsigned)(double)x",
    "D14<int>(x).b": "(int)(double)x",
    "D15(x).b": "H<int>((int)(double)x, (int)(double)x).b",
    "D11(x).b": "(int)x",
    "D12(x).b": "(int)x",
    "Sh(x).s": "((unsigned)(double)x >> 31)",
    "Sh(3.0).t": "0",
    "D16(x).b": "(double)x",
    "D17(x).w": "1",
    "D20<B>(x).b": "(int)(double)x",
    "D20<G<unsigned>>(x).b": "(unsigned)(double)x",
    "D20<R>(x).b": "(double)x",
    "D22(x, 1).b": "(int)(double)x",
    "Mem(x).g.b": "(int)(double)x",
    "Mem(x).b.b": "(int)(double)x",
    "Mem2(x).g.b": "(int)(double)x",
    "Mem2(x).b.b": "(int)(double)x",
    "Mem2(x).i": "(int)(double)x",
    "Mem2(x).arr[1]": "(int)(double)x",
    "Mem3(x).p.a": "(int)(double)x",
    "Mem3(x).q.a": "(int)(double)x",
    "Mem3(x).h.b": "(int)(double)x",
    "Mem3(x).c[1].b": "(int)(double)x",
    "ret(x).b": "(int)(double)x",
    "ret2(x).b": "(int)(double)x",
    "ret3(x).b": "(int)(double)x",
    "ret4(x).b": "(int)(double)x",
    "take(x)": "(int)x",
    "takeg(x)": "(int)x",
    "[&] { UB b(x); return b.b; }()": "(int)x",
    "UB(x).b": "(int)x",
    "UB{x}.b": "(int)x",
    "TB(x).b": "(int)x",
    "GI(x).b": "(int)x",
    "GU(x).b": "(unsigned)x",
    "AG<int>(x).b": "(int)x",
    "G<int>(x).b": "(int)x",
    "G<unsigned>{x}.b": "(unsigned)x",
    "[&] { GI b(x); return b.b; }()": "(int)x",
    "[&] { G<unsigned> b(x); return b.b; }()": "(unsigned)x",
    "[&] { G<int> b = x; return b.b; }()": "(int)x",
    "[&] { B b = x; return b.b; }()": "(int)x",
    "[&] { B b = {x}; return b.b; }()": "(int)x",
    "[&] { UB b{x}; return b.b; }()": "(int)x",
    "[&] { AG<int> b{x}; return b.b; }()": "(int)x",
    "ns::N(x).b": "(unsigned)x",
    "UN(x).b": "(unsigned)x",
    "[&] { ns::N b(x); return b.b; }()": "(unsigned)x",
    "[&] { UP b{x, x}; return b.b; }()": "(unsigned)x",
    "UP{x, x}.b": "(unsigned)x",
    "RR(x).b": "(double)x",
    "OO(x).w": "1",
    "INT(x)": "(int)x",
    "[&] { auto b = UB(x); return b.b; }()": "(int)x",
    "[&] { B b(1); b = x; return b.b; }()": "(int)x",
    "[&] { using L = B; L b(x); return b.b; }()": "(int)x",
    "[&] { typedef G<int> L; return L(x).b; }()": "(int)x",
    "[&] { B* p = new B(x); int k = p->b; delete p; return k; }()": "(int)x",
    "(static_cast<B>(x)).b": "(int)x",
    "((B)x).b": "(int)x",
    "(G<int>(1), static_cast<G<int>>(x)).b": "(int)x",
    "((UB)x).b": "(int)x",
    "[&] { B b[2] = {x, x}; return b[1].b; }()": "(int)x",
}  # fmt: skip


def test_real_numbers_that_become_objects(cache):
    wrong = wrong_of(list(OBJECTS.items()), "real_objects", CLASSES)
    assert not wrong, f"{len(wrong)}: " + "\n".join(wrong[:20])


def rewritten(text: str) -> str:
    unit = Unit(text, "x.cu")
    return HostRewriter(unit, unit.main).rewritten()


@pytest.mark.parametrize(
    "line",
    [
        "NoCopy b = made(x);",
        "const NoCopy& b = made(x);",
        "double q = Outer<Box<int>>(x).n;",
        "Cell c = other;",
        "struct Own { Own(float x); Own(const Cell&); };",
    ],
)
def test_objects_stay_as_they_are(line):
    """One that cannot be copied has no way through a conversion."""
    text = (
        "struct Cell { int a; __device__ Cell(int k) : a(k) {} };\n"
        "struct NoCopy { int a; __device__ NoCopy(int k) : a(k) {} NoCopy(const NoCopy&) = delete; };\n"
        "template <typename T> struct Box { T a; __device__ Box(T k) : a(k) {} };\n"
        "template <typename T> struct Outer { int n; __device__ Outer(double x) : n(1) {} };\n"
        "__device__ NoCopy made(float x);\n"
    )
    out = rewritten(f"{text}__global__ void k(Cell other, float x) {{ {line} }}\n")
    assert line in out


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("typename ns::Box<int, T>", ("Box", ("int", "T"))),
        ("const Cell", ("Cell", ())),
        ("Box<Other<int>>", ("Box", ("Other<int>",))),
        ("Box<int>::type", None),
        ("Cell *", None),
    ],
)
def test_what_names_a_class(text, meant):
    found = class_of(text)
    assert (found and (found.name, found.arguments)) == meant
