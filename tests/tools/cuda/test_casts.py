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


def test_nan_is_zero(cache, text):
    x, top = torch.full((1,), math.nan), torch.ones(len(FORMS) + 4, 1, dtype=torch.int64)
    load_inline("convert", text, backends="host").convert_float_0(1, x, top)
    assert not top.any()


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
