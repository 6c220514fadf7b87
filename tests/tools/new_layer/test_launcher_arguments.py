"""The parameters of a launcher in C, by themselves."""

import pytest
from support.new_layer import derive

from tools.new_layer.c_types import C_TYPES, MADE_OF, VECTORS, alignment_of
from tools.new_layer.instances import Template
from tools.new_layer.kernel_file import kernels_of
from tools.new_layer.launcher_arguments import Arguments


def arguments_of(parameters, before=""):
    file = kernels_of(f"{before} __global__ void k({parameters}) {{}}", "/x/foo.cu")
    ((kernel, scope, template),) = file.kernels
    return Arguments(file, kernel, Template(file, kernel, scope, [], template))


def test_each_of_the_kernels_parameters_has_its_own():
    arguments = arguments_of("float* x, const half* h, long n, float2 p, bool flag, int dtype, int lambda")
    arguments.add_all()
    assert [(a.type, a.name) for a in arguments.all] == [
        ("float *", "x"), ("const uint16_t *", "h"), ("int64_t", "n"), ("float", "p_x"), ("float", "p_y"),
        ("bool", "flag"), ("int", "dtype_"), ("int", "lambda_"),
    ]  # fmt: skip
    assert [a.value for a in arguments.all if a.kernel_name == "p"] == ["make_float2(p_x, p_y)"]
    assert arguments.add_parameter("int", "x").name == "x_"


@pytest.mark.parametrize(
    ("parameter", "wanted"),
    [
        ("short int* x", "int16_t *"),
        ("const int short unsigned* x", "const uint16_t *"),
        ("long long int* x", "int64_t *"),
        ("unsigned long int* x", "uint64_t *"),
        ("int long long unsigned x", "uint64_t"),
        ("char signed* x", "int8_t *"),
        ("char unsigned* x", "uint8_t *"),
        ("int signed x", "int"),
        ("const thrust::pair<float, short int>* x", "const uint8_t *"),
        ("std::pair<int, int>* x", "uint8_t *"),
    ],
)
def test_integers_of_several_words_and_pairs(parameter, wanted):
    arguments = arguments_of(f"{parameter}, float* y")
    arguments.add_all()
    assert [(a.type, a.name) for a in arguments.all] == [(wanted, "x"), ("float *", "y")]


def test_a_macro_of_the_file_takes_a_name():
    arguments = arguments_of("float* x, int width", "#define width 3\n")
    arguments.add_all()
    assert "width" not in [a.name for a in arguments.all]


def test_a_struct_is_filled_by_its_fields():
    arguments = arguments_of("P p, float* y", "struct Q { int a[2]; }; struct P { const float* x; Q q; };")
    arguments.add_all()
    assert [(a.type, a.name) for a in arguments.all[:3]] == [
        ("const float *", "p_x"), ("int", "p_q_a_0"), ("int", "p_q_a_1"),
    ]  # fmt: skip
    assert arguments.filled == ["  P p{};", "  p.x = p_x;", "  p.q.a[0] = p_q_a_0;", "  p.q.a[1] = p_q_a_1;"]
    assert arguments.layout("P") == (16, 8)


@pytest.mark.parametrize(
    ("parameter", "why"),
    [
        ("float** x", "takes a float** x, which C can't give it"),
        ("std::vector<int> v", "C can't give it"),
        ("std::pair<int, int> v", "C can't give it"),
        ("std::pair<int, std::string>* v", "C can't give it"),
        ("other::pair<int, int>* v", "C can't give it"),
        ("int", "has a parameter without a name"),
    ],
)
def test_what_c_cannot_give(parameter, why):
    _, left_out = derive(f"__global__ void k(float* y, {parameter}) {{}}")
    assert left_out["k"].endswith(why)


def test_the_tables_of_types_fit_each_other():
    assert set(VECTORS.values()) <= C_TYPES.keys() and VECTORS.keys() <= MADE_OF.keys()
    assert {kind: alignment_of(kind) for kind in ("uchar4", "short2", "float3", "float4", "double4", "int")} == {
        "uchar4": 4, "short2": 4, "float3": 1, "float4": 16, "double4": 16, "int": 1,
    }  # fmt: skip
