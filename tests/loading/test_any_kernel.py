"""load_inline of kernels as people have them: templates, halves, values in parts, no tensor."""

import pytest
import torch

from cuffi import CaffeBuildError, CaffeTypeError, load_inline

pytestmark = pytest.mark.usefixtures("cache")


def test_template_values_that_the_caller_gives():
    text = """#include <cuda_fp16.h>
    template <typename T, int TILE> __global__ void up(const T* x, T* y) {
      y[threadIdx.x] = x[threadIdx.x] * T(TILE);
    }"""
    with pytest.raises(CaffeBuildError, match=r"TILE whose values are unknown; give them: .*\"float, 16\""):
        load_inline("m", text, backends="host")
    up = load_inline("m", text, backends="host", instances={"up": ["float, 16", "half, 4"]}).up
    for dtype in (torch.float32, torch.float16):
        x, y = torch.rand(8).to(dtype), torch.empty(8, dtype=dtype)
        for tile in (16, 4):
            up(x, y, tile, 1, 1, 1, 8, 1, 1)
            torch.testing.assert_close(y, x * tile)
    with pytest.raises(Exception, match=r"expected float32 or float16 \(its template .* got cpu float64"):
        up(x.double(), x.double(), 4, 1, 1, 1, 8, 1, 1)
    with pytest.raises(Exception, match="compiled for TILE == 16 or TILE == 4 only"):
        up(x, y, 8, 1, 1, 1, 8, 1, 1)


@pytest.mark.parametrize("instances", [{"up": []}, {"up": [4]}, {4: ["4"]}, ["up"], "up"])
def test_instances_that_are_none(instances):
    with pytest.raises(CaffeTypeError, match="load_inline: instances: expected template arguments by kernel"):
        load_inline("m", "__global__ void up(float* x) {}", backends="host", instances=instances)


def test_instances_of_no_kernel():
    with pytest.raises(CaffeBuildError, match="instances: it has no kernel down"):
        load_inline("m", "__global__ void up(float* x) {}", backends="host", instances={"down": "4"})


def test_only_the_combinations_that_the_file_launches():
    """Sixteen are too many to compile; the file launches two."""
    text = """template <int A, int B, bool C, bool D> __global__ void k(float* y) {
      *y = 1000 * A + 100 * B + 10 * C + D;
    }
    void run(int way, float* y) {
      if (way) k<1, 2, true, false><<<1, 1>>>(y);
      else k<3, 4, false, true><<<1, 1>>>(y);
      k<3, 4, false, false><<<1, 1>>>(y); k<5, 2, false, true><<<1, 1>>>(y);
    }"""
    k, y = load_inline("m", text, backends="host").k, torch.empty(1)
    k(y, 1, 2, True, False)
    assert y.item() == 1210
    k(y, 3, 4, False, True)
    assert y.item() == 3401
    with pytest.raises(Exception, match="compiled for"):
        k(y, 1, 4, True, False)


@pytest.mark.parametrize("declared", ["extern __constant__ float scale[2];", "extern float scale[];"])
def test_a_constant_that_a_header_declares(tmp_path, declared):
    (tmp_path / "k.cuh").write_text(f"{declared}\n")
    (tmp_path / "k.cu").write_text(
        '#include "k.cuh"\n__constant__ float scale[2];\n'
        "__global__ void k(float* y) { y[threadIdx.x] = scale[threadIdx.x]; }\n"
        "void run(float* y) { k<<<1, 2>>>(y); }\n"
    )
    y = torch.empty(2)
    load_inline("m", tmp_path / "k.cu", backends="host").k(y, torch.tensor([2.0, 5.0]))
    assert y.tolist() == [2, 5]


def test_complex_numbers_and_pairs_by_value():
    text = """#include <cuComplex.h>
    #include <cuda_fp16.h>
    __global__ void axpy(int n, cuDoubleComplex a, const cuDoubleComplex* x, cuDoubleComplex* y) {
      for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = cuCadd(y[i], cuCmul(a, x[i]));
    }
    __global__ void pair(half2 a, half2* y) { y[threadIdx.x] = a; }
    """
    m = load_inline("m", text, backends="host")
    x, y = torch.randn(9, dtype=torch.complex128), torch.randn(9, dtype=torch.complex128)
    expected = y + (2 - 3j) * x
    m.axpy(9, (2.0, -3.0), x, y, 1, 1, 1, 4, 1, 1)
    torch.testing.assert_close(y, expected)
    h = torch.empty(2, 2, dtype=torch.float16)
    m.pair((1.5, -2.0), h, 1, 1, 1, 2, 1, 1)
    assert h.tolist() == [[1.5, -2], [1.5, -2]]


def test_a_kernel_without_a_tensor(capfd):
    """A tensor says which device runs it."""
    text = '#include <stdio.h>\n__global__ void hello(int n) { printf("%d of %d\\n", threadIdx.x, n); }\n'
    text += "int main() { hello<<<1, 2>>>(7); }\n"
    load_inline("m", text, backends="host").hello(7, torch.empty(0))
    assert capfd.readouterr().out == "0 of 7\n1 of 7\n"


def test_macros_of_the_projects_makefile():
    text = """#if defined(GPU)
    __global__ void fill(float* y) {
      float own[SIZE];
      for (int i = 0; i < SIZE; ++i) own[i] = i;
      assert(SIZE == 4);  // unless a macro that counts before <assert.h> says otherwise
      y[threadIdx.x] = own[SIZE - 1];
    }
    #endif
    void run(float* y) { fill<<<1, SIZE>>>(y); }"""
    y = torch.zeros(5)
    load_inline("m", text, backends="host", macros={"GPU": "", "SIZE": 4}).fill(y)
    assert y.tolist() == [3, 3, 3, 3, 0]
    load_inline("m", text, backends="host", macros={"NDEBUG": "", "GPU": "", "SIZE": 5}).fill(y)
    assert y.tolist() == [4] * 5


@pytest.mark.parametrize(
    "macros", [["GPU"], {"a b": 1}, {1: 2}, {"A": "1\n#define B"}, {"A": "1\\"}, {"A": "/*"}]
)
def test_macros_that_are_none(macros):
    with pytest.raises(CaffeTypeError, match="load_inline: macros: expected values by name"):
        load_inline("m", "__global__ void up(float* x) {}", backends="host", macros=macros)


def test_types_of_pointers_in_a_launch():
    """The launch deduces the template's types."""
    text = """#include <cuda_fp16.h>
    template <typename T> __global__ void twice(const T* x, T* y) { y[threadIdx.x] = T(2 * float(x[threadIdx.x])); }
    void run(int dtype, const void* x, void* y) {
      if (dtype) twice<<<1, 8>>>(static_cast<const __half*>(x), static_cast<__half*>(y));
      else twice<<<1, 8>>>(static_cast<const float*>(x), static_cast<float*>(y));
    }"""
    twice = load_inline("m", text, backends="host").twice
    for dtype in (torch.float32, torch.float16):
        x, y = torch.rand(8).to(dtype), torch.empty(8, dtype=dtype)
        twice(x, y)
        torch.testing.assert_close(y, 2 * x)


def test_a_barrier_of_the_whole_grid():
    """The launcher of a kernel that names this_grid launches cooperatively."""
    text = """#include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    template <typename T> __global__ void turned(const T* x, T* y, T* z, int n) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = 2 * x[i];
      cg::this_grid().sync();
      if (i < n) z[i] = y[n - 1 - i];
    }"""
    turned = load_inline("m", text, backends="host").turned
    x = torch.randn(300)
    y, z = torch.zeros(300), torch.zeros(300)
    turned(x, y, z, 300, 10, 1, 1, 32, 1, 1)
    assert torch.equal(z, 2 * x.flip(0))


def test_grid_and_block_have_the_same_names_in_every_launcher():
    """The second kernel's own parameter has the name of one of them."""
    text = """
    __global__ void line(int* y) { atomicAdd(y, blockDim.x); }
    __global__ void own(int* y, int grid_y) { atomicAdd(y, grid_y * gridDim.x * gridDim.y); }
    """
    m = load_inline("m", text, backends="host")
    for given in (dict(grid=3, block=4), dict(grid_x=3, block_x=4), dict(grid=(3, 1), block=[4])):
        y = torch.zeros(1, dtype=torch.int32)
        m.line(y, **given)
        assert y.item() == 3 * 4 * 4
    y = torch.zeros(1, dtype=torch.int32)
    m.own(y, 100, grid=(2, 5), block=1)
    assert y.item() == 100 * 10 * 10
    with pytest.raises(CaffeTypeError, match="grid_y: missing"):
        m.own(y, grid=(2, 5), block=1)
