"""The variables on the GPU that a file's host code fills."""

import pytest
from support.new_layer import derive

from tools.cuda.source import Source
from tools.new_layer.inline import completed
from tools.new_layer.symbols import symbols_to_fill, uploaded_in

FILE = """
#define ROWS (2 * COLUMNS)
#define COLUMNS 3
static const unsigned int kDepth = ROWS / 2u - 1;
namespace one { namespace {
__constant__ float plain[9];
static __constant__ __align__(16) double cube[kDepth][ROWS][COLUMNS], *pointer, scalar;
} }
__constant__ float given[2] = {1, 2};
__constant__ float braced[] {1, 2};
__constant__ float unknown[sizeof(float)], hopeless[N];
__device__ int counter;
__device__ float gain, bias;
__device__ float function(float x);
template <typename T> __global__ void kernel(T* x) { x[0] = one::plain[0] * gain; }
void upload(float* p) {
  cudaMemcpyToSymbolAsync(gain, p, 4, 0, cudaMemcpyHostToDevice, stream);
  cudaGetSymbolAddress((void**)&p, bias);
}
"""


def test_which_variables_are_filled_by_the_host():
    found = symbols_to_fill(source := Source(FILE, "x.cu"), [], uploaded_in([source]))
    assert {name: (symbol.type, symbol.scope, symbol.sizes) for name, symbol in found.items()} == {
        "plain": ("float", "one::", (9,)),
        "cube": ("double", "one::", (2, 6, 3)),
        "pointer": ("double*", "one::", ()),
        "scalar": ("double", "one::", ()),
        "unknown": ("float", "", None),
        "hopeless": ("float", "", None),
        "gain": ("float", "", ()),
        "bias": ("float", "", ()),
    }


def test_a_launcher_fills_them():
    launcher = derive(FILE)[0]["kernel"]
    declared, defined = launcher.declaration(), launcher.definition()
    assert "// plain_values: [9]\n" in declared and "// gain_values: [1]\n" in declared
    upload = (
        "cudaMemcpyToSymbolAsync(one::plain, plain_values, sizeof(one::plain), 0, cudaMemcpyDeviceToDevice,"
    )
    assert upload in defined


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        (
            "struct Pair { int* a; }; __constant__ Pair c[2];",
            "reads c, a Pair, which the host code fills and C can't",
        ),
        ("__constant__ float c[UNKNOWN];", "reads c, which the host code fills, and whose size is unknown"),
    ],
)
def test_a_kernel_whose_constants_cannot_be_passed(declared, why):
    _, left_out = derive(f"{declared}\n__global__ void f(float* x) {{ x[0] = sizeof(c); }}")
    assert left_out["f"].startswith(why)


def test_sizes_of_constants_may_be_in_headers(tmp_path):
    (tmp_path / "constants.h").write_text("const long N_DIM = 2;\n#define ROWS (N_DIM + 1)\n")
    text = '#include "constants.h"\n__constant__ double box[N_DIM], rows[ROWS];\n'
    text += "__global__ void k(double* x) { *x = box[0] + rows[1]; }"
    header, source, without = completed("m", text, str(tmp_path / "m.cu"))
    assert not without and "box_values: [2]" in header and "rows_values: [3]" in header
    assert "static_assert(sizeof(::box) == 2 * sizeof(*box_values)" in source
