"""load and load_inline with torch's arguments: strings, options, the cache, and what is refused."""

import re
import sys
import threading
from typing import Any

import pytest
import torch
from old_torch.conftest import SOURCES
from setuptools import Distribution

import cuffi
from cuffi import CaffeBuildError, CaffeTypeError, CaffeValueError
from cuffi.old_torch import aten_library, cpp_extension

pytestmark = pytest.mark.usefixtures("cache")

SQUARE = """
template <typename T>
__global__ void square_kernel(const T* x, T* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i];
}
torch::Tensor square(torch::Tensor x) {
  TORCH_CHECK(x.device().is_cuda() && x.is_contiguous(), "x must be a contiguous CUDA tensor");
  auto y = torch::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "square", [&] {
    const int n = x.numel();
    square_kernel<scalar_t><<<(n + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
  });
  return y;
}
"""
DECLARED = "torch::Tensor square(torch::Tensor x);"


def square(**options):
    given: dict[str, Any] = {
        "name": "squares", "cpp_sources": DECLARED, "cuda_sources": SQUARE, "functions": ["square"]
    }  # fmt: skip
    return cuffi.load_inline(**given | options)


def test_a_kernel_and_its_function():
    module = square(verbose=True, extra_cuda_cflags=["-O2", "--use_fast_math"])
    for dtype in (torch.float32, torch.float64, torch.float16):
        x = torch.randn(1000).to(dtype)
        assert torch.equal(module.square(x), x * x)
    assert square(extra_cuda_cflags=["-O2", "--use_fast_math"]) is module  # the build in the cache
    with pytest.raises(RuntimeError, match="x must be a contiguous CUDA tensor"):
        module.square(torch.ones(4, 4).t()[1:])


def test_docstrings_and_options():
    text = "int seven() { return SEVEN; }"
    module = cuffi.load_inline("seven", [text], functions={"seven": 'a "number"'}, extra_cflags=["-DSEVEN=7"])
    assert module.seven() == 7 and module.seven.__doc__ == 'a "number"'


def test_the_second_form_is_told_by_its_text():
    text = "#include <torch/extension.h>\nint one() { return 1; }\n"
    text += 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("one", &one); }'
    assert cuffi.load_inline("ones", text).one() == 1


def test_two_extensions_of_one_name():
    one, two = (
        cuffi.load_inline("same", f"int number() {{ return {n}; }}", functions="number") for n in (1, 2)
    )
    assert (one.number(), two.number()) == (1, 2)


class OnGpu(torch.Tensor):
    """A tensor that says of itself that it is on a GPU."""

    is_cuda = True


def test_which_library_gets_a_call():
    """That for GPUs gets those with a tensor on a GPU, wherever it is, and those without a tensor."""
    text = "int which(std::optional<torch::Tensor> a, std::vector<torch::Tensor> list, int n) { return 1; }"
    text += (
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("which", &which, py::arg("a"), py::arg("list"), '
    )
    text += 'py::arg("n") = 0); }'
    module = cuffi.load_inline("which_library", f"#include <torch/extension.h>\n{text}")
    module._connect(module.which, lambda *given, **named: 2)
    x, y = torch.ones(1), torch.ones(1).as_subclass(OnGpu)
    for given, named in (((x, []), {}), ((None, [x]), {"n": 1}), ((), {"a": x, "list": []})):
        assert module.which(*given, **named) == 1
    for given, named in (((x, [x, y]), {}), ((y, []), {}), ((x,), {"list": [y]}), ((None, []), {"n": 3})):
        assert module.which(*given, **named) == 2


def test_what_two_libraries_of_one_module_share():
    """Two builds, of which the second stands for the library for GPUs: what has no tensor is its own."""
    module, other = (
        cpp_extension.load("paired", [SOURCES / "paired.cpp"], extra_cflags=[f"-DWHO={n}"]) for n in (1, 2)
    )
    deep = other.inner.deep
    aten_library.connect(module, other)
    x = torch.ones(1)
    for owner in module, module.inner:
        assert owner.of_tensor(x) == 1 and owner.who() == 2
    assert module.inner.deep.who() == 2 and module.inner.deep is not deep
    assert (
        sys.modules["paired.inner"] is module.inner and sys.modules["paired.inner.deep"] is module.inner.deep
    )
    counter, own = module.Counter(), module.counter_of(x)
    assert (counter.who(), module.of_counter(counter), module.of_both(x, counter)) == (2, 2, 2)
    assert (own.who(), module.of_counter(own), module.of_both(x, own)) == (1, 1, 1)
    sub = type("Sub", (module.Counter,), {})()
    assert (sub.who(), module.of_counter(sub), module.of_both(x, sub)) == (2, 2, 2)
    assert module.of_mode(x, module.Mode.WIDE) == 11 and module.of_gpus() == 2


def test_functions_of_an_own_init_function_are_of_the_library_for_gpus():
    text = """#include <Python.h>
#include <torch/extension.h>
static PyObject* who(PyObject*, PyObject*) { return PyLong_FromLong(WHO); }
static PyMethodDef methods[] = {{"who", who, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "own_init", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_own_init() { return PyModule_Create(&definition); }
"""
    module, other = (cuffi.load_inline("own_init", text, extra_cflags=[f"-DWHO={n}"]) for n in (1, 2))
    assert (module.who(), other.who()) == (1, 2)
    aten_library.connect(module, other)
    assert module.who() == 2


def test_other_threads_go_on_during_a_kernel():
    text = """
    __global__ void wait_kernel(volatile float* flag, float* seen, int rounds) {
      for (int i = 0; i < rounds && !seen[0]; ++i) seen[0] = flag[0];
    }
    void wait(torch::Tensor flag, torch::Tensor seen) {
      wait_kernel<<<1, 1>>>(flag.data_ptr<float>(), seen.data_ptr<float>(), 2000000000);
    }
    """
    module = cuffi.load_inline("waits", "void wait(torch::Tensor, torch::Tensor);", text, functions="wait")
    flag, seen = torch.zeros(1), torch.zeros(1)
    thread = threading.Timer(0.3, flag.fill_, [1])  # it can only run if the kernel gave Python's lock back
    thread.start()
    module.wait(flag, seen)
    thread.join()
    assert seen.item() == 1


def test_a_file_and_its_header(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "number.h").write_text("int number() { return NUMBER; }\n")
    source = tmp_path / "number.cpp"
    source.write_text(
        '#include <torch/extension.h>\n#include "number.h"\nPYBIND11_MODULE(number, m) { m.def("number", &number); }\n'
    )
    options: dict[str, Any] = {"extra_include_paths": [str(tmp_path / "include")]}
    assert cuffi.load("number", [source], extra_cflags=["-DNUMBER=3"], **options).number() == 3
    (tmp_path / "include" / "number.h").write_text("int number() { return 2 * NUMBER; }\n")
    assert (
        cuffi.load(name="number", sources=str(source), extra_cflags=["-O3 -DNUMBER=3"], **options).number()
        == 6
    )


BAD = [
    (lambda: square(functions=["squar"]), CaffeBuildError, "functions:1:.*squar.* was not declared"),
    (lambda: square(functions=["a b"]), CaffeValueError, "functions: expected names, got 'a b'"),
    (lambda: square(cpp_sources=[3]), CaffeTypeError, "cpp_sources: expected strings, got 3"),
    (
        lambda: square(cuda_sources=SQUARE.replace("y[i] =", "z[i] =")),
        CaffeBuildError,
        r"squares\.cu:5:14: error: ",
    ),
    (lambda: square(cuda_sources=""), CaffeBuildError, "undefined reference to `square"),
    (lambda: square(functions=None), CaffeValueError, "the module would be empty: pass functions="),
    (
        lambda: square(name="a-b"),
        CaffeValueError,
        "name: expected a module's name such as lltm_cuda, got 'a-b'",
    ),
    (
        lambda: cpp_extension.load("none", ["/there/is/none.cpp"]),
        CaffeValueError,
        "there is no file none.cpp: there is no folder /there/is",
    ),
    (
        lambda: cpp_extension.load("none", [SOURCES / "setup.py"]),
        CaffeValueError,
        r"expected .cpp or .cu files, got .*setup.py",
    ),
    (
        lambda: cpp_extension.load("none", []),
        CaffeValueError,
        "sources: expected .cpp or .cu files, got none",
    ),
    (
        lambda: cpp_extension.load("none", [SOURCES / "cell.cpp"], extra_cflags="-DA='"),
        CaffeValueError,
        "none: extra_cflags: No closing quotation in ",
    ),
    (lambda: cpp_extension.load("none", [3]), CaffeValueError, "sources: there is no file .*3"),
    (
        lambda: cpp_extension.load("none", [SOURCES / "cell.cpp"], is_standalone=True),
        CaffeValueError,
        "is_standalone",
    ),
    (
        lambda: square(cuda_sources="#include <cudnn.h>\n" + SQUARE),
        CaffeBuildError,
        r"squares\.cu:1:1: error: the host has no <cudnn",
    ),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_what_is_refused(number):
    call, kind, text = BAD[number]
    with pytest.raises(kind, match=text):
        call()


def test_an_unknown_operation_is_named():
    text = "torch::Tensor f(torch::Tensor x) { return x.no_such_thing(); }"
    with pytest.raises(CaffeBuildError) as raised:
        cuffi.load_inline("unknown", text, functions="f")
    assert re.search(r"unknown\.cpp:1:\d+: error: .*no_such_thing", str(raised.value))


def test_folders_of_setup_itself(monkeypatch):
    """setup(include_dirs=...) is for all extensions of a setup.py."""
    seen = []
    monkeypatch.setattr(cpp_extension, "_of_setup", lambda ext: seen.append(ext.include_dirs) or 1 / 0)
    ext = cpp_extension.CppExtension("x", ["x.cpp"], include_dirs=["own"])
    command = cpp_extension.BuildExtension(Distribution({"include_dirs": ["all"], "ext_modules": [ext]}))
    command.ensure_finalized()
    with pytest.raises(ZeroDivisionError):
        command.build_extension(ext)
    assert seen == [["own", "all"]]


def test_calls_that_two_schemas_could_take():
    """C++ has no default for some arguments, or the call would be ambiguous (torch's cpp_no_default_args)."""
    module = cpp_extension.load_inline("defaults", """
std::vector<at::Tensor> all(at::Tensor x, at::Tensor w) {
  auto both = at::std_mean(x);
  return {x.std(), x.var(), at::var(x, at::IntArrayRef({1}), false), std::get<0>(both), std::get<1>(both),
          (x > 0).any(), (x > 0).all(), at::any(x, 1), x.clamp(0.1), at::clamp(x, c10::nullopt, 0.5),
          at::arange(2, 5), at::conv1d(x.view({1, 2, 3}), w)};
}""", functions="all")  # fmt: skip
    x, w = torch.randn(2, 3), torch.randn(1, 2, 2)
    wanted = [x.std(), x.var(), x.var(1, False), *torch.std_mean(x), (x > 0).any(), (x > 0).all(), x.any(1)]
    wanted += [x.clamp(0.1), x.clamp(max=0.5), torch.arange(2, 5), torch.conv1d(x.view(1, 2, 3), w)]
    for got, expected in zip(module.all(x, w), wanted, strict=False):
        torch.testing.assert_close(got, expected)


SIGNATURE = "torch::Tensor f(torch::Tensor x,\n  const std::vector<int64_t>& sizes);  // of x\n"


@pytest.mark.parametrize(
    "cpp, cuda, is_one",
    [
        (SIGNATURE, "torch::Tensor f(torch::Tensor x) { return x; }", True),
        (SIGNATURE + "int g();", "#define N 3\n__device__ static int h() { return N; }", True),
        (SIGNATURE, "  // static\n", False),
        (SIGNATURE, "static torch::Tensor f(torch::Tensor x) { return x; }", False),
        (
            SIGNATURE,
            "inline __attribute__((noinline)) torch::Tensor\nf(torch::Tensor x) { return x; }",
            False,
        ),
        (SIGNATURE, "#define torch at\nint h();", False),
        (SIGNATURE, "using namespace at;", False),
        (SIGNATURE, 'extern "C" int h();', False),
        ("int f(int n = 1);", "int f(int n) { return n; }", False),
        ("int f() { return 1; }", "int g();", False),
        ("#include <vector>\nint f();", "int f() { return 1; }", False),
        ("using namespace at; int f();", "int f() { return 1; }", False),
    ],
)
def test_which_strings_are_one_file(cpp, cuda, is_one):
    assert cpp_extension._is_one(cpp, cuda, ["f"]) == is_one


def test_strings_that_are_one_file(monkeypatch):
    monkeypatch.setattr(cpp_extension.processor, "stands_in", True)
    text = """__global__ void k(int n, float* y) { for (int i = threadIdx.x; i < n; i += 32) y[i] += 1; }
torch::Tensor f(torch::Tensor x) {
  auto y = x.clone(); k<<<1, 32>>>(x.numel(), y.data_ptr<float>()); return y;
}"""
    made = cpp_extension.load_inline("one_file", "torch::Tensor f(torch::Tensor x);", text, ["f"])
    assert made.f(torch.zeros(70)).eq(1).all()
    with pytest.raises(cuffi.CaffeBuildError, match=r"one_file\.cpp:1:\d+: error"):
        cpp_extension.load_inline("one_file", "torch::Tensor f(torch::Nothing x);", text, ["f"])
