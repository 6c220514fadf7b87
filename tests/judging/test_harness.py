"""The main() that a file of kernels gets."""

import pytest

from cuffi.judge import judge
from cuffi.judging.harness import harness
from cuffi.judging.limits import Limits
from tools.cuda.analysis import Unit


def made(text: str) -> str:
    return harness(Unit(text, "k.cu"))


def test_a_kernel_by_its_types():
    text = made("template <typename T, int N>\n__global__ void k(T* a, int n) { a[threadIdx.x] = n; }\n")
    assert "decltype(&k<float, 32>)" in text and "judge_function(a, n)" in text
    assert "configure(dim3(1), dim3(blockDim.x), 0)" in text
    assert 'cases("k", {{judge::threads(64), judge::threads(1)}, {judge::threads(128)' in text


def test_a_block_as_large_as_the_shared_array():
    text = made("__global__ void k() { __shared__ float tile[T][T]; tile[threadIdx.y][threadIdx.x] = 1; }\n")
    assert "dim3(blockDim.x, blockDim.y)" in text and "{{judge::threads(T), judge::threads(T)}," in text
    text = made("__global__ void k() { __shared__ int s[128]; s[threadIdx.x] = 1; }\n")
    assert "{{judge::threads(128), judge::threads(1)}," in text


def test_a_block_as_its_loops_ask():
    text = made(
        "__global__ void k(int n) { __shared__ float t[SIDE][SIDE + 1];\n"
        "  for (int j = 0; j < SIDE; j += ROWS) t[threadIdx.y + j][threadIdx.x] = n; }\n"
    )
    assert (
        "{judge::threads(SIDE), judge::threads(SIDE)}, {judge::threads(SIDE), judge::threads(ROWS)}" in text
    )


def test_a_launcher_instead_of_its_kernel():
    text = made("__global__ void k(int* a) {}\nvoid solve(int* a, int n) { k<<<n, 32>>>(a); }\n")
    assert '"solve"' in text and '"k"' not in text


def test_names_in_namespaces():
    text = made(
        "namespace a { namespace {\n__global__ void k(int* x) {}\n} namespace b {\nvoid f(int n) {}\n} }\n"
    )
    assert "judge_function = &a::k;" in text and "judge_function(x)" in text


@pytest.mark.parametrize(
    "body, shape",
    [
        ("a[blockIdx.x] = 1;", "dim3(gridDim.x), dim3(1)"),
        ("a[blockIdx.y * blockDim.y + threadIdx.y] = 1;", "dim3(1, gridDim.x), dim3(1, blockDim.y)"),
        ("a[at()] = 1;", "dim3(gridDim.x), dim3(blockDim.x)"),
        ("CUDA_KERNEL_LOOP(i, n) a[i] = 1;", "dim3(gridDim.x), dim3(blockDim.x)"),
    ],
)
def test_a_launch_has_the_axes_that_the_code_asks_for(body, shape):
    helper = "__device__ int at() { return blockIdx.x * blockDim.x + threadIdx.x; }\n" * ("at()" in body)
    assert f"configure({shape}, 0)" in made(f"{helper}__global__ void k(int* a, int n) {{ {body} }}\n")


def test_kernels_alone_whose_arguments_do_not_fit(tmp_path):
    """An index that is there once, and dimensions that are multiplied, are no mistakes; the first kernel is one."""
    file = tmp_path / "k.cu"
    file.write_text(
        """__global__ void scatter(float* out, const int* at, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[at[i]] += 1;
}
__global__ void sum(const float* x, float* y, int n, int c, int h, int w) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) for (int k = 0; k < c * h * w; ++k) y[i] += x[i * c * h * w + k];
}
__global__ void part(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[1 << 29];
}
"""
    )
    said = judge([file], limits=Limits(60))
    assert said["verdict"] == "incomplete" and said["ran"] == ["part", "scatter", "sum"], said
    assert {one["kernel"] for one in said["findings"] if one["kernel"]} == {"scatter", "part"}
    file.write_text(file.read_text().replace("out[at[i]] += 1", "out[at[i] / 2] += 1"))
    assert judge([file], limits=Limits(60))["verdict"] == "race"


def test_rows_that_are_shorter_than_the_code_takes_for_granted(tmp_path):
    """Elements of rows of 128 overlap if an invented number is smaller. A race that any number has is certain."""
    file = tmp_path / "k.cu"
    file.write_text(
        """__global__ void rows(float* y, float* z, int heads, int keys, int values) {
  __shared__ float last[2];
  float* own = y + blockIdx.x * keys * values;
  for (int j = 0; j < 4; ++j) own[j * values + threadIdx.x] += j;
  if (threadIdx.x % 64 == 0) last[threadIdx.x / 64] = own[threadIdx.x];
  __syncthreads();
  z[blockIdx.x * 128 + threadIdx.x] = last[1 - threadIdx.x / 64];
}
void launch(float* y, float* z, int heads, int keys, int values) { rows<<<heads, 128>>>(y, z, heads, keys, values); }
"""
    )
    said = judge([file], limits=Limits(60))
    assert said["verdict"] == "incomplete" and "this would be race" in said["findings"][0]["text"], said
    file.write_text(file.read_text().replace("  __syncthreads();\n", ""))
    said = judge([file], limits=Limits(60))
    assert said["verdict"] == "race" and [one["kind"] for one in said["findings"]].count("race") == 1, said


def test_a_width_that_no_vector_divides(tmp_path):
    file = tmp_path / "k.cu"
    file.write_text(
        """#include <cuda_runtime.h>
__global__ void k(float* y, int rows, int columns) {
  int i = blockIdx.y, j = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i < rows && j < columns) *(float4*)(y + i * columns + j) = make_float4(i, j, 1, 2);
}
void launch(float* y, int rows, int columns) { k<<<dim3((columns + 255) / 256, rows), 64>>>(y, rows, columns); }
"""
    )
    assert judge([file], limits=Limits(60))["verdict"] == "incomplete"


FLIP = """#define SIDE 32
#define ROWS 8
__global__ void flip(const float* from, float* to, int w, int h) {
  __shared__ float t[SIDE][SIDE + 1];
  int x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
  for (int j = 0; j < SIDE; j += ROWS) if (x < w && y + j < h) t[threadIdx.y + j][threadIdx.x] = from[(y + j) * w + x];
  BARRIER;
  x = blockIdx.y * SIDE + threadIdx.x; y = blockIdx.x * SIDE + threadIdx.y;
  for (int j = 0; j < SIDE; j += ROWS) if (x < h && y + j < w) to[(y + j) * h + x] = t[threadIdx.x][threadIdx.y + j];
}
"""
SHORT_ROWS = """#define W 16
__global__ void update(float* w, const float* delta, int width, const float* in, int rows, float* old) {
  int at = (width + 1) * W * blockIdx.y + (width + 1) * (threadIdx.y + 1) + threadIdx.x + 1;
  __shared__ float t[W][W];
  t[threadIdx.y][threadIdx.x] = delta[threadIdx.x + 1] * in[W * blockIdx.y + threadIdx.y + 1];
  BARRIER;
  w[at] += t[threadIdx.y][W - 1 - threadIdx.x] + old[at];
}
"""


@pytest.mark.parametrize("text", [FLIP, SHORT_ROWS], ids=["a block of 32 x 8", "a width of whole blocks"])
def test_what_another_block_or_number_does_not_have_is_in_doubt(text, tmp_path):
    """What all of them have is certain."""
    file = tmp_path / "k.cu"
    file.write_text(text.replace("BARRIER", "__syncthreads()"))
    said = judge([file], limits=Limits(60))
    assert said["status"] in (0, 3), said
    file.write_text(text.replace("BARRIER", ""))
    assert judge([file], limits=Limits(60))["status"] == 1
