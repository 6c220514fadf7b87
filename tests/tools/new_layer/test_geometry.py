"""The grid and block of a launcher."""

import re

import pytest
from support.new_layer import LOOP, derive, kernel


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
                host="const int n = bottom[0]->num();",
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


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("", "extern __shared__ float s[]; x[0] = s[0];"),
        ("", "extern __shared__ __align__(16) float s[][4]; x[0] = s[0][0];"),
        ("extern __shared__ float s[];", "x[0] = s[0];"),
        ("#define S(T, s) extern __shared__ T s[]\n", "S(float, s); x[0] = s[0];"),
        ("__device__ float* s() { extern __shared__ float own[]; return own; }", "x[0] = *s();"),
        (
            "__device__ float* s() { extern __shared__ float own[]; return own; }\n"
            "__device__ float first() { return *s(); }",
            "x[0] = first();",
        ),
        (
            "template <typename T> struct Shared { __device__ operator T*() { extern __shared__ int b[]; "
            "return (T*)b; } };",
            "float* s = Shared<float>(); x[0] = *s;",
        ),
    ],
)
def test_a_kernel_with_dynamic_shared_memory_asks_for_its_bytes(before, body):
    other = "__global__ void Other(float* x) { x[0] = 1; }\n"
    text = f"{before}\n{other}__global__ void Run(float* x) {{ {body} }}\n"
    launchers = derive(text)[0]
    assert [launchers[name].shared for name in ("Run", "Other")] == ["shared_bytes", "0"]


def test_two_kernels_with_one_text_ask_for_their_axes():
    body = "{ x[threadIdx.x] = blockIdx.y; }\n"
    text = "".join(f"__global__ void {name}(float* x) {body}" for name in ("Run", "Other"))
    launchers = derive(text + "void go(float* x, dim3 g) { Run<<<g, 8>>>(x); Other<<<g, 8>>>(x); }\n")[0]
    assert launchers["Run"].grid == launchers["Other"].grid == "dim3(grid_x, grid_y, grid_z)"


@pytest.mark.parametrize(
    ("host", "asks"),
    [
        ("void run(float* x, int n) { k<<<1, n, n * sizeof(float)>>>(x, n); }", True),
        ("void run(double* x, int n) { int b = 8 * n; k<<<1, n, b>>>(x, n); }", True),
        ("void run(float* x, int n) { k<<<1, n>>>(x, n); }", False),
        ("void run(float* x, int n) { k<float><<<1, n, n * sizeof(float)>>>(x, n); }", False),
        (
            "void run(float* x, double* y, int n) { k<<<1, n, 8 * n>>>(x, n); k<<<1, n, 8 * n>>>(y, n); }",
            False,
        ),
    ],
)
def test_shared_memory_of_a_type_that_the_file_does_not_launch(host, asks):
    """double got the bytes of float: half of what it used."""
    kernel = (
        "template <class T> __global__ void k(T* x, int n) { extern __shared__ char s[]; ((T*)s)[n] = *x; }\n"
    )
    launcher = derive(kernel + host)[0]["k"]
    assert ("shared_bytes" in launcher.python_parameters) is asks
