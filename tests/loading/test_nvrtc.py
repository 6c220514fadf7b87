"""Kernels by NVRTC on a GPU: each compared with torch, and with what nvcc makes of the same text where it is here.

What needs no GPU is in test_kernel_build.py and test_ptx.py.
"""

import math
import os
import subprocess
import sys
import threading

import pytest
import torch

import cuffi
from cuffi.loading import kernel_build, nvrtc, toolkit
from cuffi.runtime.kernels import KernelLibrary

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.skipif(not nvrtc.candidates(), reason="needs NVRTC"),
]

RELU6 = """template <typename Dtype> __global__ void relu6(const int n, const Dtype* in, Dtype* out) {
  CUDA_KERNEL_LOOP(i, n) { out[i] = min(max(in[i], Dtype(0)), Dtype(6)); } }"""
SOFTMAX = """#include <math.h>
__global__ void softmax(const float* x, float* y, int cols) {
  __shared__ float s[32];
  int row = blockIdx.x, t = threadIdx.x;
  float m = -INFINITY;
  for (int c = t; c < cols; c += blockDim.x) m = fmaxf(m, x[row * cols + c]);
  for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, o));
  if (t % 32 == 0) s[t / 32] = m;
  __syncthreads();
  m = s[0];
  for (int w = 1; w < blockDim.x / 32; ++w) m = fmaxf(m, s[w]);
  __syncthreads();
  float z = 0;
  for (int c = t; c < cols; c += blockDim.x) z += expf(x[row * cols + c] - m);
  for (int o = 16; o; o >>= 1) z += __shfl_xor_sync(0xffffffffu, z, o);
  if (t % 32 == 0) s[t / 32] = z;
  __syncthreads();
  z = 0;
  for (int w = 0; w < blockDim.x / 32; ++w) z += s[w];
  for (int c = t; c < cols; c += blockDim.x) y[row * cols + c] = expf(x[row * cols + c] - m) / z;
}
void run(const float* x, float* y, int rows, int cols) { softmax<<<rows, 256>>>(x, y, cols); }
"""


@pytest.fixture(autouse=True)
def _where_nvrtc_builds(own_cache, monkeypatch):
    monkeypatch.delenv("CUFFI_CUDA")


def loaded(name, text, **more):
    module = cuffi.load_inline(name, text, backends="cuda", **more)
    assert isinstance(module.layer.library("cuda"), KernelLibrary)
    return module


def gpu(*shape, dtype=torch.float32, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=draw, dtype=torch.float64).to(dtype).cuda()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [1, 1000, 1 << 22])
def test_a_template(dtype, count):
    m, x = loaded("relu6", RELU6), gpu(count, dtype=dtype) * 6
    y = torch.empty_like(x)
    m.relu6_kernel(count, x, y)
    assert torch.equal(y, x.clamp(0, 6))
    m.relu6_kernel(count, x, x)  # in place
    assert torch.equal(x, y)


def test_shuffles_and_barriers():
    m, x = loaded("softmax", SOFTMAX), gpu(64, 1000)
    y = torch.empty_like(x)
    launcher = m.softmax_kernel
    words = str(launcher.__signature__)
    launcher(x, y, 1000, *([64] if "grid" in words else []))
    assert (y - x.double().softmax(1)).abs().max() < 1e-6


def test_arguments_are_checked():
    m, x = loaded("relu6", RELU6), gpu(10)
    with pytest.raises(cuffi.CaffeTypeError, match="in_"):
        m.relu6_kernel(10, x.half(), x)
    with pytest.raises(cuffi.CaffeValueError, match="10"):
        m.relu6_kernel(20, x, x)


STRUCTS = """struct P { float scale; int add[2]; double last; };
__constant__ float weights[4];
enum Mode { kPlain, kTwice };
template <int kTile, bool kSquare> __global__ void all(const float* x, float* y, int n, P p, float4 v, Mode mode) {
  extern __shared__ float tile[];
  int i = blockIdx.x * kTile + threadIdx.x;
  if (threadIdx.x < kTile && i < n) {
    tile[threadIdx.x] = x[i] * p.scale + p.add[1] + p.last + v.x + v.w + weights[i % 4];
    y[i] = (kSquare ? tile[threadIdx.x] * tile[threadIdx.x] : tile[threadIdx.x]) * (mode == kTwice ? 2 : 1);
  }
}
#define DIVUP(a, b) (((a) + (b) - 1) / (b))
void run(const float* x, float* y, int n, P p, float4 v, const float* w) {
  cudaMemcpyToSymbol(weights, w, sizeof(weights));
  all<64, true><<<DIVUP(n, 64), 64, 64 * sizeof(float)>>>(x, y, n, p, v, kPlain);
  all<64, false><<<DIVUP(n, 64), 64, 64 * sizeof(float)>>>(x, y, n, p, v, kTwice);
}
"""


@pytest.mark.parametrize("square", [True, False])
@pytest.mark.parametrize("mode", [0, 1])
def test_structs_vectors_enums_constants_and_instances(square, mode):
    m, x, w = loaded("every", STRUCTS), gpu(1000), gpu(4, seed=1)
    y = torch.empty_like(x)
    values = {
        "x": x, "y": y, "n": 1000, "p_scale": 0.5, "p_add_0": 7, "p_add_1": 3, "p_last": 0.25, "v_x": 1.0, "v_y": 2.0,
        "v_z": 3.0, "v_w": 4.0, "mode": mode, "kSquare": square, "weights_values": w,
    }  # fmt: skip
    m.all(*(values[name] for name in m.all.__signature__.parameters))
    t = x.double() * 0.5 + 3 + 0.25 + 1 + 4 + w.double().repeat(250)
    expected = (t * t if square else t) * (1 + mode)
    assert torch.allclose(y.double(), expected, rtol=1e-5, atol=1e-5)


DYNAMIC = """__global__ void sums(const float* x, float* y) {
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < 20000; i += blockDim.x) tile[i] = x[i];
  __syncthreads();
  if (threadIdx.x == 0) { float s = 0; for (int i = 0; i < 20000; ++i) s += tile[i]; *y = s; }
}"""


def test_shared_memory_above_48_kib():
    m, x, y = loaded("sums", DYNAMIC), torch.ones(20000, device="cuda"), torch.zeros(1, device="cuda")
    names = list(m.sums_kernel.__signature__.parameters)
    values = {"x": x, "y": y, "shared_bytes": 80000} | {n: 1 for n in names if n.startswith("grid")}
    values |= {n: 256 if n in ("block", "block_x") else 1 for n in names if n.startswith("block")}
    m.sums_kernel(*(values[n] for n in names))
    assert y.item() == 20000
    with pytest.raises(cuffi.CaffeRuntimeError, match="bytes of shared memory"):
        m.sums_kernel(*((values | {"shared_bytes": 10_000_000})[n] for n in names))


COOPERATIVE = """#include <cooperative_groups.h>
__global__ void turn(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? x[n - 1 - i] : 0;
  cooperative_groups::this_grid().sync();
  if (i < n) x[i] = v;
}
void run(int* x, int n) { void* a[] = {&x, &n}; cudaLaunchCooperativeKernel((void*)turn, dim3(8), dim3(128), a, 0, 0); }
"""


def test_a_cooperative_launch():
    m, x = loaded("turn", COOPERATIVE), torch.arange(1000, dtype=torch.int32, device="cuda")
    names = list(m.turn_kernel.__signature__.parameters)
    values = {"x": x, "n": 1000} | {n: 1 for n in names}
    values |= {n: v for n, v in (("grid", 8), ("grid_x", 8), ("block", 128), ("block_x", 128)) if n in names}
    values |= {"x": x, "n": 1000}
    m.turn_kernel(*(values[n] for n in names))
    assert x.tolist() == list(range(999, -1, -1))


HALVES = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <typename T> __global__ void axpy(int n, float a, const T* x, T* y) {
  CUDA_KERNEL_LOOP(i, n) { y[i] = T(float(x[i]) * a + float(y[i])); } }"""


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_instances_for_halves(dtype):
    m = loaded("axpy", HALVES, instances={"axpy": ["float", "__half", "__nv_bfloat16"]})
    x, y = gpu(5000, dtype=dtype), gpu(5000, dtype=dtype, seed=1)
    expected = (x.float() * 0.5 + y.float()).to(dtype)
    m.axpy_kernel(5000, 0.5, x, y)
    assert torch.allclose(y.float(), expected.float(), rtol=1e-2, atol=1e-2)


def test_printf(tmp_path):
    code = (
        "import torch, cuffi\nm = cuffi.load_inline('says', '__global__ void says(float* x) "
        "{ if (threadIdx.x < 2) printf(\"thread %d\\\\n\", threadIdx.x); }', backends='cuda')\n"
        "names = list(m.says_kernel.__signature__.parameters)\n"
        "x = torch.zeros(1, device='cuda')\n"
        "m.says_kernel(*[x if n == 'x' else 32 if n in ('block', 'block_x') else 1 for n in names])\n"
        "torch.cuda.synchronize()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "thread 0\nthread 1\n", done.stderr


def test_the_current_stream_and_graphs():
    m, x = loaded("relu6", RELU6), gpu(1 << 20) * 6
    y, stream = torch.zeros_like(x), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        m.relu6_kernel(x.numel(), x, y)
    stream.synchronize()
    assert torch.equal(y, x.clamp(0, 6))
    graph, z = torch.cuda.CUDAGraph(), torch.zeros_like(x)
    with torch.cuda.graph(graph):
        m.relu6_kernel(x.numel(), x, z)
    assert not z.any()
    x.mul_(-1)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(z, x.clamp(0, 6))


DIFF = (
    RELU6
    + """
template <typename Dtype> __global__ void relu6_diff(const int n, const Dtype* in, const Dtype* dy, Dtype* dx) {
  CUDA_KERNEL_LOOP(i, n) { dx[i] = in[i] > 0 && in[i] < 6 ? dy[i] : Dtype(0); } }"""
)


@pytest.mark.parametrize("compiled", [False, True])
def test_an_operator_with_its_gradient(compiled):
    m = loaded("relus", DIFF)

    @cuffi.operator(m.layer)
    def relu6_diff(x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        dx = torch.empty_like(x)
        m.relu6_diff(x.numel(), x, dy, dx)
        return dx

    @cuffi.operator(m.layer)
    def relu6(x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        m.relu6(x.numel(), x, y)
        return y

    @relu6.backward(save=lambda ctx, inputs, y: ctx.save_for_backward(inputs[0]))
    def _(ctx, dy):
        return relu6_diff(ctx.saved_tensors[0], dy)

    def loss(x):
        return (relu6(x) * 2).sum()

    run = torch.compile(loss, fullgraph=True) if compiled else loss
    for _ in range(4):  # the last ones go by plans
        x = gpu(1000) * 6
        x.requires_grad_()
        run(x).backward()
        inside = (x > 0) & (x < 6)
        assert torch.equal(x.grad, 2 * inside.to(x.dtype))


def test_a_thread_without_a_context():
    m, x = loaded("relu6", RELU6), gpu(1000) * 6
    y, errors = torch.zeros_like(x), []

    def call():
        try:
            m.relu6_kernel(1000, x, y)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert not errors and torch.equal(y, x.clamp(0, 6))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_several_gpus():
    m = loaded("relu6", RELU6)
    for number in (1, 0, 1):
        x = gpu(1000).to(f"cuda:{number}") * 6
        y = torch.zeros_like(x)
        m.relu6_kernel(1000, x, y)
        torch.cuda.synchronize(number)
        assert torch.equal(y, x.clamp(0, 6))


def test_ptx_runs_where_no_image_fits():
    m, x = loaded("relu6", RELU6, arch="sm_75"), gpu(1000) * 6
    y = torch.zeros_like(x)
    m.relu6_kernel(1000, x, y)
    assert torch.equal(y, x.clamp(0, 6))


def test_a_second_process_compiles_nothing(own_cache):
    """In a fork before CUDA is used; its load takes few milliseconds of the processor."""
    code = (
        f"import time, torch\nfrom cuffi import load_inline\nx = torch.randn(100, device='cuda') * 6\n"
        f"t = time.process_time()\nm = load_inline('relu6', {RELU6!r}, backends='cuda')\nt = time.process_time() - t\n"
        "y = torch.empty_like(x); m.relu6_kernel(100, x, y); assert torch.equal(y, x.clamp(0, 6)); print(t)"
    )
    environment = os.environ | {"PATH": "/nonexistent"}
    times = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300
        )
        assert done.returncode == 0, done.stderr
        times.append(float(done.stdout))
    print("seconds of the processor for load_inline, first and later processes:", times)
    assert min(times[1:]) < 0.05


@pytest.mark.skipif(not toolkit.find_nvcc(), reason="needs nvcc")
@pytest.mark.parametrize("name", ["relu6", "softmax"])
def test_the_same_bits_as_nvccs(monkeypatch, name):
    text = {"relu6": RELU6, "softmax": SOFTMAX}[name]
    x = gpu(64, 1000)
    results = []
    for compiler in ("nvrtc", "nvcc"):
        monkeypatch.setenv(kernel_build.VARIABLE, compiler)
        m = cuffi.load_inline(name, text, backends="cuda")
        assert isinstance(m.layer.library("cuda"), KernelLibrary) == (compiler == "nvrtc")
        y = torch.zeros_like(x)
        if name == "relu6":
            m.relu6_kernel(x.numel(), x, y)
        else:
            words = str(m.softmax_kernel.__signature__)
            m.softmax_kernel(x, y, 1000, *([64] if "grid" in words else []))
        results.append(y)
    assert torch.equal(*results)


def test_an_illegal_launch_names_the_file_and_the_limits():
    m = loaded("sums", DYNAMIC)
    names = list(m.sums_kernel.__signature__.parameters)
    x, y = torch.ones(20000, device="cuda"), torch.zeros(1, device="cuda")
    values = {"x": x, "y": y, "shared_bytes": 80000} | {n: 1 for n in names if n.startswith("grid")}
    values |= {n: 4096 if n in ("block", "block_x") else 1 for n in names if n.startswith("block")}
    with pytest.raises(cuffi.CaffeRuntimeError, match=r"sums\.cu:1: kernel launch: .*at most 1024 threads"):
        m.sums_kernel(*(values[n] for n in names))
    assert math.isfinite(torch.ones(3, device="cuda").sum().item())
