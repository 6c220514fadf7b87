"""load_inline: which strings are accepted, the resulting module, and the errors."""

import copy
import os
import pickle
import re
from typing import Any

import pytest
import torch
from support.load import FILL, FILL_DECLARED, RELU6

import cuffi
from cuffi import CaffeBuildError, CaffeError, CaffeRuntimeError, CaffeTypeError, CaffeValueError, load_inline
from cuffi.loading.load_inline import OF_CPP

pytestmark = pytest.mark.usefixtures("cache")


def test_kernels_alone_get_launchers():
    module = load_inline("relu6", RELU6)
    for dtype in (torch.float32, torch.float64):
        x = torch.linspace(-9, 9, 1001, dtype=dtype)
        y = torch.empty_like(x)
        module.relu6_kernel(x.numel(), x, y)
        assert torch.equal(y, x.clamp(0, 6))
    assert "relu6_kernel" in dir(module)
    with pytest.raises(CaffeValueError, match=r"relu6: out: expected memory for \[1001\] elements"):
        module.relu6_kernel(1001, x, y[:1000])


def test_the_processor_alone_asks_for_no_gpu(monkeypatch):
    """To ask starts CUDA, which takes as long as half of the build."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: pytest.fail("asked for a GPU"))
    module, x, y = load_inline("relu6", RELU6, backends="host"), torch.linspace(-9, 9, 100), torch.empty(100)
    module.relu6_kernel(100, x, y)
    assert torch.equal(y, x.clamp(0, 6))


def test_a_kernel_of_vectors():
    text = """// Without PYBIND11_MODULE and <torch/extension.h>.
    __global__ void swap(const float4* x, float4* y, int n) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = make_float4(x[i].w, x[i].z, x[i].y, x[i].x * normcdff(0.f));
    }"""
    x, y = torch.randn(50, 4), torch.empty(50, 4)
    load_inline("vectors", text).vectors_swap(x, y, 50, 1, 1, 1, 64, 1, 1)
    torch.testing.assert_close(y, x.flip(1) * torch.tensor([1, 1, 1, 0.5]))


STENCIL = """
#include <cuda.h>
#define RADIUS 2
__constant__ float taps[RADIUS + 1], scale;
__constant__ int3 shift[2];
__device__ unsigned int calls;
__global__ void stencil(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = taps[0] * in[i];
  for (int k = 1; k <= RADIUS; k++) sum += taps[k] * ((i >= k ? in[i - k] : 0) + (i + k < n ? in[i + k] : 0));
  out[i] = scale * sum + shift[1].z;
}
void run(const float* in, float* out, int n) { stencil<<<(n + 63) / 64, 64>>>(in, out, n); }
"""


def test_a_launcher_takes_the_values_of_constants():
    """Nothing else fills them: without this, a published finite-difference kernel gave zeros."""
    module = load_inline("stencils", STENCIL)
    x, y = torch.randn(300, dtype=torch.float64), torch.empty(300)
    for taps, scale, shift in (([1.0, 2, 3], 0.5, 7), ([-4.0, 0, 1], 3.0, -1)):
        shifts = torch.tensor([[0, 0, 0], [0, 0, shift]], dtype=torch.int32)
        values = torch.tensor(taps), torch.tensor([scale])
        module.stencils_stencil(x.float(), y, 300, values[1], shifts, values[0])
        kernel = torch.tensor([*taps[:0:-1], *taps], dtype=torch.float64)
        wanted = (
            scale * torch.nn.functional.conv1d(x[None, None], kernel[None, None], padding=2)[0, 0] + shift
        )
        torch.testing.assert_close(y.double(), wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(CaffeValueError, match=r"stencils: taps_values: expected memory for \[3\] elements"):
        module.stencils_stencil(x.float(), y, 300, values[1], shifts, values[0][:2])


def test_exported_functions_are_declared():
    module = load_inline("fills", FILL.format(value=3))
    top = torch.zeros(7)
    module.fill(top, top.numel())
    assert top.tolist() == [3.0] * 7


@pytest.mark.parametrize(
    "definition",
    [
        'extern "C" {{\nint twice({taken}) {{ {body} }}\n}}',
        'extern "C"\nint\ntwice({taken})\n{{ {body} }}',
        '/* extern "C" int other() {{ */ extern "C" __attribute__((noinline)) int twice({taken}) {{ {body} }}',
    ],
)
def test_ways_to_export(definition):
    text = definition.format(
        taken="const float* __restrict__ bottom,  // read\n    float *top, int64_t count, void* stream",
        body="for (int64_t i = 0; i < count; i++) top[i] = 2 * bottom[i]; return 0;",
    )
    module = load_inline("twice", text, backends="host")
    x, y = torch.randn(5), torch.empty(5)
    module.twice(x, y, 5)
    assert torch.equal(y, 2 * x)


def test_declarations_may_be_given():
    text = FILL.format(value=4)
    module = load_inline("fills", text, FILL_DECLARED.replace("top", "ceiling"))
    with pytest.raises(CaffeTypeError, match="ceiling"):
        module.fill(torch.zeros(2, dtype=torch.int32), 2)
    top = torch.zeros(2)
    module.fill(top, 2)
    assert top.tolist() == [4.0, 4.0]


def test_is_an_operators_layer():
    module = load_inline("relu6", RELU6)

    def relu6(bottom: torch.Tensor) -> torch.Tensor:
        top = module.layer.empty_like(bottom)
        module.relu6_kernel(bottom.numel(), bottom, top)
        return top

    function = cuffi.operator(module.layer)(relu6)

    @function.backward(save=lambda ctx, inputs, top: ctx.save_for_backward(*inputs))
    def _(ctx, top_diff):
        (bottom,) = ctx.saved_tensors
        return top_diff * ((bottom > 0) & (bottom < 6))

    x = (torch.rand(31, dtype=torch.float64) * 12 - 3).requires_grad_()
    assert torch.autograd.gradcheck(function, x)
    assert torch.equal(torch.compile(function, fullgraph=True, backend="eager")(x), x.clamp(0, 6))


def test_two_sources_of_one_name():
    one, other = (load_inline("fills", FILL.format(value=v)) for v in (10, 20))
    assert one.__name__ != other.__name__
    assert load_inline("fills", FILL.format(value=10)) is one
    for module, value in ((one, 10), (other, 20), (one, 10)):
        top = torch.zeros(3)
        module.fill(top, 3)
        assert top.tolist() == [value] * 3


# ------------------------------------------------------------------------------------ what is wrong


def test_a_compilers_error_names_the_users_line():
    text = RELU6.replace("max(in[i], Dtype(0))", "max(in[i], zero)")
    with pytest.raises(CaffeBuildError) as raised:
        load_inline("relu6", text)
    message = str(raised.value)
    assert message.startswith("relu6 does not build:")
    assert "relu6.cu:4:" in message  # as the string has it, the first line being empty
    assert re.search("zero.* was not declared", message)
    assert "    4 |   CUDA_KERNEL_LOOP(i, n) { out[i] = min(max(in[i], zero), Dtype(6)); }" in message
    assert os.environ["CUFFI_CACHE"] not in message.split("\n")[1]
    assert isinstance(raised.value, RuntimeError)


def test_nvccs_error_names_the_users_line(monkeypatch, nvcc):
    monkeypatch.setenv("NVCC", nvcc)
    text = RELU6.replace("max(in[i], Dtype(0))", "max(in[i], zero)")
    with pytest.raises(CaffeBuildError) as raised:
        load_inline("relu6", text, arch="sm_80", backends="cuda")
    message = str(raised.value)
    assert 'relu6.cu(4): error: identifier "zero" is undefined' in message
    assert "CUDA_KERNEL_LOOP(i, n) { out[i] = min(max(in[i], zero), Dtype(6)); }" in message


def test_builds_for_the_gpu_without_one(monkeypatch, nvcc):
    monkeypatch.setenv("NVCC", nvcc)
    monkeypatch.setenv("CUFFI_CUDA", "nvcc")
    module = load_inline("relu6", RELU6, arch="sm_80", backends="cuda")
    assert module.layer.backends() == ["cuda"]
    assert b"CUDA sm_80" in (module.layer.folder / "_cuda.abi3.so").read_bytes()


@pytest.mark.gpu
def test_a_block_that_a_gpu_refuses_is_told_with_its_limits(monkeypatch, nvcc):
    """With few headers and with all. CUDA 13 calls it an invalid value, earlier ones an invalid configuration."""
    monkeypatch.setenv("NVCC", nvcc)
    x = torch.randn(100, device="cuda")
    for name, head in ("few", ""), ("all", "#include <vector>\n"):
        line = "const int i = threadIdx.x; if (i < n) y[i] = x[i];"
        text = f"{head}__global__ void f(int n, const float* x, float* y) {{ {line} }}"
        module, y = load_inline(name, text, backends="cuda"), torch.zeros_like(x)
        function = getattr(module, f"{name}_f")
        with pytest.raises(CaffeRuntimeError, match="a block of this GPU has at most 1024 threads"):
            function(100, x, y, 1, 1, 1, 2048, 1, 1)
        function(100, x, y, 1, 1, 1, 128, 1, 1)
        assert torch.equal(x, y)


@pytest.mark.parametrize(
    "line, few",
    [
        ('y[i] = fmaxf(x[i], FLT_MIN) + min(i, 3) + INT32_MAX; assert(i >= 0); printf("%d", i);', True),
        ("CUDA_KERNEL_LOOP(k, n) { y[k] = (float)caffe::half(x[k]); }", True),
        ("y[i] = std::max(x[i], 0.f);", False),
        ("std::array<float, 2> a = {x[i], 1}; y[i] = a[0];", False),
    ],
)
def test_nvcc_reads_few_headers_of_a_string_that_uses_none(monkeypatch, nvcc, line, few):
    monkeypatch.setenv("NVCC", nvcc)
    text = f"__global__ void f(int n, const float* x, float* y) {{ int i = threadIdx.x; if (i < n) {{ {line} }} }}"
    module = load_inline("headers", text, arch="sm_90", backends="cuda")
    assert ("CAFFE_FEW_HEADERS" in (module.layer.folder / "prologue.h").read_text()) == few


@pytest.mark.parametrize(
    "head",
    ["#include <vector>\n", '#include "own.h"\n', "#include <cub/cub.cuh>\n", "using namespace std;\n"],
)
def test_others_get_all_headers(head):
    assert OF_CPP.search(head.encode())
    assert not OF_CPP.search(
        b"#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n__global__ void standard() {}"
    )


@pytest.mark.parametrize(
    ("source", "declarations", "said"),
    [
        ("static int unseen(int a) { return a; }", None, 'neither a function that is `extern "C"` nor a kernel'),
        ("\nvoid f(float* x) { x[threadIdx.x] = 1; }", None, r"wrong\.cu:2: error: f reads a thread's .*__global__"),
        ("__global__ void register(float* x) { x[0] = 1; }", None, r"wrong\.cu:1: error: register is a word of C\+\+"),
        ("__global__ void f(Blob<float>* x) { x->mutate(); }", None, "no launcher could be made"),
        (RELU6, "int relu6(float *x, void *stream);", "declared here but defined nowhere as `extern \"C\"`: relu6"),
        ('\n\nextern "C" void f(float* x, void* stream) {}', None, r"wrong\.h:3: error: f must return int"),
        ('extern "C" int f(cudaStream_t stream) { return 0; }', None, "cudaStream_t"),
        ("#include <torch/extension.h>\nint f() { return 1 }\nPYBIND11_MODULE(x, m) {}", None, r"wrong.cpp:2:19: "),
        (FILL.format(value=1).replace("return CAFFE_LAUNCH_STATUS();", ""), None, r"wrong\.cu:10:1: error: no return"),
        ("__global__ void f(float* x) { x[0] = 1; ", None, r"wrong\.cu:1: error: this `{` has no partner"),
        (RELU6.replace("Dtype(6));", "Dtype(6);"), None, r"wrong\.cu:\d+:\d+: error: "),
        (FILL.format(value=1), "#include <math.h>\n" + FILL_DECLARED, "expected only C declarations"),
    ],
)  # fmt: skip
def test_a_source_that_is_wrong(source, declarations, said):
    with pytest.raises(CaffeBuildError, match=said):
        load_inline("wrong", source, declarations)


@pytest.mark.parametrize(
    "name", ["", "2fast", "my-layer", "my layer", "class", "a/b", "../up", "größe", "_own"]
)
def test_a_name_that_is_none(name):
    with pytest.raises(CaffeValueError, match="load_inline: name: expected a Python name such as my_layer"):
        load_inline(name, RELU6)


def test_a_name_that_is_too_long():
    with pytest.raises(CaffeValueError, match="load_inline: name: expected at most 100 letters, got 300"):
        load_inline("a" * 300, RELU6)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "said"),
    [
        ((1, RELU6), {}, CaffeTypeError, "name: expected a string, got 1"),
        (("foo", b"bytes"), {}, CaffeTypeError, "cuda_source: expected a string"),
        (("foo", None), {}, CaffeTypeError, "cuda_source: expected a string"),
        (("foo", "  \n"), {}, CaffeValueError, "cuda_source: expected CUDA, got an empty string"),
        (("foo", RELU6, 3), {}, CaffeTypeError, "declarations: expected a string"),
        (("foo", RELU6), {"arch": 90}, CaffeTypeError, 'arch: expected a string such as "sm_90", got 90'),
        (("foo", RELU6), {"backends": "gpu"}, CaffeValueError, 'backends: expected some of "host", "cuda"'),
        (("foo", RELU6), {"backends": []}, CaffeValueError, 'backends: expected some of "host", "cuda"'),
        (("foo", RELU6), {"backends": "cuda"}, CaffeValueError, "no nvcc was found"),
    ],
)
def test_arguments_that_are_wrong(monkeypatch, arguments, options, error, said):
    monkeypatch.setenv("CUFFI_CUDA", "nvcc")
    with pytest.raises(error, match=said) as raised:
        load_inline(*arguments, **options)
    assert isinstance(raised.value, CaffeError)
    assert str(raised.value).startswith("load_inline: ")


def test_the_module_shows_its_functions_and_takes_vectors():
    """repr has each function with its types, a wrong count names them, and float3 takes a tuple."""
    source = """
    __global__ void Fill(const int n, float* out, float3 v) {
      CUDA_KERNEL_LOOP(i, n) { out[i] = v.x + 10 * v.y + v.z; }
    }
    __global__ void twice(const int n, int* out) { CUDA_KERNEL_LOOP(i, n) { out[i] *= 2; } }
    """
    m = load_inline("shown", source)
    assert repr(m).startswith("<layer shown: shown_fill(n: 'int64_t', out: 'float *', v_x: 'float'")
    assert "shown_twice(n: 'int64_t', out: 'int32_t *', /)" in repr(m)
    out = torch.zeros(3)
    m.shown_fill(3, out, (1.0, 2.0, 3.0))
    assert out.tolist() == [24.0] * 3
    with pytest.raises(
        TypeError, match=r"shown_fill takes 5 arguments, int64_t n, float \*out, float v_x.*: got 4"
    ):
        m.shown_fill(3, out, (1.0, 2.0))


def test_a_compiler_that_says_nothing_is_named(monkeypatch):
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(CaffeBuildError, match="It printed nothing, and ended with an error: false"):
        load_inline("silent", RELU6, backends="host")


@pytest.mark.parametrize(
    "layer, kernels",
    [
        ("mymod", {"foo": "mymod_foo", "BarBaz": "mymod_bar_baz"}),
        ("foo", {"foo": "foo_kernel", "Bar": "foo_bar"}),
        ("foo", {"foo_kernel": "foo_kernel_launch", "kernel2": "foo_kernel2"}),
        ("re_lu", {"ReLUForward": "re_lu_forward"}),
    ],
)
def test_the_launcher_of_a_kernel(cache, layer, kernels):
    """The docstring's names, and the kernel's own names."""
    text = "".join(
        f"__global__ void {kernel}(const int n, float* o) {{ CUDA_KERNEL_LOOP(i, n) {{ o[i] = {at}; }} }}\n"
        for at, kernel in enumerate(kernels, 1)
    )
    module = load_inline(layer, text, backends="host")
    for at, (kernel, launcher) in enumerate(kernels.items(), 1):
        for name in {launcher, kernel, kernel.removesuffix("_kernel") + "_kernel"}:
            out = torch.zeros(2)
            getattr(module, name)(2, out)
            assert out.tolist() == [at, at], name
    with pytest.raises(AttributeError, match=r"declares no C function 'no_such'\. There are: "):
        module.no_such  # noqa: B018
    held: Any = torch.nn.Sequential()
    held.module, held.launcher = module, getattr(module, launcher)
    assert copy.deepcopy(held).module is pickle.loads(pickle.dumps(module)) is module
    assert copy.deepcopy(held).launcher is held.launcher


LAUNCHES = """
__global__ void k(float* o) { o[0] = 1; }
extern "C" int go(float* o, int64_t grid, int64_t gy, int64_t threads, int64_t z, int64_t bytes, void* stream) {
  k<<<dim3(grid, gy), dim3(threads, 1, z), bytes, CAFFE_STREAM(stream)>>>(o);
  return CAFFE_LAUNCH_STATUS();
}
"""


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((1, 1, 2048, 1, 0), "2048 threads in a block, at most 1024"),
        ((1, 1, 32, 64, 0), "2048 threads in a block, at most 1024"),
        ((1, 1, 1, 65, 0), "65 threads along a block's z, at most 64"),
        ((1, 1, 32, 1, 500000), "500000 bytes of shared memory, at most 49152"),
        ((0, 1, 32, 1, 0), "a grid of 0 x 1 x 1 blocks: its x is 0: give at least 1"),
        (
            (1, 70000, 32, 1, 0),
            "a grid of 1 x 70000 x 1 blocks, at most 2147483647 x 65535 x 65535: its y is too large",
        ),
        ((-1, 1, 32, 1, 0), "its x is too large: was a negative number given?"),
        ((1, 0, 32, 1, 0), "its y is 0"),
        ((1, 1, 0, 1, 0), "a block of 0 x 1 x 1 threads: its x is 0"),
    ],
)
def test_a_launch_that_is_refused_says_number_and_limit(values, said):
    module = load_inline("launches", LAUNCHES, backends="host")
    top = torch.zeros(1)
    with pytest.raises(CaffeRuntimeError, match=re.escape(said)) as raised:
        module.go(top, *values)
    assert "launches.cu:5: kernel launch: cudaErrorInvalidConfiguration" in str(raised.value)
    assert "/src/" not in str(raised.value)
    module.go(top, 1, 1, 32, 1, 0)
    assert top.item() == 1


def test_an_argument_that_neither_form_has():
    with pytest.raises(CaffeTypeError, match="load_inline: no argument is called xyz"):
        load_inline("x", "int f() { return 1; }", xyz=1)


def test_a_kernel_without_a_launcher_is_named():
    """In each process: also if the cache has the build."""
    text = """
    struct Scale { float** by; };
    __global__ void scaled(Scale scale, float* y) { y[0] = **scale.by; }
    __global__ void one(float* y) { y[0] = 1; }"""
    for _ in range(2):
        with pytest.warns(
            RuntimeWarning, match="load_inline: partly: a kernel without a launcher: scaled takes a"
        ):
            module = load_inline("partly", text, backends="host")
    y = torch.zeros(1)
    module.one(y, 1, 1, 1, 1, 1, 1)
    assert y.item() == 1


def test_a_parameter_with_the_name_of_a_macro_below():
    text = """
    __global__ void fill(float* out, const int N) { if (threadIdx.x < N) out[threadIdx.x] = N; }
    #define N 8192
    #define grid 7
    """
    y = torch.zeros(5)
    load_inline("macros", text, backends="host").fill(y, 3, 1, 1, 1, 8, 1, 1)
    assert y.tolist() == [3, 3, 3, 0, 0]


def test_a_launch_that_fails_names_the_user_s_line():
    text = "__global__ void wide(float* o) { o[threadIdx.x] = 1; }\n\nvoid run(float* o) { wide<<<1, 2048>>>(o); }\n"
    module = load_inline("failing", text, backends="host")
    with pytest.raises(
        CaffeRuntimeError, match=r"failing\.cu:3: kernel launch: .* 2048 threads in a block, at most 1024"
    ):
        module.failing_wide(torch.zeros(2048))
