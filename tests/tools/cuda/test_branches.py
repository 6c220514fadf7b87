"""#if that asks for nvcc: the host gets a new GPU's branch, or what it can run, or an error that names the line."""

import pytest
import torch
from support.rewriting import rewrite_text

from cuffi import load_inline
from tools.cuda.lexer import Lexed
from tools.cuda.source import Source
from tools.cuda.to_host import HostRewriter, Unit

DEVICE = "__global__ void kk() {{\n{}\n}}\n"
HOST = "void kk() {{\n{}\n}}\n"
FILE = "{}\n"
PTX = 'asm("x");'


def live(text: str) -> str:
    """The single letters among the words that the host compiler gets, by the lexer and by the written text."""
    found = "".join(t.text for t in Lexed(text).tokens if len(t.text) == 1 and t.kind == "name")
    unit = Unit(text, "x.cu")
    written = HostRewriter(unit, unit.main).rewritten()
    assert written.count("\n") == text.count("\n")
    again = Source(written.replace("[=]() mutable", ""), "x.cu").lexed.tokens
    assert found == "".join(t.text for t in again if len(t.text) == 1 and t.kind == "name")
    return found


@pytest.mark.parametrize(
    "place, text, wanted",
    [
        (DEVICE, "#if __CUDA_ARCH__ >= 700\na;\n#else\nb;\n#endif", "a"),
        (DEVICE, "#if __CUDA_ARCH__ >= 700\na;\n#endif", "a"),
        (DEVICE, "#ifdef __CUDA_ARCH__\na;\n#else\nb;\n#endif", "a"),
        (HOST, "#ifdef __CUDA_ARCH__\na;\n#else\nb;\n#endif", "b"),
        (HOST, "#if __CUDA_ARCH__ >= 700\na;\n#else\nb;\n#endif", "b"),
        (HOST, "#ifdef __CUDACC__\na;\n#else\nb;\n#endif", "a"),
        (FILE, "#ifdef __CUDACC__\n__device__ int a;\n#endif", "a"),
        (FILE, "#ifndef __CUDA_ARCH__\nint a;\n#endif", "a"),  # nvcc reads it for the host
        (FILE, "#if __CUDA_ARCH__ < 600\n__device__ int a;\n#endif", ""),  # a fork's own atomicAdd
        # PTX: the newest branch without, and in the end that of another compiler
        (DEVICE, f"#if __CUDA_ARCH__ >= 800\na; {PTX}\n#elif __CUDA_ARCH__ >= 700\nb;\n#else\nc;\n#endif", "b"),
        (DEVICE, f"#ifdef __CUDA_ARCH__\na; {PTX}\n#else\nb;\n#endif", "b"),
        (DEVICE, f"#if __CUDA_ARCH__\na;\n#ifdef __CUDA_ARCH__\n{PTX}\n#else\nb;\n#endif\n#else\nc;\n#endif", "ab"),
        (FILE, "#ifdef __CUDACC__\n#include <cudnn.h>\n#else\nint b;\n#endif", "b"),
        (FILE, "#ifdef __CUDACC__\nsurfCubemapread<float> a;\n#endif", ""),
        # a macro that says where code runs
        (FILE, "#define HD __device__\nHD int f() {\n#ifdef __CUDA_ARCH__\na;\n#else\nb;\n#endif\n}", "fa"),
        (FILE, "EIGEN_DEVICE_FUNC int f() {\n#ifdef __CUDA_ARCH__\na;\n#else\nb;\n#endif\n}", "fa"),
        # what nobody knows here
        (DEVICE, "#if __CUDA_ARCH__ >= 700 && OTHER\na;\n#else\nb;\n#endif", "ab"),
    ],
)  # fmt: skip
def test_the_branch_of_a_new_gpu(place, text, wanted):
    assert live(place.format(text)) == wanted


def output(name: str, body: str, head: str = "", count: int = 7) -> list[float]:
    """What a kernel writes to elements of 99."""
    text = f"{head}\n__global__ void run(const int n, const float* a, float* o) {{\n{body}\n}}"
    x, o = torch.arange(float(count)), torch.full((count,), 99.0)
    getattr(load_inline(name, text, backends="host"), f"{name}_run")(count, x, o, 1, 1, 1, 32, 1, 1)
    return o.tolist()


HELPER = "__device__ void twice(int n, const float* a, float* o)"
TWICE = "int i = threadIdx.x; if (i < n) o[i] = 2 * a[i];"


@pytest.mark.parametrize(
    "body, head",
    [
        (f"#if __CUDA_ARCH__ >= 700\n{TWICE}\n#endif", ""),
        (f"#ifdef __CUDACC__\n{TWICE}\n#endif", ""),
        (f"#if CUDART_VERSION >= 9000\n{TWICE}\n#endif", ""),
        (f"#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ >= 9\n{TWICE}\n#endif", ""),
        (f"#if HAS_SHUFFLES\n{TWICE}\n#endif", "#define HAS_SHUFFLES (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700)"),
        (f"if (__CUDA_ARCH__ >= 700) {{ {TWICE} }}", ""),
        ("twice(n, a, o);", f"#if __CUDA_ARCH__ >= 700\n{HELPER} {{ {TWICE} }}\n#endif"),
        ("#if __CUDA_ARCH__ >= 350\nint i = threadIdx.x; if (i < n) o[i] = 2 * __ldg(a + i);\n#endif", ""),
    ],
)  # fmt: skip
def test_a_kernel_under_a_condition(cache, body, head):
    assert output("guarded", body, head) == [2.0 * i for i in range(7)]


@pytest.mark.parametrize(
    "body, said",
    [
        ('#if __CUDA_ARCH__ >= 700\nasm("nop;"); o[0] = 1;\n#endif', r":3: this branch has what only a GPU runs"),
        ("#if __CUDA_ARCH__ < 700\no[0] = 1;\n#endif", r":3: on a new GPU \(__CUDA_ARCH__ 900\) this leaves nothing"),
    ],
)  # fmt: skip
def test_nothing_is_left_out_silently(cache, body, said):
    with pytest.raises(RuntimeError, match=f"kernel run: .*{said}"):
        output("emptied", body)


@pytest.mark.parametrize(
    "around", ["{}", "template <int W> class Tile {{ {} }};", "namespace a {{ struct T {{ {} }}; }}"]
)
def test_the_architecture_s_value_outside_of_functions(around):
    """A class and a constant are of device code, too; in a host function nvcc has no such macro."""
    text = around.format("enum { kBanks = (__CUDA_ARCH__ >= 200) ? 32 : 16 };")
    assert "(900 >= 200)" in rewrite_text(text)
    assert "__CUDA_ARCH__" in rewrite_text("int f() { return __CUDA_ARCH__; }")
