"""The analysis of a kernel: its launches, its loops, and whether the host may run it as a range (kRange)."""

import pytest
from support.rewriting import analyse


def test_analysis_reads_local_headers(tmp_path):
    (tmp_path / "h.cuh").write_text(
        "__device__ int me() { return threadIdx.x; }\n__global__ void in_header() {}\n"
    )
    text = '#include "h.cuh"\n__global__ void k(int n, int* x) { CUDA_KERNEL_LOOP(i, n) x[i] = me(); }\n'
    kernels = analyse(text, str(tmp_path / "x.cu"))
    assert [kernel.name for kernel in kernels] == ["k", "in_header"]
    assert kernels[0].has_loop and kernels[0].uses_thread_identity and kernels[0].mode == "kBlocks"


def test_a_local_loop_macro_is_what_its_body_says():
    loop = "#define CUDA_KERNEL_LOOP(i, n) for (int i = blockIdx.x; i < n; i += gridDim.x)\n"
    kernel = "__global__ void k(int n, int* x) { CUDA_KERNEL_LOOP(i, n) x[i] = 1; }\n"
    assert analyse(kernel, "x.cu")[0].mode == "kRange"
    assert analyse(loop + kernel, "x.cu")[0].mode == "kBlocks"


@pytest.mark.parametrize(
    "body, mode",
    [
        ("CUDA_KERNEL_LOOP(i, n) { int t = 0; t += i; x[i] = t; }", "kRange"),
        ("CUDA_KERNEL_LOOP(i, n) { int t = 0; while (t < i) { int u = t; t = u + 1; } x[i] = t; }", "kRange"),
        ("int t = 0; CUDA_KERNEL_LOOP(i, n) { t += i; x[i] = t; }", "kBlocks"),
        ("while (n) { int t = 0; CUDA_KERNEL_LOOP(i, n) { t += i; x[i] = t; } break; }", "kBlocks"),
        ("for (int t = 0; t < 2;) { CUDA_KERNEL_LOOP(i, n) { t += i; x[i] = t; } }", "kBlocks"),
        ("if (n) { int t = 0; CUDA_KERNEL_LOOP(i, n) { t += i; x[i] = t; } }", "kBlocks"),
    ],
)
def test_what_one_index_leaves_to_the_next(body, mode):
    """A variable from outside of the kernel's loop, declared anywhere."""
    assert analyse(f"__global__ void k(int n, int* x) {{ {body} }}\n", "x.cu")[0].mode == mode


HEAD = """
struct Point { int x; int a[2]; };
__device__ void sees(const int& a) {}
__device__ void takes(int* a) { *a = 1; }
"""


def mode_of(body: str) -> str:
    body = body.replace("LOOP", "CUDA_KERNEL_LOOP(i, n)")
    return analyse(f"{HEAD}__global__ void k(int n, int* x, Point* q) {{ {body} }}\n", "x.cu")[0].mode


# A statement, and whether it writes to memory rather than to the thread's own variables.
WRITES = {
    "int t = 0; t = 1;": False,
    "int t = 0; ++t;": False,
    "n = 3;": False,
    "int t[2]; t[1] = 1;": False,
    "int t[2][2]; t[1][0] = 1;": False,
    "Point p; p.x = 1;": False,
    "Point p[2]; p[1].x = 1;": False,
    "x[0] = 1;": True,
    "++x[0];": True,
    "q->x = 1;": True,
    "q->x++;": True,
    "q[1].x = 1;": True,
    "(*q).x = 1;": True,
    "Point* p = q; p->x = 1;": True,
    "Point* p[2]; p[1]->x = 1;": True,
    "int* p = x; *p = 1;": True,
    "int* p = x; p[0] = 1;": True,
    "int& r = x[0]; r = 1;": True,
    "at(x) = 1;": True,
}


@pytest.mark.parametrize("statement", WRITES)
def test_what_is_written_beside_the_loop(statement):
    """Each thread writes this memory once. A range would write it once for many threads."""
    assert mode_of(statement + " LOOP x[i] = 1;") == ("kBlocks" if WRITES[statement] else "kRange")


# What a turn of the loop does, and whether the next one sees it.
CHANGES = {
    "Point p; LOOP { p.x += i; x[i] = p.x; }": True,
    "Point p; LOOP { p.a[0] += i; x[i] = p.a[0]; }": True,
    "Point p; LOOP { (p.a)[0] += i; x[i] = p.a[0]; }": True,
    "Point p; LOOP { int& r = p.a[1]; r += i; x[i] = r; }": True,
    "Point p[2]; LOOP { p[0].x += i; x[i] = p[0].x; }": True,
    "Point p[2]; LOOP { p[0].a[1] += i; x[i] = p[0].a[1]; }": True,
    "int t[2]; LOOP { t[0] += i; x[i] = t[0]; }": True,
    "int t = 0; LOOP { (t) += i; x[i] = t; }": True,
    "int t = 0; LOOP { int& r = t; r += i; x[i] = r; }": True,
    "int t = 0; LOOP { takes(&t); x[i] = t; }": True,
    "int t = 0, u = 1; LOOP { swap(t, u); x[i] = t; }": True,
    "int* p = x; LOOP { *p++ = i; }": True,
    "LOOP { Point p; p.a[0] += i; x[i] = p.a[0]; }": False,
    "LOOP { int t = 0; takes(&t); x[i] = t; }": False,
    "int t = 0; LOOP { const int& r = t; x[i] = r; }": False,
    "int t = 0; LOOP { sees(t); x[i] = t; }": False,
    "int* p = x; LOOP { p[i] = i; }": False,
    "LOOP { q->x = i; }": False,
    "LOOP { q->a[1] = i; }": False,
    "LOOP { q[i].x = i; }": False,
}


@pytest.mark.parametrize("body", CHANGES)
def test_what_a_turn_changes(body):
    assert mode_of(body) == ("kBlocks" if CHANGES[body] else "kRange")
