"""make new FROM=: the grid and block of a launcher."""

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
