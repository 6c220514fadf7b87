"""Conversions of real numbers to integers in kernels: what a GPU gives, also where the number does not fit."""

import math

import pytest
import torch

from cuffi import load_inline
from tools.cuda.casts import casts
from tools.cuda.lexer import Lexed

LIMITS = {
    "int": (-(2**31), 2**31 - 1),
    "unsigned int": (0, 2**32 - 1),
    "long long": (-(2**63), 2**63 - 1),
    "unsigned long long": (0, 2**64 - 1),
}
FORMS = ["({t})a[i]", "static_cast<{t}>(a[i])", "({t})-(-a[i])", "({t})identity<real>(a[i])"]
VALUES = [
    3e9,
    -3e9,
    1e10,
    -1e10,
    1e20,
    -1e20,
    math.inf,
    -math.inf,
    -3.7,
    3.7,
    0.0,
    -0.5,
    2147483000.0,
    4294967000.0,
]
HEAD = """
#define WHOLE(x) ((int)(x))
template <typename T> __device__ T identity(T x) { return x; }
"""
KERNEL = """
__global__ void {name}(const int n, const {real}* a, int64_t* o) {{
  using real = {real};
  CUDA_KERNEL_LOOP(i, n) {{
{lines}
    {t} declared = a[i], other = 2 * a[i];
    o[{count} * n + i] = declared;
    o[{count} * n + n + i] = other;
  }}
}}
"""


@pytest.fixture(scope="module")
def text() -> str:
    kernels = []
    for real in ("float", "double"):
        for k, t in enumerate(LIMITS):
            forms = [*FORMS, "int(a[i])", "WHOLE(a[i])"] if t == "int" else FORMS
            lines = [f"    o[{f} * n + i] = {form.format(t=t)};" for f, form in enumerate(forms)]
            known = {"name": f"{real}_{k}", "real": real, "t": t, "count": len(forms)}
            kernels.append(KERNEL.format(lines="\n".join(lines), **known))
    return HEAD + "".join(kernels)


@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("which", range(4), ids=LIMITS)
def test_what_does_not_fit(cache, text, real, which):
    x = torch.tensor(VALUES, dtype=torch.float32 if real == "float" else torch.float64)
    forms = len(FORMS) + 2 * (which == 0)
    top = torch.zeros(forms + 2, len(x), dtype=torch.int64)
    getattr(load_inline("convert", text, backends="host"), f"convert_{real}_{which}")(len(x), x, top)
    low, high = LIMITS[list(LIMITS)[which]]

    def wanted(value: float) -> int:
        whole = low if value < low else high if value > high else min(max(math.trunc(value), low), high)
        return whole - 2**64 if whole >= 2**63 else whole

    assert top[:-1].tolist() == [[wanted(v) for v in x.tolist()]] * (forms + 1)
    assert top[-1].tolist() == [wanted(2 * v) for v in x.tolist()]


@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("which", range(4), ids=LIMITS)
def test_nan(cache, text, real, which):
    """PTX's cvt: 0, but the highest bit alone for a double or a 64-bit integer."""
    x = torch.full((1,), math.nan, dtype=torch.float32 if real == "float" else torch.float64)
    top = torch.ones(len(FORMS) + 2 * (which == 0) + 2, 1, dtype=torch.int64)
    getattr(load_inline("convert", text, backends="host"), f"convert_{real}_{which}")(1, x, top)
    bits = 64 if "long" in list(LIMITS)[which] else 32
    wanted = 0 if real == "float" and bits == 32 else 2 ** (bits - 1)
    if wanted and list(LIMITS)[which] in ("int", "long long"):
        wanted = -wanted
    assert set(top.flatten().tolist()) == {wanted - 2**64 if wanted >= 2**63 else wanted}


ASSIGNED = """
template <typename T, typename R>
__device__ T through(R x) {
  T first = x, second;
  second = x;
  return first == second && (T)x == static_cast<T>(x) && T(x) == first ? first : T(77);
}
__global__ void assigned(const int n, const float* a, int* o, uint8_t* bytes, int16_t* shorts, float* same) {
  CUDA_KERNEL_LOOP(i, n) {
    int k, many[2];
    k = a[i];
    many[1] = a[i];
    int* p = many;
    *p = 2 * a[i];
    o[i] = a[i];
    o[n + i] = k;
    o[2 * n + i] = many[1];
    o[3 * n + i] = *p;
    o[4 * n + i] = through<int>(a[i]);
    o[5 * n + i] = through<unsigned>(a[i]);
    bytes[i] = a[i];
    bytes[n + i] = (unsigned char)a[i];
    shorts[i] = (short)a[i];
    same[i] = through<float>(a[i]);
  }
}
"""


def test_assignments_templates_and_small_integers(cache):
    x = torch.tensor([3e9, -3e9, math.inf, -math.inf, math.nan, 2.5, -7.5, 300.0, 70000.0, 4e9, 1e20])
    n = len(x)
    o, same = torch.zeros(6, n, dtype=torch.int32), torch.zeros(n)
    bytes_, shorts = torch.zeros(2, n, dtype=torch.uint8), torch.zeros(n, dtype=torch.int16)
    load_inline("assigned", ASSIGNED, backends="host").assigned_kernel(n, x, o, bytes_, shorts, same)

    def saturated(value: float, low: int, high: int) -> int:
        return 0 if value != value else int(min(max(value, low), high))

    whole = [saturated(v, -(2**31), 2**31 - 1) for v in x.tolist()]
    unsigned = [saturated(v, 0, 2**32 - 1) for v in x.tolist()]
    doubled = [saturated(2 * v, -(2**31), 2**31 - 1) for v in x.tolist()]
    assert o[:5].tolist() == [whole, whole, whole, doubled, whole]
    assert [v % 2**32 for v in o[5].tolist()] == unsigned
    assert bytes_.tolist() == [[v % 256 for v in unsigned]] * 2  # nvcc converts to 32 bits, and stores 8
    assert shorts.tolist() == [(v + 2**15) % 2**16 - 2**15 for v in whole]
    assert same[4] == 77  # NaN is not NaN
    assert same[x == x].tolist() == x[x == x].tolist()


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("x = (int)a.b[2]->c(d) * 3;", "x = I(a.b[2]->c(d)) * 3;"),
        ("x = -(int)-y;", "x = -I(-y);"),
        ("f((int)a, (unsigned)b);", "f(I(a), ::cuda_host::to<unsigned>(b));"),
        ("x = (int)(float)y + (int)g<3>(z);", "x = I((float)y) + I(g<3>(z));"),
        ("return (int)a < b;", "return I(a) < b;"),
        ("x = int(y) + sizeof(int);", "x = I(y) + sizeof(int);"),
        ("const int k = (int)y, m = 4, n[2];", "const int k = I(I(y)), m = 4, n[2];"),
        ("x = (short)y; z = (Foo)y;", "x = ::cuda_host::to<short>(y); z = (Foo)y;"),
        ("int* p = q; int& r = s; int t{u}; int v(w);", "int* p = q; int& r = s; int t{u}; int v(w);"),
        (
            "for (int i = 0; i < n; ++i) g(int64_t(i));",
            "for (int i = 0; i < n; ++i) g(::cuda_host::to<int64_t>(i));",
        ),
        (
            "std::function<int(float)> f; void (*g)(int) = h;",
            "std::function<int(float)> f; void (*g)(int) = h;",
        ),
    ],
)
def test_what_is_found(text, wanted):
    lexed = Lexed(text)
    found = sorted(casts(lexed.tokens, lexed.partner, 0, len(lexed.tokens)), key=lambda edit: edit[:2])
    for start, end, new in reversed(found):
        text = text[:start] + new + text[end:]
    assert text.replace("::cuda_host::to<int>(", "I(").replace("::cuda_host::to<int>", "I") == wanted
