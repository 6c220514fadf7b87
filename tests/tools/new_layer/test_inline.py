"""The header that load_inline writes."""

import pytest

from tools.cuda.source import Source
from tools.new_layer import inline
from tools.new_layer.inline import completed, exported, header_of

pytestmark = pytest.mark.usefixtures("cache")


def test_the_header_has_its_lines_where_the_source_has_them():
    text = """
extern "C" int one(float* x); int other();
extern "C" { int two(const float* x,
   int64_t n) { return 0; } int three(void) { return 1; } }

extern "C" __attribute__((noinline)) int
four(float* y) { return 0; }"""
    declared = exported(Source(text, "x.cu"))
    wanted = [
        "",
        "",
        "int two(const float* x, int64_t n);",
        "int three(void);",
        "",
        "",
        "int four(float* y);",
    ]
    assert header_of(declared).splitlines() == wanted


def test_the_header_has_what_comments_say_of_pointers():
    text = """
// Adds a bias.
//   bias may be NULL
// top: [count]
extern "C" int add(const float* bias, float* top, int64_t count) { return 0; }
extern "C" int other(float* x) { return 0; }"""
    assert header_of(exported(Source(text, "x.cu"))).splitlines() == [
        *["", "", "//   bias may be NULL", "// top: [count]"],
        "int add(const float* bias, float* top, int64_t count);",
        "int other(float* x);",
    ]
    kernel = """
// bias may be NULL
__global__ void add(const float4* bias, const double2* x, float* y, const float3* z) { *y = bias ? bias->x : x->y; }"""
    header, _, without = completed("adds", kernel, "adds.cu")
    assert not without
    assert header.splitlines()[:3] == [
        *["// bias may be NULL", "// bias: aligned to 16 bytes", "// x: aligned to 16 bytes"],
    ]
    assert "y: aligned" not in header and "z: aligned" not in header


def test_a_function_of_numbers_leaves_the_kernels():
    """Its result is no status: the call of iDivUp(7, 2) was an error."""
    kernel = "__global__ void twice(float* x) { *x *= 2; }\n"
    function = 'extern "C" int iDivUp(int a, int b) { if (b) return (a + b - 1) / b; return 0; }\n'
    header, _, without = completed("k", kernel + function, "k.cu")
    assert "int k_twice(" in header and "iDivUp" not in header
    assert without == ["iDivUp is not called from Python: it takes no tensor and launches nothing"]


def test_a_function_without_a_tensor_leaves_the_kernels():
    kernel, other = "__global__ void set(int* x) { *x = 2; }\n", 'extern "C" int fill(int* x) { return 0; }\n'
    function = 'extern "C" int probe(void) { int* x; cudaMalloc(&x, 4); set<<<1, 1>>>(x); return 0; }\n'
    header, _, without = completed("k", kernel + function, "k.cu")
    assert "int k_set(" in header and "probe" not in header
    assert without == ["probe is not called from Python: it takes no tensor, which would say where it runs"]
    header = completed("k", kernel + function + other, "k.cu")[0]
    assert " ".join(header.split()) == "int probe(void); int fill(int* x);"


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ("void solve(const float* x, float* y, size_t n)", "does not return int, a status"),
        ("int solve(const float* x, float* y, size_t n, cudaStream_t stream)", "takes a cudaStream_t"),
        ("int solve(const __half* x, float* y)", "takes a __half"),
        ("int solve(const float* x, float* y, unsigned long long n, void* stream)", ""),
        ("int64_t solve(const uint16_t *x, bool y)", ""),
        ("int solve(void)", "takes no tensor"),
    ],
)
def test_functions_that_python_cannot_call_leave_the_kernels(head, why):
    kernel = "__global__ void twice(float* x) { *x *= 2; }\n"
    function = f'extern "C" {head} {{ twice<<<1, 1>>>(nullptr); return 0; }}\n'
    header, _, without = completed("k", kernel + function, "k.cu")
    assert ("int k_twice(" in header) == bool(why)
    assert ("solve" in header) == (not why)
    assert len(without) == bool(why) and all(
        f"solve is not called from Python: it {why}" in x for x in without
    )
    # Without kernels there is nothing else to call: build_ffi.py says what is wrong.
    assert "solve" in completed("k", function.replace("twice<<<1, 1>>>(nullptr);", ""), "k.cu")[0]


def test_one_function_that_python_cannot_call_leaves_the_kernels():
    """A library's file has both kinds: int status(...), and void or double ones."""
    text = """__global__ void twice(float* x) { *x *= 2; }
extern "C" {
void run(float* x, int n) { twice<<<n, 1>>>(x); }
int run_checked(float* x, int n) { run(x, n); return 0; }
double timed(float* x) { run(x, 1); return 1.5; }
}
"""
    header, _, without = completed("k", text, "k.cu")
    assert "int k_twice(" in header and "run" not in header and "timed" not in header
    assert without == [
        "run is not called from Python: it does not return int, a status",
        "timed is not called from Python: it does not return int, a status",
        "run_checked is not called from Python: run, beside it, cannot be",
    ]


def test_a_template_of_an_enum_is_made_for_all_its_values():
    text = """
typedef enum { Lower = 'L', Upper = 'U' } Uplo;
namespace a { enum class Mode { fast /* , slow */, exact = 7 }; }
template <Uplo uplo, a::Mode mode> __global__ void k(float* x, Uplo other) { *x = uplo + int(mode) + other; }
"""
    header, source, without = completed("e", text.replace("a::Mode mode", "Mode mode"), "e.cu")
    assert not without
    assert "int e_k(float *x, int other, int uplo, int mode," in header
    assert "uplo == static_cast<int>(Lower) && mode == static_cast<int>(a::Mode::fast)" in source
    assert "static_cast<Uplo>(other)" in source


def test_a_kernel_that_is_a_member_is_told_so():
    """nvcc 13: a __global__ function or function template cannot be a member function."""
    text = "struct S { static __global__ void k(float* x) { *x = 1; } };\n__global__ void other(float* x) { *x = 1; }"
    *_, without = completed("m", text, "m.cu")
    assert without == ["a kernel without a launcher: k is a member of a class, which CUDA does not allow"]


def test_a_kernel_that_uses_what_no_gpu_has_is_told():
    """It runs on the processor, where nothing else says so."""
    text = """#include <algorithm>
template <typename T> __device__ void swap_of_mine(T& a, T& b) { std::swap(a, b); }
__global__ void both(float* x, int n) { std::vector<int> v(n); std::sort(x, x + n); x[0] = std::max(x[0], x[1]); }
__global__ void none(float* x, int n) { x[0] = std::min(x[0], x[1]); swap_of_mine(x[0], x[1]); }
void host() { std::vector<float> sort; }
"""
    assert inline._of_host(Source(text, "a.cu")) == [
        "line 3: both runs here, and no GPU has std::vector, std::sort: nvcc refuses it. Use an array of constant "
        "size, or memory that the caller gives; cub::BlockRadixSort in a block, or thrust::sort before the launch"
    ]
