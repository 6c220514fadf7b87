"""Which kernels run as a plain loop over their threads (kBlocks), and which get their thread as parameters."""

import pytest
from support.rewriting import analyse

from tools.cuda import alone

HEAD = """
__device__ int from_a_function() { return threadIdx.x; }
__device__ int through_two() { return from_a_function(); }
__device__ volatile int* ready;
#define IN_A_MACRO threadIdx.x
#define CALLS_IT from_a_function()
__device__ int macro_in_a_function() { return IN_A_MACRO; }
__device__ int of_the_block() { return blockIdx.x + blockDim.x; }
__device__ float meets(float v) { __syncthreads(); return v; }
__device__ float mine(float* p) { return atomicCAS((int*)p, 0, 1); }
"""


def kernel_of(body: str, head: str = HEAD, template: str = "", path: str = "x.cu"):
    text = f"{head}{template}__global__ void k(int n, float* x, int* c) {{ {body} }}\n"
    return next(kernel for kernel in analyse(text, path) if kernel.name == "k")


INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x; "
# A body, and whether its threads may meet.
MEETS = {
    INDEX + "if (i < n) x[i] = 1;": False,
    INDEX + "while (i < n) { x[i] = 1; i += blockDim.x; }": False,
    INDEX + "do { x[i] = 1; } while (++i < n);": False,
    INDEX + "atomicAdd(x, 1.f);": False,
    INDEX + "for (int k = 0; k < n; ++k) if (k) atomicAdd(x, 1.f);": False,
    INDEX + "c[atomicAdd(c, 1)] = i;": False,
    "__shared__ float s[32]; s[threadIdx.x] = n; x[0] = s[threadIdx.x];": False,
    "x[0] = expf(x[1]); x[2] = max(n, 3);": False,
    "x[0] = from_a_function() + of_the_block();": False,
    "__syncthreads();": True,
    "x[0] = meets(x[1]);": True,
    "x[0] = mine(x);": True,
    "x[0] = __shfl_sync(0xffffffff, x[0], 0);": True,
    "x[0] = __popc(__activemask());": True,
    "if (__any_sync(0xffffffff, n)) x[0] = 1;": True,
    "auto b = cooperative_groups::this_thread_block(); b.sync();": True,
    "volatile int* flag = c; while (*flag == 0) { n++; }": True,
    "while (*ready == 0) { n++; }": True,
    "while (x[0] == 0);": True,
    "while (atomicAdd(c, 0) < n) { x[0] = 1; }": True,
    "for (;;) { int v = atomicOr(c, 0); if (v) break; }": True,
    "while (n) { n = (int)atomicAdd(c, 0); }": True,
    "__threadfence();": False,
    "int v = atomicAdd(c, 1); while (v < n) v += 2;": False,
    "while (n) { __threadfence(); n = c[0]; }": True,
    "again: n = atomicAdd(c, 0); if (n < 3) goto again;": True,
    "do n = atomicAdd(c, 0); while (n < 3);": True,
    "for (;;) if (n) x[0] = 1; else { n = atomicAdd(c, 0); }": True,
}


@pytest.mark.parametrize("body", MEETS)
def test_threads_that_may_meet(body):
    assert kernel_of(body).mode == ("kThreads" if MEETS[body] else "kBlocks")


# A body, and whether it may have threadIdx as a parameter.
PARAMETERS = {
    INDEX: True,
    INDEX + "x[i] = IN_A_MACRO;": True,
    INDEX + "auto f = [&](int k) { return k + threadIdx.x; }; x[i] = f(1);": True,
    INDEX + "int a[3]; a[threadIdx.x % 3] = 1; x[a[0]] = 1;": True,
    "x[of_the_block()] = 1;": True,
    "x[from_a_function()] = 1;": False,
    "x[through_two()] = 1;": False,
    "x[CALLS_IT] = 1;": False,
    "x[macro_in_a_function()] = 1;": False,
    INDEX + "auto f = []() { return threadIdx.x; }; x[i] = f();": False,
    INDEX + "struct S { __device__ int t() { return threadIdx.x; } }; x[i] = S().t();": False,
    "x[::threadIdx.x] = 1;": False,
    INDEX + "while (n) { CUDA_KERNEL_LOOP(j, n) n = j; }": False,
}


@pytest.mark.parametrize("body", PARAMETERS)
def test_what_asks_for_the_thread(body):
    kernel = kernel_of(body)
    assert kernel.mode == "kBlocks" and kernel.asks_as_itself == PARAMETERS[body]


@pytest.mark.parametrize(
    "include, known",
    [
        ("<vector>", True),
        ("<math.h>", True),
        ("<cuda_fp16.h>", True),
        ('"caffe_cuda_macro.h"', True),
        ("<torch/extension.h>", True),
        ("<ATen/cuda/CUDAContext.h>", True),
        ("<ATen/cuda/DeviceUtils.cuh>", False),
        ("<ATen/cuda/detail/KernelUtils.h>", False),
        ("<ATen/native/cuda/block_reduce.cuh>", False),
        ("<c10/cuda/CUDADeviceAssertion.h>", False),
        ("<my_index.h>", False),
        ('"my_index.h"', False),
        ('"../../include/my_index.h"', False),
        (f'"{__file__}"', False),
        ("MY_HEADER", False),
    ],
)
def test_a_header_that_is_not_read(include, known):
    """It may have any function or macro that the kernel's words name."""
    assert kernel_of(INDEX, f"#include {include}\n").mode == ("kBlocks" if known else "kThreads")


def test_a_header_of_a_header_that_is_not_read(tmp_path):
    (tmp_path / "h.cuh").write_text("#include <my_index.h>\n")
    path = str(tmp_path / "x.cu")
    assert kernel_of(INDEX, '#include "h.cuh"\n', path=path).mode == "kThreads"
    (tmp_path / "h.cuh").write_text("#include <vector>\n")
    assert kernel_of(INDEX, '#include "h.cuh"\n', path=path).mode == "kBlocks"


@pytest.mark.parametrize("statement", ["__syncthreads();", "return threadIdx.x;"])
@pytest.mark.parametrize(
    "code",
    [
        "struct Op { __device__ int operator()(int v) { STATEMENT return v; } };",
        "template <typename T> struct Op { static __device__ int call() { STATEMENT return 1; } };",
        "struct V { int v; }; __device__ V operator+(V a, V b) { STATEMENT return a; }",
        "void host() { auto f = [=] __device__ (int v) { STATEMENT return v; }; launch(f); }",
        "__device__ int named() { STATEMENT return 1; }\nvoid host() { launch<named>(); }",
    ],
)
def test_what_a_template_may_call(code, statement):
    """Nothing in the kernel names it."""
    kernel = kernel_of("x[0] = f(1);", code.replace("STATEMENT", statement), "template <typename F> ")
    if statement == "__syncthreads();":
        assert kernel.mode == "kThreads"
    else:
        assert not kernel.asks_as_itself


def test_a_function_that_a_kernel_does_not_call():
    body = "__device__ float sum(float v) { __syncthreads(); return v + threadIdx.x; }\n"
    declared = "__device__ float sum(float v);\n"
    for head in (body, declared + body):
        kernel = kernel_of(INDEX, head)
        assert kernel.mode == "kBlocks" and kernel.asks_as_itself


def test_a_folder_of_any_name_has_the_toolkits_headers(tmp_path):
    """Brackets in the name of the checkout are no pattern."""
    root = tmp_path / "a[b]*"
    (root / "cuffi" / "a_wing" / "include").mkdir(parents=True)
    found = alone.own_folders(str(root))
    assert found == [str(root / folder) for folder in ("include", "include/host", "cuffi/a_wing/include")]
