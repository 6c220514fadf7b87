"""make new FROM=: what the launchers of kernels look like."""

import re

import pytest
from support.new_layer import derive

from tools.new_layer.caffe_file import split
from tools.new_layer.from_caffe import python_functions
from tools.new_layer.from_kernels import make_launchers
from tools.new_layer.naming import launcher_name, snake_case


def kernel(parameters, body="", template="template <typename Dtype>", launch="", host=""):
    return (
        f"{template}\n__global__ void Run({parameters}) {{ {body} }}\n"
        f"template <typename Dtype> void FooLayer<Dtype>::Forward_gpu() {{ {host} {launch} }}\n"
    )


LOOP = "CUDA_KERNEL_LOOP(i, n) { x[i] = 0; }"


@pytest.mark.parametrize(
    ("parameter", "c_type", "given"),
    [
        ("const Dtype* const p", "const void *", "static_cast<const Dtype*>(p)"),
        ("Dtype * __restrict__ p", "void *", "static_cast<Dtype*>(p)"),
        ("Dtype p[]", "void *", "static_cast<Dtype*>(p)"),
        ("const Dtype p", "double", "static_cast<Dtype>(p)"),
        ("const int* p", "const int32_t *", "p"),
        ("unsigned int* p", "int32_t *", "reinterpret_cast<unsigned int*>(p)"),
        ("const float* p", "const float *", "p"),
        ("const bool p", "bool", "p"),
        ("unsigned p", "uint32_t", "p"),
        ("size_t p", "uint64_t", "p"),
        ("long long* p", "int64_t *", "reinterpret_cast<long long*>(p)"),
        ("char* p", "int8_t *", "reinterpret_cast<char*>(p)"),
    ],
)
def test_parameter_types(parameter, c_type, given):
    launchers, _ = derive(kernel(f"const int n, Dtype* x, {parameter}", LOOP))
    argument = launchers["Run"].arguments[2]
    assert (argument.type, argument.value) == (c_type, given)


@pytest.mark.parametrize(
    "parameter", ["const Dtype** p", "const Point<Dtype> p", "Dtype& p", "const dim3 p", "void (*p)(int)"]
)
def test_parameter_types_that_c_lacks(parameter):
    launchers, left_out = derive(kernel(f"const int n, Dtype* x, {parameter}", LOOP))
    assert not launchers and left_out["Run"]


@pytest.mark.parametrize(
    ("text", "grid", "block", "shared"),
    [
        (kernel("const int n, Dtype* x", LOOP), "CAFFE_GET_BLOCKS(n)", "CAFFE_CUDA_NUM_THREADS", "0"),
        (
            kernel("const int a, const int b, Dtype* x", "CUDA_KERNEL_LOOP(i, a * b) { x[i] = 0; }"),
            "CAFFE_GET_BLOCKS(count)",
            "CAFFE_CUDA_NUM_THREADS",
            "0",
        ),
        (
            kernel(
                "Dtype* x, int n", "x[threadIdx.x] = 0;", launch="Run<Dtype><<<m_ * 2, 64, 32>>>(x, m_ * 2);"
            ),
            "n",
            "64",
            "32",
        ),
        (
            "const int kThreads = 32;\n"
            + kernel(
                "Dtype* x, int n",
                "x[threadIdx.x] = 0;",
                launch="Run<Dtype><<<dim3(n, 2), kThreads, n * sizeof(Dtype)>>>(x, n);",
            ),
            "dim3(n, 2)",
            "kThreads",
            "n * sizeof(Dtype)",
        ),
        (
            kernel("Dtype* x", "x[threadIdx.x] = 0;", launch="Run<Dtype><<<m_, t_, s_>>>(x);"),
            "grid",
            "block",
            "shared_bytes",
        ),
        (
            kernel(
                "Dtype* x", "x[blockIdx.y] = 0;", host="dim3 g(a_, 2);", launch="Run<Dtype><<<g, t_>>>(x);"
            ),
            "dim3(grid_x, grid_y, grid_z)",
            "block",
            "0",
        ),
        (
            kernel("Dtype* grid", "grid[threadIdx.x] = 0;", launch="Run<Dtype><<<m_, t_>>>(grid);"),
            "grid_",
            "block",
            "0",
        ),
        (
            kernel("Dtype* x, int n", "x[threadIdx.x] = 0;"),
            "dim3(grid_x, grid_y, grid_z)",
            "dim3(block_x, block_y, block_z)",
            "0",
        ),
    ],
)
def test_geometry(text, grid, block, shared):
    launcher = derive(text)[0]["Run"]
    assert (launcher.grid, launcher.block, launcher.shared) == (grid, block, shared)
    # what the launch needs and the kernel does not give is a parameter
    for word in re.findall(r"\b(?:grid|block|shared)\w*", f"{grid} {block} {shared}"):
        assert word in launcher.python_parameters


def test_launches_that_differ_leave_it_to_the_caller():
    launches = "Run<Dtype><<<8, 64>>>(x); Run<Dtype><<<16, 64>>>(x);"
    assert derive(kernel("Dtype* x", "x[threadIdx.x] = 0;", launch=launches))[0]["Run"].grid == "grid"


def test_template_parameters():
    sized = "template <typename Dtype, int size>"
    launches = "Run<Dtype, 3><<<1, 1>>>(x); Run<Dtype, 5><<<1, 1>>>(x);"
    launcher = derive(kernel("Dtype* x", "x[0] = 0;", sized, launches))[0]["Run"]
    assert launcher.instances == [("size == 3", "Dtype, 3"), ("size == 5", "Dtype, 5")]
    assert launcher.python_parameters == ["x", "size"] and "throw caffe::Error" in launcher.definition()
    launches = "Run<Dtype, K><<<1, 1>>>(x);"
    _, left_out = derive(kernel("Dtype* x", "x[0] = 0;", sized, launches))
    assert "size" in left_out["Run"]
    launcher = derive(kernel("T* x", "x[0] = 0;", "template <typename T>", "Run<float><<<1, 1>>>(x);"))[0][
        "Run"
    ]
    assert not launcher.dispatch and launcher.arguments[0].type == "float *"


def test_names():
    assert snake_case("MaxPoolForward") == "max_pool_forward" and snake_case("ROIPool") == "roi_pool"
    assert snake_case("kernel_channel_max") == "kernel_channel_max"
    assert launcher_name("relu", "ReLUForward") == "relu_forward"
    assert launcher_name("roi_pool", "ROIPoolForward") == "roi_pool_forward"
    assert launcher_name("softmax", "kernel_exp") == "softmax_kernel_exp"


def test_names_that_clash():
    body = "{ x[0] = 0; }\n"
    launchers, _ = make_launchers(
        "foo",
        split(
            f"namespace a {{ __global__ void Run(float* x) {body} }}\n"
            f"namespace b {{ __global__ void Run(float* x) {body} }}\n"
            f"__global__ void foo_walk(float* x) {body}",
            "foo_layer.cu",
        ),
    )
    assert [x.name for x in launchers] == ["foo_run", "foo_run_2", "foo_walk_launch"]
    assert [x.callee for x in launchers] == ["a::Run", "b::Run", "foo_walk"]


@pytest.mark.parametrize(
    ("given", "pointer"), [(["float", "half"], "float *"), (["float", "double", "half"], "void *")]
)
def test_half_types_are_left_out(given, pointer):
    launches = "".join(f"Run<{name}><<<1, 1>>>(x);" for name in given)
    text = "using half = __half;\n" + kernel("T* x", "x[0] = 0;", "template <typename T>", launches)
    assert derive(text)[0]["Run"].arguments[0].type == pointer


@pytest.mark.parametrize("classes", [["Add"], ["Add", "Add"], ["Add", "Mul"], ["float"], ["float", "double"]])
def test_a_template_parameter_that_stands_for_a_class(classes):
    """One class of the file's own is compiled for; two would be two launchers."""
    own = "struct Add { int a; };\nstruct Mul { int a; };\n"
    launches = "".join(
        f"Run<Dtype, {c}><<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, x);" for c in classes
    )
    text = kernel("const int n, Dtype* x", LOOP, "template <typename Dtype, typename Op>", launches)
    launchers, left_out = derive(own + text)
    if "Mul" in classes:
        assert left_out == {"Run": "has a template parameter Op that stands for a class"}
    else:
        other = classes[0] if len(set(classes)) == 1 else "Dtype"
        assert launchers["Run"].instances == [("", f"Dtype, {other}")]


@pytest.mark.parametrize(
    ("kernels", "functions"),
    [
        ("Run Walk", {"foo": ["foo_run", "foo_walk"]}),
        ("FooForward FooBackward Other", {"foo": ["foo_forward", "foo_backward"]}),
        ("a_b_forward a_b_backward", {"a_b": ["foo_a_b_forward", "foo_a_b_backward"]}),
        (
            "ForwardTrain ForwardFooTrain",
            {"foo_train": ["foo_forward_train"], "foo_train_": ["foo_forward_foo_train"]},
        ),
        ("not_filled_in_forward", {"not_filled_in_": ["foo_not_filled_in_forward"]}),
    ],
)
def test_functions_of_python_have_names_of_their_own(kernels, functions):
    text = "".join(
        f"__global__ void {name}(const int n, float* x) {{ {LOOP} }}\n"
        f"void L_{name}() {{ {name}<<<CAFFE_GET_BLOCKS(n), CAFFE_CUDA_NUM_THREADS>>>(n, x); }}\n"
        for name in kernels.split()
    )
    made = python_functions("foo", list(derive(text)[0].values()))
    assert {name: [launcher.name for launcher in several] for name, several in made.items()} == functions
