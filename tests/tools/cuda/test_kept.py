"""How variables that live across a barrier are declared before it and behind it."""

import pytest
from support.rewriting import rewrite_text

from tools.cuda.kept import MOST_KEPT

HEAD = "struct Pair { int a; };\n"
KERNEL = "__global__ void k(int n, int* x) {\n%s\n__syncthreads(); x[0] = 1;\n x[1] = v%s;\n}"


@pytest.mark.parametrize(
    "declaration, part, before, behind",
    [
        ("int v = x[0];", "", "int& v = caffe_kept_0[caffe_t];", "int& v = caffe_kept_0[caffe_t];"),
        ("int v = n + threadIdx.x;", "", "int v = ", "const int v = n + threadIdx.x;"),
        ("int* v = x + threadIdx.x;", "[0]", "int* v = x", "int* const v = x + threadIdx.x;"),
        ("const auto v = threadIdx.x;", "", "const auto v = ", "const auto v = threadIdx.x;"),
        (
            "float v[2][3];",
            "[0][1]",
            "auto& v = ::cuda_host::begin(caffe_kept_0[caffe_t]);",
            "auto& v = caffe_kept_0[caffe_t];",
        ),
        (
            "Pair v = {1};",
            ".a",
            "Pair caffe_own_v = {1}; [[maybe_unused]] auto& v = ::cuda_host::keep(",
            "auto& v = caffe_",
        ),
        (
            "int& v = x[n];",
            "",
            "int& caffe_own_v = x[n]; [[maybe_unused]] auto& v = caffe_kept_0.refer(",
            "auto& v = ",
        ),
        (
            "auto v = x[n];",
            "",
            "auto& v = ::cuda_host::keep(caffe_kept_0.as<decltype(x[n])>(caffe_t), caffe_own_v);",
            "as<",
        ),
    ],
)
def test_declarations(declaration, part, before, behind):
    lines = rewrite_text(HEAD + KERNEL % (declaration, part)).splitlines()
    assert "kPhases" in lines[1] and before in lines[2]
    assert behind in lines[3] and len(lines) == 6


@pytest.mark.parametrize(
    "declaration",
    [
        "const int& v = x[n] * 2;",  # a value that ends with the phase
        "auto v = {1, 2};",
        "Loud v = {1};",
        "int m = 3; int v[m];",
        "volatile int v = x[0];",
        "typedef int& Slot; Slot v = x[0];",
    ],
)
def test_what_cannot_be_kept(declaration):
    assert "kPhases" not in rewrite_text("struct Loud { int a; ~Loud() {} };\n" + KERNEL % (declaration, ""))


@pytest.mark.parametrize("count, fits", [(MOST_KEPT // 8, True), (MOST_KEPT // 8 + 1, False)])
def test_numbers_fit_on_a_stack(count, fits):
    declared = "".join(f"double v{i} = x[{i}]; " for i in range(count))
    used = "".join(f"x[{i}] += v{i}; " for i in range(count))
    text = "__global__ void k(int n, double* x) { " + declared + "__syncthreads(); " + used + "}"
    assert ("kPhases" in rewrite_text(text)) == fits
