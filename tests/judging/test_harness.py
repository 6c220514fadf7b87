"""The main() that a file of kernels gets."""

from cuffi.judging.harness import harness
from tools.cuda.analysis import Unit


def made(text: str) -> str:
    return harness(Unit(text, "k.cu"))


def test_a_kernel_by_its_types():
    text = made("template <typename T, int N>\n__global__ void k(T* a, int n) { a[threadIdx.x] = n; }\n")
    assert "decltype(&k<float, 32>)" in text and "k<float, 32>(argument0, argument1)" in text
    assert "configure(grid, dim3(judge::threads(64)), 0)" in text


def test_a_block_as_large_as_the_shared_array():
    text = made("__global__ void k() { __shared__ float tile[T][T]; tile[threadIdx.y][threadIdx.x] = 1; }\n")
    assert "dim3(judge::threads(T), judge::threads(T))" in text
    assert "judge::threads(128)" in made(
        "__global__ void k() { __shared__ int s[128]; s[threadIdx.x] = 1; }\n"
    )


def test_a_launcher_instead_of_its_kernel():
    text = made("__global__ void k(int* a) {}\nvoid solve(int* a, int n) { k<<<n, 32>>>(a); }\n")
    assert '"solve"' in text and '"k"' not in text
