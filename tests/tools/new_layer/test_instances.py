"""The launchers of kernels."""

import pytest
from support.new_layer import derive, kernel

from tools.new_layer.instances import Template
from tools.new_layer.kernel_file import kernels_of


@pytest.mark.parametrize(
    ("given", "types"),
    [
        (["float", "half"], ["float", "__half"]),
        (["float", "double", "half"], ["float", "double", "__half"]),
        (["scalar_t", "half"], ["float", "double", "__half"]),
        (["half", "__nv_bfloat16"], ["__half", "__nv_bfloat16"]),
    ],
)
def test_half_types_that_the_file_launches(given, types):
    launches = "".join(f"Run<{name}><<<1, 1>>>(x);" for name in given)
    text = "using half = __half;\n" + kernel("T* x", "x[0] = 0;", "template <typename T>", launches)
    launcher = derive(text)[0]["Run"]
    assert launcher.arguments[0].type == "void *" and list(launcher.dtypes.values()) == types


def test_one_half_type_needs_no_dispatch():
    launcher = derive(kernel("T* x", "x[0] = 0;", "template <typename T>", "Run<__half><<<1, 1>>>(x);"))[0][
        "Run"
    ]
    assert (launcher.arguments[0].type, launcher.arguments[0].element) == ("uint16_t *", "float16")


@pytest.mark.parametrize(
    ("host", "arguments"),
    [
        ("const int TILE = 16; Run<TILE><<<1, 1>>>(x);", "16"),
        ("constexpr int TILE = SIDE; Run<TILE><<<1, 1>>>(x);", "SIDE"),
    ],
)
def test_a_constant_of_the_host_function_is_a_templates_value(host, arguments):
    text = "#define SIDE 8\n" + kernel("float* x", "x[0] = N;", "template <int N>", host)
    assert derive(text)[0]["Run"].instances == [("", arguments)]


def test_a_variable_is_no_templates_value():
    text = kernel(
        "float* x", "x[0] = N;", "template <int N>", "int TILE = 16; TILE = 8; Run<TILE><<<1, 1>>>(x);"
    )
    assert "whose values are unknown" in derive(text)[1]["Run"]


@pytest.mark.parametrize("kind", ["std::integral", "std::floating_point", "Real", "of::Wide<4>", "typename"])
def test_a_concept_names_a_type(kind):
    """`Real T` is a type, no value; `std::size_t N` and `Mode M` are values."""
    text = (
        "template <typename T> concept Real = true;\n"
        "namespace of { template <typename T, int N> concept Wide = true; }\n"
        f"template <{kind} T, std::size_t N> __global__ void k(T* y) {{ *y = N; }}\n"
        "void run(float* y) { k<float, 4><<<1, 1>>>(y); }\n"
    )
    launchers, left_out = derive(text)
    assert not left_out and [arguments for _, arguments in launchers["k"].instances] == ["float, 4"]


def test_what_a_template_is_compiled_for():
    text = """enum Mode { kSum, kMean };
    template <typename T, typename index_t, int N, Mode mode, bool flag> __global__ void k(T* x, const index_t* at) {}
    void launch(float* x, int* at, cudaStream_t s) { k<float, int, 4, kSum, true><<<1, 32, 0, s>>>(x, at); }
    template __global__ void k<double, int64_t, 8, kSum, true>(double*, const int64_t*);"""
    file = kernels_of(text, "/x/foo.cu")
    ((kernel, scope, parameters),) = file.kernels
    template = Template(file, kernel, scope, list(kernel.launches), parameters)
    assert template.types == {"T": "Dtype", "index_t": "Index"} and template.dispatch
    assert template.indices == ["Index"]
    assert template.choices == {"N": ["4", "8"], "mode": ["kSum", "kMean"], "flag": ["true", "false"]}
    assert template.free() == {"N": "int", "mode": "int", "flag": "bool"}
    instances = dict(template.instances({"N": "n", "mode": "mode", "flag": "flag"}))
    assert len(instances) == 8
    assert instances["n == 8 && mode == static_cast<int>(kMean) && !flag"] == "Dtype, Index, 8, kMean, false"
