"""make new FROM=: features of torch extensions that Caffe layers lack."""

import importlib

import pytest
import torch
from conftest import make
from support.new_layer import derive, new_from
from support.workshop import made_once

from cuffi.runtime.cases import load_package
from tools.new_layer.caffe_file import split

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


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (
            "void run(int n, float* x) { x[0] = c10::Half(n); }",
            "uses c10::Half, which only torch's headers have",
        ),
        ("void run(torch::PackedTensorAccessor32<float, 1> x) { x[0] = 1; }", "which C can't give it"),
    ],
)
def test_kernels_of_torchs_own_types_are_left_out(kernel, why):
    _, left_out = derive(f"__global__ {kernel}\n")
    assert why in left_out["run"]


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


# A kernel with sizes in vectors, names from a header in the folder `include`, and a grid by several host numbers. A
# name that begins with TH is not always torch's.
SHIFT = """#include <ATen/ATen.h>
#include <THC/THCAtomics.cuh>
#include <THC/THCDeviceUtils.cuh>
#include "shift_utils.h"

const int THREADS_PER_ROW = sizeof(int) * 8;
using namespace shifts;
using at::Half;

template <>
__device__ c10::Half shifted(c10::Half x) { return x; }
using half = __half;
__device__ half operator+(const half& a, const half& b) { return __hadd(a, b); }

template <typename scalar_t>
__global__ void add_forward(const scalar_t* in, const long2 size, scalar_t* out, int64_t* done) {
  const int row = blockIdx.x, column = blockIdx.y * THREADS_PER_ROW + threadIdx.x;
  if (column >= size.y) return;
#if  __CUDA_ARCH__ >= 700 // has shuffles
  __syncwarp();
#endif
  if (THCCeilDiv(column + 1, 2) > 0) gpuAtomicAdd(done, int64_t(1));
  out[row * size.y + column] = shifted(in[row * size.y + column]);
}

void shift_forward_cuda(const at::Tensor& in, at::Tensor& out, at::Tensor& done) {
  const long2 size = make_long2(in.size(0), in.size(1));
  const auto rows = in.size(0);
  const int columns = in.size(1);
  dim3 blocks(rows, at::cuda::ATenCeilDiv(columns, THREADS_PER_ROW));
  dim3 threads(threads_of(columns));
  AT_DISPATCH_FLOATING_TYPES(in.type(), "shift", ([&] {
    add_forward<scalar_t><<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
        in.data<scalar_t>(), size, out.data<scalar_t>(), done.data<int64_t>());
  }));
}
"""
SHIFT_UTILS = """#pragma once
#define SHIFT 3
namespace shifts {
template <typename T>
__host__ __device__ T shifted(T x) { return x + SHIFT; }
}
inline int threads_of(int columns) { return columns > 0 ? 32 : 1; }
"""


@pytest.fixture(scope="module")
def shift(shared_folder):
    """The layer made from the files above, built for the host."""
    folder = made_once(shared_folder / "shift_extension", build_shift)
    return importlib.import_module(f"{load_package(folder / 'layers', 'new_extensions')}.shift")


def build_shift(folder):
    (folder / "include").mkdir(parents=True)
    (folder / "src").mkdir()
    (folder / "include" / "shift_utils.h").write_text(SHIFT_UTILS)
    (folder / "shift_cuda.cpp").write_text(
        "at::Tensor shift(at::Tensor in) { shift_forward_cuda(in, out, done); }"
    )
    (folder / "src" / "other.cpp").write_text("void other();")
    done = new_from(folder, "shift", SHIFT, file="src/shift_kernel.cu")
    assert done.returncode == 0, done.stderr
    assert "and check the sizes: ../shift_cuda.cpp.\n" in done.stdout
    assert "On the processor" not in done.stdout
    assert "// These files call its host code" in (folder / "layers" / "shift" / "shift.cu").read_text()
    done = make("libraries", f"LAYERS_DIR={folder}/layers", "NVCC=", timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(5, 70), (1, 1), (3, 32)])
def test_an_extension_computes(shift, dtype, shape):
    x = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(1))
    out, done = torch.empty_like(x), torch.zeros(1, dtype=torch.int64)
    rows, columns = shape
    shift.layer.shift_add_forward(x, *shape, out, done, rows, -(-columns // 32), 1, 32)
    assert torch.equal(out, x + 3) and done.item() == x.numel()


@pytest.mark.parametrize(
    ("includes", "kernel", "kept"),
    [
        (
            "#include <cooperative_groups.h>\nusing namespace cooperative_groups;\n",
            "thread_block b = this_thread_block(); b.sync(); x[0] = n;",
            ["<cooperative_groups.h>"],
        ),
        (
            "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
            "namespace cg = cooperative_groups;\n",
            "cg::this_thread_block().sync(); x[0] = n;",
            ["<cooperative_groups.h>", "<cooperative_groups/reduce.h>"],
        ),
        (
            "#include <cub/cub.cuh>\n",
            "typedef cub::BlockReduce<float, 64> Reduce; x[0] = n;",
            ["<cub/cub.cuh>"],
        ),
        ("#include <cub/cub.cuh>\n", "x[0] = n;", []),  # only its host code sorts
        ("#include <mma.h>\nusing namespace nvcuda;\n", "wmma::fragment<int> a; x[0] = n;", ["<mma.h>"]),
    ],
)
def test_headers_that_kernels_need(includes, kernel, kept):
    """Without them nothing compiled, and the host compiler reported it instead of the toolkit."""
    text = f"{includes}__global__ void run(int n, float* x) {{ {kernel} }}\nvoid f() {{ cub::DeviceScan::Sum(); }}\n"
    parts = split(text, "/x/foo.cu")
    assert [include for include in parts.kept_includes if include != "<stdio.h>"] == kept
    assert ("using namespace" in includes) == ("using namespace" in parts.device)


def test_a_folder_with_the_name_of_a_source_is_no_source(tmp_path):
    (tmp_path / "host.cpp").mkdir()
    text = KERNEL + "void run_it(int n, float* x) { run<<<1, 64>>>(n, x); }\n"
    done = new_from(tmp_path, "beside", text)
    assert done.returncode == 0, done.stderr
