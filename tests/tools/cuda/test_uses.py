"""Which uses of a variable are known reads. All others may change it, or keep its address."""

import pytest

from tools.cuda.analysis import Unit
from tools.cuda.body import Body
from tools.cuda.uses import Unclear, Uses

HEAD = """
#define TWICE(x) ((x) * 2)
#define BUMP(x) x += 1
#define HIDDEN (v + 1)
#define PUT(x) { x = 1; }
typedef int& Slot;
typedef int Plain;
struct Adder { int& sum; };
struct Reader { int next; };
struct Pair { int a, b; };
__device__ Reader operator>>(Reader r, int& v) { v = r.next; return r; }
__device__ Pair operator*(Pair p, int by) { return p; }
__device__ int twice(int v) { return 2 * v; }
__device__ int by_const(const int& v) { return v; }
__device__ void grow(Slot v) { v += 5; }
__device__ void set(int* p) { *p = 1; }
template <typename T> __device__ T same(T v) { return v; }
template <typename T> __device__ void __order(T& a, T& b) {}
__device__ int atomic_like(int& v) { return v++; }
__device__ int x_cast(int& v) { return v++; }
"""
KERNEL = "template <typename T> __global__ void k(int n, int* x) { int v = n, w = 0, own[4]; Pair p; %s }"


def uses_of(body: str) -> Uses:
    unit = Unit(HEAD + KERNEL % body, "x.cu")
    function = next(f for f in unit.main.functions if f.is_kernel)
    return Uses(Body(unit.main, function), function, unit.names, {"T"})


def how(body: str, name: str = "v") -> str:
    (variable,) = (v for v in uses_of(body).scopes if v.name == name)
    return "unknown" if None in variable.changes else "changed" if variable.changes else "read"


USES = {
    "w = v + 1; w = -v; w += v; if (v) w = 1; for (; v < w;) w++; switch (v) { case 1: break; }": "read",
    "w = x[v]; x[v] = own[v]; w = (v); w = v ? v : n; w = (1, v); return;": "read",
    "w = (int)v; w = int(v); w = static_cast<float>(v); w = (T)v; w = sizeof(v);": "read",
    "w = twice(v); w = same(v); w = min(v, 3); w = __ldg(x + v); atomicAdd(x, v); printf(\"%d\", v);": "read",
    "int a = v; float b = v, *c = x + v; int d[2] = {v, v}; const auto e = v; float2 f = {v, 1};": "read",
    "p.a = v; p = p * v; w = TWICE(3);": "read",
    "v = 1; v += w; v++; --v; (v) = 2;": "changed",
    # Places of a choice, references, addresses.
    "(n ? v : w) += 1;": "unknown",
    "(w, v) = 2;": "unknown",
    "int& r = v;": "unknown",
    "auto& r = v;": "unknown",
    "int& r = n ? v : w;": "unknown",
    "int& r = (int&)v;": "unknown",
    "int& r = ((v));": "unknown",
    "const int& r = v;": "unknown",
    "Slot r = v;": "unknown",
    "(int&)v = 1;": "changed",
    "(Slot)v = 1;": "changed",
    "static_cast<int&>(v) = 1;": None,
    "int* q = &v;": "unknown",
    "int* q = &(n ? v : w);": "unknown",
    "set(&v);": "unknown",
    # Calls.
    "grow(v);": "unknown",
    "w = by_const(v);": "unknown",
    "same<int&>(v);": "unknown",
    "same<Slot>(v);": "unknown",
    "__order(v, w);": "unknown",
    "atomic_like(v);": "unknown",
    "x_cast(v);": "unknown",
    "nobody_knows(v);": "unknown",
    "sincosf(1, v, w);": "unknown",
    "grow(n ? v : w);": "unknown",
    # Objects and operators.
    "Adder g{v};": "unknown",
    "Adder g = {v};": "unknown",
    "Adder{v}.sum = 1;": "unknown",
    "Reader{1} >> v;": None,
    "p = Pair{1} >> v, p;": "unknown",
    "w = n >> v;": "unknown",
    # Macros.
    "BUMP(v);": "unknown",
    "w = TWICE(v);": "unknown",
    "w = HIDDEN;": "unknown",
    # What nobody reads.
    "PUT(v);": None,
    "auto f = [&] { v = 1; };": None,
    "float (&r)[4] = own;": None,
    "goto out; out:;": None,
    "struct L { int a; };": None,
}  # fmt: skip


@pytest.mark.parametrize("body", USES)
def test_uses(body):
    if USES[body] is None:
        with pytest.raises(Unclear):
            uses_of(body)
    else:
        assert how(body) == USES[body]


@pytest.mark.parametrize(
    "body, name, wanted",
    [
        ("own[n] = 1; own[v] += own[w];", "own", "changed"),
        ("w = own[2];", "own", "read"),
        ("set(own);", "own", "unknown"),
        ("set(own + 1);", "own", "unknown"),
        ("set(&own[1]);", "own", "unknown"),
        ("__order(own[0], own[1]);", "own", "unknown"),
        ("for (int& k : own) k = 1;", "own", "unknown"),
        ("p.a = 1; w = p.b;", "p", "changed"),
        ("p.grow();", "p", "unknown"),
        ("x[3] = 1; *x = 2; set(x);", "x", "read"),
        ("x += 3;", "x", "changed"),
    ],
)
def test_uses_of_parts(body, name, wanted):
    assert how(body, name) == wanted
