"""load_inline of templates: the types that a file shows, by its launches, its instantiations and its pointers."""

import pytest
import torch

from cuffi import CaffeBuildError, CaffeRuntimeError, CaffeTypeError, load_inline

pytestmark = pytest.mark.usefixtures("cache")

BODY = """
template <typename T> __global__ void scale(const T* a, T* o, T by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) o[i] = a[i] * by;
}
"""


def test_int_beside_float():
    """By the declarations of a template's callers."""
    host = """
    template <typename T> void run(T* a, T* o, int n) { scale<<<(n + 31) / 32, 32>>>(a, o, (T)2, n); }
    int main() { int *a, *b; float *x = 0, *y; run(a, b, 8); run<float>(x, y, 8); }
    """
    scale = load_inline("m", BODY + host, backends="host").scale
    for dtype in (torch.float32, torch.float64, torch.int32):
        a = torch.arange(50).to(dtype)
        o = torch.zeros_like(a)
        scale(a, o, -3, 50)
        assert torch.equal(o, a * -3)
    with pytest.raises(
        CaffeTypeError, match=r"a: expected a tensor of float32, float64, int32 \(its template"
    ):
        scale(a.half(), o.half(), 1, 50)
    scale(a, o, -(2**31), 1)
    # Twice: a launch whose argument throws leaves nothing behind.
    for bad in (2.5, 2.0**31, float("nan"), float("inf"), 2.5):
        with pytest.raises(CaffeRuntimeError, match=r"by: .* is no number of the tensors' type"):
            scale(a, o, bad, 50)
    scale(a, o, 2, 50)
    assert torch.equal(o, a * 2)


def test_explicit_instantiations():
    text = BODY + "".join(
        f"template __global__ void scale<{t}>(const {t}*, {t}*, {t}, int);\n"
        for t in ("short", "float", "unsigned char", "long long")
    )
    scale = load_inline("m", text, backends="host").scale
    geometry = (1, 1, 1, 64, 1, 1)
    for dtype in (torch.float32, torch.int16, torch.uint8, torch.int64):
        a = torch.arange(50).to(dtype)
        o = torch.zeros_like(a)
        scale(a, o, 3, 50, *geometry)
        assert torch.equal(o, a * 3)
    with pytest.raises(CaffeRuntimeError, match="by: 18014398509481984"):  # a double may not hold it
        scale(a, o, 2**54, 50, *geometry)


def test_one_whole_type_is_the_kernels():
    host = "void go(int n) { unsigned char *p = 0, *q; scale<<<1, 64>>>(p, q + 2, (unsigned char)2, n); }"
    scale = load_inline("m", BODY + host, backends="host").scale
    a = torch.arange(50).byte()
    o = torch.zeros_like(a)
    scale(a, o, 2, 50)
    assert torch.equal(o, a * 2)


def test_a_type_that_a_template_is_not_compiled_for():
    text = BODY + "void go(float* a, int n) { scale<<<1, 64>>>(a, a, 2.f, n); }"
    scale = load_inline("m", text, backends="host").scale
    for dtype in (torch.float16, torch.int32):
        a = torch.arange(5).to(dtype)
        with pytest.raises(CaffeTypeError, match=r"float32 or float64 .*load_inline\(\.\.\., instances="):
            scale(a, a, 2, 5)
    given = {"scale": ["half", "__nv_bfloat16", "float"]}
    scale = load_inline("m", text, backends="host", instances=given).scale
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        a = torch.arange(5).to(dtype)
        o = torch.zeros_like(a)
        scale(a, o, 2, 5)
        assert torch.equal(o, a * 2)


def test_types_that_two_parameters_do_not_share():
    text = """template <typename T, typename U> __global__ void k(const T* a, U* o) { o[0] = a[0]; }
    void run(int* a, float* b, short* c) { k<<<1, 1>>>(a, b); k<<<1, 1>>>(b, c); }"""
    with pytest.raises(CaffeBuildError, match="has template parameters with the types"):
        load_inline("m", text, backends="host")


@pytest.mark.parametrize(
    "host",
    [
        """void go(__half* a, __nv_bfloat16* b) {
          k<__half, __half2><<<1, 4>>>(a, a);
          k<__nv_bfloat16, __nv_bfloat162><<<1, 4>>>(b, b);
        }""",
        """template <typename T, typename T2> void run(T* a) { k<T, T2><<<1, 4>>>(a, a); }
        void go(__half* a, __nv_bfloat16* b) { run<__half, __half2>(a); run<__nv_bfloat16, __nv_bfloat162>(b); }""",
    ],
)
def test_a_vector_for_each_type(host):
    text = """#include <cuda_fp16.h>
    #include <cuda_bf16.h>
    template <typename T> struct Two;
    template <> struct Two<__half2> { static __device__ __half2 of(__half2 a) { return __hadd2(a, a); } };
    template <> struct Two<__nv_bfloat162> {
      static __device__ __nv_bfloat162 of(__nv_bfloat162 a) { return __hadd2(a, a); }
    };
    template <typename T, typename T2> __global__ void k(const T* a, T* o) {
      reinterpret_cast<T2*>(o)[threadIdx.x] = Two<T2>::of(reinterpret_cast<const T2*>(a)[threadIdx.x]);
    }"""
    k = load_inline("m", text + host, backends="host").k
    for dtype in (torch.float16, torch.bfloat16):
        a = torch.arange(8).to(dtype)
        o = torch.zeros_like(a)
        k(a, o)
        assert torch.equal(o, a * 2)


def test_a_kernel_that_host_code_names():
    """For cudaLaunchCooperativeKernel and the like."""
    text = """template <typename T, int N> __global__ void c(T* o) { *o = N; }
    void launch(float* x) { const int n = 7; auto f = c<float, n>; void* a[] = {&x}; start((void*)f, a); }"""
    o = torch.zeros(1)
    with pytest.warns(RuntimeWarning, match="left out"):
        c = load_inline("m", text, backends="host").c
    c(o, 1, 1, 1, 1, 1, 1)
    assert o.item() == 7


def test_pitched_memory():
    text = """__global__ void column(cudaPitchedPtr p, cudaExtent e, float* o) {
      for (size_t y = 0; y < e.height; ++y) o[y] = ((float*)((char*)p.ptr + y * p.pitch))[1];
    }"""
    column = load_inline("m", text, backends="host").column
    x, o = torch.randn(3, 4), torch.zeros(3)
    given = {"ptr": x.view(torch.uint8), "pitch": 16, "xsize": 4, "ysize": 3}
    column(given, {"width": 4, "height": 3, "depth": 1}, o, 1, 1, 1, 1, 1, 1)
    assert torch.equal(o, x[:, 1])


def test_a_number_of_host_code_beside_one_of_a_template():
    """Both are checked, in one file."""
    text = """int ceil_div(int a, int b) { return (a + b - 1) / b; }
    __global__ void ones(size_t n, float* y) {
      const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = 1;
    }
    void run(int n, float* y) { ones<<<ceil_div(n, 32), 32>>>(n, y); }
    template <typename T> __global__ void set(T* o, T value) { *o = value; }
    template __global__ void set<int>(int*, int);
    template __global__ void set<float>(float*, float);"""
    m = load_inline("m", text, backends="host")
    y, o = torch.zeros(50), torch.zeros(1, dtype=torch.int32)
    m.ones(50, y)
    m.set(o, 3, 1, 1, 1, 1, 1, 1)
    assert y.sum() == 50 and o.item() == 3
    with pytest.raises(CaffeRuntimeError, match="does not fit 32 bits"):
        m.ones(2**33, y)


def test_an_integer_that_no_double_has():
    text = "template <typename T> __global__ void fill(T* x, T v) { *x = v; }\n"
    fill = load_inline(
        "m", text, backends="host", instances={"fill": ["long long", "unsigned long long"]}
    ).fill
    for dtype, lowest in ((torch.int64, 1 - 2**53), (torch.uint64, 0)):
        x = torch.zeros(1, dtype=dtype)
        for value in (2**53 - 1, lowest):
            fill(x, value, 1, 1, 1, 1, 1, 1)
            assert x.item() == value
        for value in (2**53 + 1, lowest - 2):
            with pytest.raises(CaffeRuntimeError, match=r"v: .* is no number of the tensors' type"):
                fill(x, value, 1, 1, 1, 1, 1, 1)


def test_a_number_that_an_expression_gives():
    """A launch of another value than the named one is not left out."""
    text = """
    constexpr int kTile = 4;
    template <int TILE> __global__ void tiles(int* y) { y[threadIdx.x] = threadIdx.x / TILE; }
    void run(int* y) { tiles<kTile><<<1, 16>>>(y); tiles<kTile * 2 + 1><<<1, 16>>>(y); tiles<(3)><<<1, 16>>>(y); }
    """
    tiles = load_inline("m", text, backends="host").tiles
    y, x = torch.zeros(16, dtype=torch.int32), torch.arange(16, dtype=torch.int32)
    for tile in (4, 9, 3):
        tiles(y, tile, 1, 16)
        assert torch.equal(y, x // tile)
    with pytest.raises(CaffeRuntimeError, match="compiled for"):
        tiles(y, 8, 1, 16)


def test_a_template_that_is_right_for_its_launches_alone(cache):
    """It is launched for float, and does not compile for double."""
    text = """
template <typename T> __global__ void row_sum(const T* in, T* out, int width) {
  extern __shared__ float tile[];
  T* mine = &tile[0];
  mine[threadIdx.x] = threadIdx.x < width ? in[blockIdx.x * width + threadIdx.x] : T(0);
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < blockDim.x; ++i) out[blockIdx.x] += mine[i];
}
template <typename T> __global__ void twice(T* x) { x[threadIdx.x] *= 2; }
void run(float* in, float* out, int rows, int width) {
  row_sum<<<rows, 64, 64 * sizeof(float)>>>(in, out, width);
  twice<<<1, 64>>>(out);
}
"""
    with pytest.warns(RuntimeWarning, match="compiled for the types of their launches alone"):
        m = load_inline("rowsums", text, backends="host")
    x, y = torch.rand(3, 50), torch.zeros(3)
    m.row_sum(x, y, 50, grid=3)
    torch.testing.assert_close(y, x.sum(1))
    with pytest.raises(TypeError, match="float32"):
        m.row_sum(x.double(), y.double(), 50, grid=3)


def test_an_error_that_has_nothing_to_do_with_a_type_stays(cache):
    text = "template <typename T> __global__ void k(T* x) { x[threadIdx.x] = unknown; }"
    with pytest.raises(CaffeBuildError, match="unknown"):
        load_inline("no_type", text + "\nvoid run(float* x) { k<<<1, 8>>>(x); }", backends="host")
