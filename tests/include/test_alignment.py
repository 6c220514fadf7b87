"""What a GPU refuses and a processor does not: accesses that are not aligned, much static shared memory."""

import pytest
import torch

from cuffi import CaffeRuntimeError, CaffeValueError, load_inline, run

ONE_BLOCK = {"grid_x": 1, "grid_y": 1, "grid_z": 1, "block_x": 32, "block_y": 1, "block_z": 1}
# Each kernel reads element `at + 4 * i`, by memory that must be aligned as a larger type is.
WAYS = {
    "cast": "y[i] = ((const float4*)(x + at))[i].x;",
    "element": "y[i] = (*(const float4*)&x[at + 4 * i]).x;",
    "reinterpret": "y[i] = reinterpret_cast<const float4*>(x + at)[i].x;",
    "reference": "y[i] = reinterpret_cast<const float4&>(x[at + 4 * i]).x;",
    "macro": "y[i] = FETCH4(x[at + 4 * i]).x;",
    "template": "y[i] = first<float4>(x + at + 4 * i);",
    "pointer": "const float2* p = (const float2*)(x + at); y[i] = p[2 * i].x;",
    "write": "float4 v = {x[at + 4 * i], 0, 0, 0}; *(float4*)(y + 4 * i + at) = v;",
    "nobody reads": "const float4* p = (const float4*)(x + at); y[i] = (size_t)p & 15 ? x[at + 4 * i] : p[i].x;",
}
TEXT = """
#define FETCH4(p) (reinterpret_cast<const float4*>(&(p))[0])
template <typename V> __device__ float first(const float* p) { return reinterpret_cast<const V*>(p)->x; }
""" + "".join(
    f"""
__global__ void way_{k}(float* y, const float* x, int at) {{ const int i = threadIdx.x; {way} }}
__global__ void way_{k}_waits(float* y, const float* x, int at) {{ const int i = threadIdx.x; __syncwarp(); {way} }}
"""
    for k, way in enumerate(WAYS.values())
)


@pytest.mark.parametrize("waits", ["", "_waits"])
@pytest.mark.parametrize("way", WAYS)
def test_an_access_that_a_gpu_stops_at(cache, way, waits):
    m = load_inline("alignment", TEXT, backends="host")
    kernel = getattr(m, f"alignment_way_{list(WAYS).index(way)}{waits}")
    x, y = torch.arange(256.0), torch.zeros(256)
    kernel(y, x, 8, **ONE_BLOCK)
    read = y[8:136:4] if way == "write" else y[:32]
    assert read.tolist() == [8.0 + 4 * i for i in range(32)]
    if way == "nobody reads":
        kernel(y, x, 1, **ONE_BLOCK)
        assert y[:32].tolist() == [1.0 + 4 * i for i in range(32)]
    else:
        with pytest.raises(CaffeRuntimeError, match="no multiple of the type's alignment; a GPU stops there"):
            kernel(y, x, 1, **ONE_BLOCK)


POINTERS = """
struct Big { char b[4096]; };
__global__ void big(int* y, const int* x) { *(Big*)y = *(const Big*)x; }
__global__ void loop(float* y, const float4* x, int n) { const int i = threadIdx.x; if (i < n) y[i] = x[i].x; }
__global__ void waits(float* y, const float4* __restrict__ x, int n) {
  __syncwarp(); y[threadIdx.x] = x[threadIdx.x].x;
}
__global__ void phases(float* y, const double2* x, int n) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x].x; __syncthreads(); y[threadIdx.x] = s[31 - threadIdx.x];
}
__global__ void range(float* y, const int4* x, int n) { CUDA_KERNEL_LOOP(i, n) { y[i] = x[i].x; } }
__global__ void casts(float* y, const float4* x, int n) {
  const int i = threadIdx.x;
  y[i] = (size_t)x & 15 ? ((const float*)x)[4 * i] : x[i].x;
}
"""
CALLS = """
extern "C" int call(float* y, const float* x, int at, int which, void* stream) {
  const void* p = x + at;
  if (which == 0) loop<<<1, 32>>>(y, (const float4*)p, 32);
  if (which == 1) waits<<<1, 32>>>(y, (const float4*)p, 32);
  if (which == 2) phases<<<1, 32>>>(y, (const double2*)p, 32);
  if (which == 3) range<<<1, 32>>>(y, (const int4*)p, 32);
  if (which == 4) casts<<<1, 32>>>(y, (const float4*)p, 32);
  return 0;
}
"""


def test_a_pointer_that_a_kernel_takes(cache):
    """Where host code casts it. A launcher is given a tensor, and looks at its address."""
    m = load_inline("pointed", POINTERS + CALLS, backends="host")
    x, y = torch.arange(256.0), torch.zeros(256)
    for which in range(4):
        m.call(y, x, 4, which)
        with pytest.raises(CaffeRuntimeError, match="no multiple of the type's alignment; a GPU stops there"):
            m.call(y, x, 1, which)
    for at in (1, 4):
        m.call(y, x, at, 4)
        assert y[:32].tolist() == [at + 4.0 * i for i in range(32)]
    m = load_inline("pointers", POINTERS, backends="host")
    with pytest.raises(CaffeValueError, match="memory at a multiple of 16 bytes"):
        m.pointers_loop(y, x[1:], 32, **ONE_BLOCK)
    old, new = torch.zeros(1024, dtype=torch.int32), torch.arange(1024, dtype=torch.int32)
    m.pointers_big(old, new, **ONE_BLOCK)
    assert torch.equal(old, new)


@pytest.mark.parametrize(
    "variables, fits",
    [
        ("__shared__ float s[12288];", True),
        ("__shared__ float s[12289];", False),
        ("__shared__ float s[6144]; __shared__ float t[6144];", True),
        ("__shared__ float s[6144], t[6145];", False),
        ("__shared__ float s[6144]; if (n) { __shared__ float t[6144][2]; t[0][0] = 1; }", False),
        ("if (n) { __shared__ float s[9000]; s[0] = 1; } else { __shared__ char t[9000]; t[0] = 1; }", True),
        ("extern __shared__ float s[]; s[0] = 1;", True),
    ],
)
def test_static_shared_memory(cache, variables, fits):
    text = f"\n__global__ void k(int n) {{\n  {variables}\n}}\n"
    if fits:
        load_inline("much", text, backends="host")
    else:
        with pytest.raises(CaffeRuntimeError, match=r"much\.cu:3.*more than 48 KiB of static shared memory"):
            load_inline("much", text, backends="host")


def test_the_bits_of_a_class_that_is_also_a_number(tmp_path, capfd):
    """A half converts to an integer, and a reference to its bits is none to that integer."""
    (tmp_path / "x.cu").write_text(
        "#include <cuda_fp16.h>\n#include <stdio.h>\n"
        "__device__ unsigned short bits(const half& x) { return reinterpret_cast<const unsigned short&>(x); }\n"
        "__global__ void k(float f, int* out) { out[0] = bits(__float2half(f)); }\n"
        "int main() { int* x; cudaMallocManaged(&x, 4); k<<<1, 1>>>(1.5f, x); cudaDeviceSynchronize();"
        ' printf("%x\\n", x[0]); }\n'
    )
    assert run.main([str(tmp_path / "x.cu")]) == 0 and capfd.readouterr().out == "3e00\n"
