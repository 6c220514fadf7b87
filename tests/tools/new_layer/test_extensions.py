"""Kernels of torch extensions: what a launcher computes of their launches, types and helpers."""

import pytest
from support.new_layer import derive

KERNEL = "__global__ void run(int n, float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = n; }\n"


def launched(host: str, before: str = "", kernel: str = KERNEL):
    launcher = derive(f"{before}{kernel}void launch(at::Tensor x, int rows, int n) {{ {host} }}\n")[0]["run"]
    return launcher.grid, launcher.block, launcher.python_parameters[2:]


@pytest.mark.parametrize(
    ("host", "grid", "asked"),
    [
        ("run<<<(n + 63) / 64, 64>>>(n, x);", "(n + 63) / 64", []),
        ("const auto m = x.numel(); run<<<(m + 63) / 64, 64>>>(m, x);", "(int64_t(n) + 63) / 64", []),
        ("run<<<(x.numel() + 63) / 64, 64>>>(x.numel(), x);", "(int64_t(n) + 63) / 64", []),
        ("run<<<at::ceil_div(n, 64), 64>>>(n, x);", "THCCeilDiv(n, 64)", []),
        ("int g = (n + 63) / 64; run<<<g, 64>>>(n, x);", "int((n + 63) / 64)", []),
        # the host code's own variables
        ("run<<<rows * 2, 64>>>(n, x);", "grid", ["grid"]),
        ("run<<<x.size(0), 64>>>(n, x);", "grid", ["grid"]),
        # a constant of the file, but here it is the function's own
        ("run<<<WIDE, 64>>>(n, x);", "WIDE", []),
        ("const int WIDE = rows; run<<<WIDE, 64>>>(n, x);", "grid", ["grid"]),
        ("int *p = 0, WIDE(rows); run<<<WIDE, 64>>>(n, x);", "grid", ["grid"]),
        # several values
        ("run<<<n, 64>>>(n, x); run<<<n * 2, 64>>>(n, x);", "grid", ["grid"]),
    ],
)
def test_a_launch_by_the_kernels_arguments(host, grid, asked):
    """By the arguments and the constants of the file. Other values that the host code computes are parameters."""
    assert launched(host, "const int WIDE = 8;\n") == (grid, "64", asked)


@pytest.mark.parametrize(
    ("uses", "before", "grid"),
    [
        ("blockIdx.x", "", "grid"),
        ("blockIdx.y", "", "dim3(grid_x, grid_y, grid_z)"),
        ("threadIdx.z", "", "grid"),
        ("row()", "__device__ int row() { return gridDim .y; }\n", "dim3(grid_x, grid_y, grid_z)"),
        ("blockIdx.x", "__global__ void other(int* x) { x[blockIdx.y] = 0; }\n", "grid"),
    ],
)
def test_a_grid_has_the_dimensions_that_the_kernel_reads(uses, before, grid):
    kernel = f"__global__ void run(int n, float* x) {{ x[{uses}] = n; }}\n"
    assert launched("dim3 g(rows, 2); run<<<g, 64>>>(n, x);", before, kernel)[0] == grid


def test_functions_that_count_blocks_are_kept():
    helper = "inline int blocks_for(const int n) { return (n + 63) / 64; }\n"
    assert launched("run<<<blocks_for(n), 64>>>(n, x);", helper)[0] == "blocks_for(n)"
    of_torch = "inline int blocks_for(const int n) { return at::get_num_threads() + n; }\n"
    assert launched("run<<<blocks_for(n), 64>>>(n, x);", of_torch)[0] == "grid"


def test_a_macro_of_the_files_own_is_the_toolkits():
    """The loop that a file defines is replaced by the toolkit's, which works with any grid."""
    own = "#define CUDA_KERNEL_LOOP(i, n) for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += 64)\n"
    text = own + "__global__ void run(int n, float* x) { CUDA_KERNEL_LOOP(i, n) { x[i] = 0; } }\n"
    assert derive(text)[0]["run"].grid == "CAFFE_GET_BLOCKS(n)"


def test_types_by_other_names():
    text = (
        "#define F_IN const float * __restrict__\ntypedef unsigned char mask_t;\nusing real = double;\n"
        "__global__ void run(F_IN a, mask_t* b, const real c, const long4 d) { b[0] = a[0] < c; }\n"
    )
    launcher = derive(text)[0]["run"]
    c_types = [argument.type for argument in launcher.arguments[:3]]
    assert c_types == ["const float *", "uint8_t *", "double"]
    assert launcher.python_parameters[3:7] == ["d_x", "d_y", "d_z", "d_w"]
    assert "make_long4(d_x, d_y, d_z, d_w)" in launcher.definition()


def test_kernels_of_torchs_own_types_are_left_out():
    _, left_out = derive("__global__ void run(torch::PackedTensorAccessor32<float, 1> x) { x[0] = 1; }\n")
    assert "which C can't give it" in left_out["run"]


def test_a_variable_may_be_called_half():
    text = (
        "const int half = 2;\n__global__ void run(int n, float* x) { int half2 = n / half; x[half2] = 0; }\n"
    )
    launchers, left_out = derive(text)
    assert set(launchers) == {"run"} and not left_out


def test_a_kernel_that_takes_a_function_is_left_out():
    text = (
        "template <typename F, typename T>\n__global__ void run(F f, const T* in, T* out) { out[0] = f(in[0]); }\n"
        "template <typename F, typename T>\nvoid launch(F f, T* in, T* out) { run<F, T><<<1, 1>>>(f, in, out); }\n"
    )
    assert derive(text) == ({}, {"run": "takes a function, f"})
