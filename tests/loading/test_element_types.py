"""load_inline: which elements a kernel's pointers may have: integers, halves, complex numbers, indices, states."""

import itertools

import pytest
import torch

from cuffi import CaffeError, CaffeRuntimeError, CaffeTypeError, load_inline

pytestmark = pytest.mark.usefixtures("cache")


def test_indices_are_int32_or_int64():
    """A type parameter that indexes was float: "array subscript is not an integer"."""
    text = """
template <typename T, typename I> __global__ void gather(const T* x, const I* j, const I* k, I step, T* y, int n) {
  CUDA_KERNEL_LOOP(i, n) y[i] = x[j[i] * step + k[i]];
}"""
    module = load_inline("gathers", text, backends="host")
    j, k = torch.tensor([3, 0, 2, 1]), torch.tensor([0, 4, 1, 3])
    for dtype, index in itertools.product((torch.float32, torch.float64), (torch.int32, torch.int64)):
        x, y = torch.randn(4, 5, dtype=dtype), torch.empty(4, dtype=dtype)
        for _ in range(2):  # the second call is C's alone
            module.gathers_gather(x, j.to(index), k.to(index), 5, y, 4)
            assert torch.equal(y, x[j, k])
    for wrong, said in (
        ((x, j.double(), k, 5), "j: expected int32 or int64, got cpu float64"),
        ((x, j, k.int(), 5), "k: expected int64 as 'j' has, got cpu int32"),
        ((j, j, k, 5), "x: expected float32 or float64 .*, got cpu int64"),
        ((x, j.int(), k.int(), 1 << 40), "step: 1099511627776 does not fit 32 bits"),
    ):
        with pytest.raises(CaffeError, match=f"gathers.*: {said}"):
            module.gathers_gather(*wrong, y, 4)


def test_an_exported_function_of_indices():
    text = """
// label: int32 or int64. label may be NULL
extern "C" int codes(const void* x, const void* label, double* y, int dtype, int label_dtype, void* stream) {
  y[0] = dtype;
  CAFFE_DISPATCH_INDEX(label_dtype, Index, { y[1] = sizeof(Index); });
  return CAFFE_LAUNCH_STATUS();
}"""
    module, y = load_inline("labelled", text, backends="host"), torch.empty(2, dtype=torch.float64)
    for label, size in ((torch.zeros(1).int(), 4), (torch.zeros(1).long(), 8), (None, 8)):
        module.codes(torch.zeros(1, dtype=torch.float64), label, y)
        assert y.tolist() == [1, size]


TYPES = """
#include <cuda_bf16.h>
#include <cuda_fp16.h>
using unary_t = float (*)(float);
enum Way { PLUS, MINUS };
enum class Side : int { LEFT, RIGHT };
__device__ float twice(float x) { return 2 * x; }
template <unary_t F> __device__ float applied(float x) { return F(x); }
__global__ void halves(int n, const __half* x, half* y, half by) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = __float2half(__half2float(x[i]) * __half2float(by)); }
}
__global__ void pairs(int n, const half2* x, __half2* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = __halves2half2(__high2half(x[i]), __low2half(x[i])); }
}
__global__ void brains(int n, const __nv_bfloat16* x, __nv_bfloat16* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = __float2bfloat16(__bfloat162float(x[i]) * 2); }
}
__global__ void shorts(int n, const uint16_t* x, unsigned short* y) { CUDA_KERNEL_LOOP(i, n) { y[i] = x[i] + 1; } }
__global__ void words(int n, const unsigned* x, uint32_t* y) { CUDA_KERNEL_LOOP(i, n) { y[i] = x[i] + 1; } }
__global__ void longs(int n, const uint64_t* x, unsigned long long* y) { CUDA_KERNEL_LOOP(i, n) { y[i] = x[i] + 1; } }
__global__ void ways(int n, const float* x, float* y, Way way, const Side side) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = (way == MINUS ? -x[i] : x[i]) + (side == Side::RIGHT ? 8 : 0); }
}
__global__ void fixed(const __grid_constant__ int n, const float* x, float* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = applied<twice>(x[i]); }
}
template <int N> __global__ void times(int n, const float* x, float* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = x[i] * N; }
}
template __global__ void times<3>(int, const float*, float*);
template __global__ void times<5>(int, const float*, float*);
"""


STATES = """
#include <curand_kernel.h>
__global__ void init(curandState* states, unsigned long long seed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) curand_init(seed, i, 0, &states[i]);
}
__global__ void draw(curandState_t* __restrict__ states, float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = curand_uniform(states + i);
}
__global__ void at_once(float* x, unsigned long long seed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  curandState state;
  curand_init(seed, i, 0, &state);
  x[i] = curand_uniform(&state);
  x[n + i] = curand_uniform(&state);
}
"""


def test_states_of_random_numbers():
    """Kernels share an array of states: a tensor of their bytes."""
    module, one = load_inline("numbers", STATES), (1, 1, 1, 128, 1, 1)
    states, x, expected = torch.zeros(100, 64, dtype=torch.uint8), torch.zeros(2, 100), torch.zeros(200)
    module.at_once(expected, 7, 100, *one)
    module.init(states, 7, 100, *one)
    for part in x:
        module.draw(states, part, 100, *one)
    assert x.flatten().tolist() == expected.tolist() and 0.4 < x.mean() < 0.6
    with pytest.raises(CaffeTypeError, match=r"states: .*uint8"):
        module.draw(x, x, 100, *one)


COMPLEX = """
#include <cuComplex.h>
__global__ void turned(int n, const cuFloatComplex* x, cuComplex* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = cuCmulf(x[i], make_cuFloatComplex(0, 1)); }
}
__global__ void doubled(int n, const cuDoubleComplex* x, cuDoubleComplex* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = cuCadd(x[i], x[i]); }
}
"""


@pytest.mark.parametrize("name, dtype", [("turned", torch.complex64), ("doubled", torch.complex128)])
def test_kernels_of_complex_numbers(name, dtype):
    """torch conjugates lazily: the memory of x.conj() is that of x, in each call the same way."""
    launcher, factor = (
        getattr(load_inline("waves", COMPLEX), f"waves_{name}"),
        {"turned": 1j, "doubled": 2}[name],
    )
    x = torch.randn(50, dtype=dtype)
    for view in (x, x, x.conj(), x.conj(), x.flip(0).conj(), x[::2]):
        y = torch.zeros(len(view), dtype=dtype)
        launcher(len(view), view, y)
        torch.testing.assert_close(y, view.resolve_conj() * factor)
    with pytest.raises(
        CaffeTypeError, match="a tensor to write to, whose memory holds its values, not their conj"
    ):
        launcher(50, x, torch.zeros(50, dtype=dtype).conj())
    with pytest.raises(CaffeTypeError, match=f"x: expected {dtype}".replace("torch.", "")):
        launcher(50, x.real.contiguous(), y)


def test_kernels_of_many_types():
    module = load_inline("types", TYPES)
    for name, dtype, wanted in (
        ("halves", torch.float16, lambda x: x * 1.5),
        ("pairs", torch.float16, lambda x: x.reshape(-1, 2).flip(1).flatten()),
        ("brains", torch.bfloat16, lambda x: x * 2),
        ("fixed", torch.float32, lambda x: x * 2),
        ("shorts", torch.uint16, lambda x: x + 1),
        ("words", torch.uint32, lambda x: x + 1),
        ("longs", torch.uint64, lambda x: x + 1),
    ):
        x = torch.arange(1, 101).to(dtype)
        y = torch.zeros(100, dtype=dtype)
        count, more = (50, ()) if name == "pairs" else (100, (1.5,) if name == "halves" else ())
        getattr(module, f"types_{name}")(count, x, y, *more)
        whole = torch.int64 if not dtype.is_floating_point else dtype
        assert torch.equal(y.to(whole), wanted(x.to(whole))), name
    x, y = torch.arange(8.0), torch.zeros(8)
    module.types_ways(8, x, y, 1, 1)
    assert torch.equal(y, 8 - x)
    for n in (3, 5):
        module.types_times(8, x, y, n)
        assert torch.equal(y, x * n)
    with pytest.raises(CaffeRuntimeError, match="compiled for N == 3 or N == 5 only"):
        module.types_times(8, x, y, 4)
    with pytest.raises(CaffeTypeError, match=r"types: x: expected float16 .*, got cpu bfloat16"):
        module.types_halves(8, x.bfloat16(), y.half(), 1)
    signed = torch.arange(8, dtype=torch.int32)
    module.types_words(8, signed, signed)
    assert torch.equal(signed, torch.arange(1, 9, dtype=torch.int32))
