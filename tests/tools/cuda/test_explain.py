"""What `explain` says of each kernel, and the page's worked example."""

import re

import pytest
from conftest import ROOT

from tools.cuda.explain import main

KERNELS = """__device__ float sum(float v) { return v + __shfl_xor_sync(~0u, v, 1); }
__device__ float early(float v) { if (v > 0) return v; return sum(v); }
__device__ int own_index() { return threadIdx.x; }
__global__ void rows(float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = 1; }
__global__ void strides(float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = 1; }
__global__ void warps(float* y) { float v = 1; v = sum(v); y[threadIdx.x] = v; }
__global__ void returns(float* y) { float v = 1; v = early(v); y[0] = v; }
__global__ void spins(volatile int* flag) { while (*flag == 0); }
__global__ void sets(float* y) { y[own_index()] = 1; }
__global__ void fences(float* y) {
  y[0] = __shfl_sync(~0u, 1.f, 0);
  while (y[0] > 1) __threadfence();
}
"""
SAID = """x.cu:4: rows: a loop over the threads of a row of blocks
x.cu:5: strides: one loop over the grid's range, in parts
x.cu:7: warps: warps: a loop over 32 lanes between two places where they meet
x.cu:8: returns: fibres: each thread has a stack of its own, on which it waits
    x.cu:8: early does not end with its only return
x.cu:9: spins: fibres: each thread has a stack of its own, on which it waits
    x.cu:9: a loop without a body, which may wait for another thread
    x.cu:9: volatile, memory that another thread may change
x.cu:10: sets: a loop over a block's threads; threadIdx is set for each, because a function asks for it
    x.cu:10: names own_index, which has threadIdx, the thread's index
x.cu:11: fences: fibres: each thread has a stack of its own, on which it waits
    x.cu:13: __threadfence, a fence
"""


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_way(in_folder, capsys):
    (in_folder / "x.cu").write_text(KERNELS)
    assert main(["x.cu"]) == 0
    assert capsys.readouterr().out == SAID


def test_headers_and_loops_of_the_toolkit(in_folder, capsys):
    (in_folder / "own.cuh").write_text(
        "__device__ inline void wait(int* p) { while (atomicCAS(p, 0, 1)) ; }\n"
    )
    head = '#include "own.cuh"\n#include <unknown/api.h>\n__global__ void k(int* p, int n) {\n'
    loop = "  CUDA_KERNEL_LOOP(i, n) {\n    if (p[i]) return;\n    wait(p);\n  }\n}\n"
    (in_folder / "x.cu").write_text(head + loop)
    assert main(["x.cu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "    x.cu:2: includes <unknown/api.h>, which is not read here" in lines
    assert "    x.cu:5: a return in the loop ends the thread" in lines
    assert "    x.cu:6: names wait, which has atomicCAS, an atomic by which threads may wait" in lines


def test_the_text_after_each_pass_is_the_whole_texts(in_folder, capsys):
    (in_folder / "x.cu").write_text(KERNELS)
    assert main(["x.cu", "--text"]) == 0
    text = capsys.readouterr().out
    assert "-- functions in which threads meet" in text and "caffe_in1" in text
    assert "warp_xor" in text or "move_xor" in text


def test_exit_statuses(in_folder, capsys):
    assert main(["none.cu"]) == 2
    said = "none.cu: No such file or directory: give the path of a .cu file\n"
    assert capsys.readouterr().err == f"python -m tools.cuda.explain: {said}"
    (in_folder / "x.cu").write_text("__global__ void k() { __cluster_dims__x(); }\n")
    assert main(["x.cu"]) == 1
    assert "x.cu:1:23: error: __cluster_dims__x has a meaning on a GPU alone" in capsys.readouterr().err
    (in_folder / "x.cu").write_text("int f();\n")
    assert main(["x.cu"]) == 0
    assert capsys.readouterr().out == "x.cu: there is no kernel\n"


def test_the_worked_example_is_what_the_command_prints(in_folder, capsys):
    page = (ROOT / "docs/architecture/toolkit.md").read_text()
    _, _, section = page.partition("### One kernel, pass by pass\n")
    text, shown = re.findall(r"^```(?:cuda)?\n(.*?)^```$", section, re.M | re.S)[:2]
    (in_folder / "sums.cu").write_text(text)
    assert main(["sums.cu", "--text"]) == 0
    assert capsys.readouterr().out == shown
