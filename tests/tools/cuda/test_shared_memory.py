"""What becomes of shared and constant variables. tests/fixtures/rewrite/shared.cu has more forms."""

import pytest
from support.rewriting import rewrite_text

from tools.cuda.shared_memory import RECORDS

KERNEL = "__global__ void k(float* y) { %s y[0] = 1; }"


@pytest.mark.parametrize(
    "declaration, wanted",
    [
        ("extern __shared__ float s[];", "float *s = ::cuda_host::dynamic_shared<float>();"),
        ("extern __shared__ float s[][32];", "float (*s)[32] = ::cuda_host::dynamic_shared<float[32]>();"),
        (
            "extern __shared__ __align__(16) int a[], b[];",
            "int *a = ::cuda_host::dynamic_shared<int>(), *b =",
        ),
        ("static __shared__ int s[4];", "__shared__ int s[4];"),
        ("__shared__ struct P { int v; } s[2];", "__shared__ struct P { int v; } s[2];"),
    ],
)
def test_declarations_in_a_kernel(declaration, wanted):
    text = " ".join(rewrite_text(KERNEL % declaration).split())
    assert wanted in text and "static __shared__" not in text
    assert "struct" in RECORDS


def test_an_array_outside_of_a_function_is_a_pointer_where_it_is_used():
    text = rewrite_text("extern __shared__ float s[];\n" + KERNEL % "s[0] = 2;")
    assert "static ::cuda_host::DynamicShared<float> s;" in " ".join(text.split())
    assert "auto* s = ::cuda_host::dynamic_shared<float>();" in text


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("__constant__ float c[4];", "static __constant__ float c[4]; CAFFE_HOST_CONSTANT(c)"),
        ("extern __constant__ float c[4];", "extern __constant__ float c[4];"),
        ("static __constant__ int a = 1, b;", "static __constant__ int a = 1, b; CAFFE_HOST_CONSTANT(a)"),
    ],
)
def test_constants(text, wanted):
    assert rewrite_text(text).startswith(wanted)
