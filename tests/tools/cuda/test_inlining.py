"""For the race finder, functions with structures are inlined."""

import pytest
from support.rewriting import rewrite_text

from tools.cuda.inlining import INLINED

KERNEL = "__global__ void k(float* y) { %s }"


@pytest.mark.parametrize(
    "function, is_inlined",
    [
        ("__device__ float2 f(float2 v) { return v; }", True),
        ("__device__ void f(Pair v) { v.a[0] = 1; }", True),
        ("__device__ float f(const float* v, int n) { return v[n]; }", False),
        ("__device__ float2 f(float2 v, int n) { return n ? f(v, n - 1) : v; }", False),  # it calls itself
        ("float2 f(float2 v) { return v; }", False),
    ],
)
def test_functions(function, is_inlined):
    text = "struct Pair { float* a; };\n" + function
    assert (INLINED in rewrite_text(text, watched=True)) == is_inlined
    assert INLINED not in rewrite_text(text)


@pytest.mark.parametrize(
    "body, is_inlined",
    [
        ("auto g = [=](float2 v) { y[0] = v.x; }; g(float2{1, 2});", True),
        ("auto g = [y] { y[0] = 1; }; g();", True),
        ("y[(int)y[1]] = 1;", False),
        (
            "auto g = [](auto self, int n) -> int { return n ? self(self, n - 1) : 0; }; y[0] = g(g, 3);",
            False,
        ),
    ],
)
def test_lambdas(body, is_inlined):
    assert (INLINED in rewrite_text(KERNEL % body, watched=True)) == is_inlined
