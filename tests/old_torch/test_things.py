"""include/aten/autograd.h, object.h, class.h and library.h: C++ autograd, Python's objects, classes and operators."""

import gc
import sys
import weakref
from pathlib import Path

import pytest
import torch
from old_torch.conftest import SOURCES, builds
from support import python_with_torch
from support.workshop import ROOT

from cuffi.old_torch import cpp_extension


@pytest.fixture(scope="module")
def things(session_cache):
    with builds(session_cache):
        return cpp_extension.load("things", [SOURCES / "things.cpp"])


@pytest.fixture(scope="module")
def operators(session_cache):
    with builds(session_cache):
        cpp_extension.load("operators", [SOURCES / "operators.cu"], is_python_module=False)
    return torch.ops.aten_test_ops


def test_a_function_with_its_gradient_in_cpp(things):
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: things.square(x, 3.0), x)
    assert things.square(x.detach(), 3.0).grad_fn is None
    y = things.square(x, 2.0)
    gone = weakref.ref(y.grad_fn)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    del y
    gc.collect()
    assert gone() is None


def test_pythons_own_objects(things):
    given, listed = {"x": 4}, [1]
    assert things.info(given, listed) == {"n": 2, "x": 4, "new": 1}
    assert given == {"x": 4, "new": 1} and listed == [1, 2.5]
    assert things.apply(lambda a, b: a * b, 5) == 15
    with pytest.raises(KeyError, match="none"):
        things.missing({})
    with pytest.raises(ZeroDivisionError):
        things.apply(lambda a, b: 1 // 0, 1)
    with pytest.raises(FileNotFoundError):  # its text is not UTF-8
        things.apply(lambda a, b: Path("\udc80").stat(), 1)


def test_a_class(things):
    counter = things.Counter()
    assert counter.add(k=3) == 8 and things.twice(counter) == 16 and repr(counter) == "Counter 16"
    assert things.of_pointer(counter) == 16
    counter.n = 2
    assert things.Counter(2).n == counter.n
    counter.t = x = torch.ones(1)
    assert counter.t is x
    with pytest.raises(TypeError, match=r"twice\(\): argument 1: expected Counter, got int"):
        things.twice(3)
    with pytest.raises(TypeError, match=r"expected Counter, got Counter that its __init__ has not made"):
        things.twice(things.Counter.__new__(things.Counter))
    assert things.Counter.__module__ == "things"
    with pytest.raises(TypeError, match="argument 2 `start`: expected int, got str"):
        things.Counter("a")


def test_operators_of_the_processor_and_of_a_kernel(operators):
    a, b = torch.randn(5), torch.randn(5)
    torch.testing.assert_close(operators.muladd(a, b, 2.0), a * b + 2)
    assert torch.equal(operators.doubled(a), 2 * a)
    assert operators.inferred(a[:4], 1, [2, 2]).shape == operators.old(a[:4], 1, [2, 2]).shape == (2, 2)
    with pytest.raises(RuntimeError, match="the sizes differ"):
        operators.muladd(a, b[:2], 1.0)


def everywhere(**others):
    cpp_extension.load("everywhere", [SOURCES / "everywhere.cu"], is_python_module=False, **others)
    return torch.ops.aten_test_everywhere


def test_an_operator_that_asks_for_the_device_itself(extensions):
    x, ops = torch.arange(5.0), everywhere()
    assert torch.equal(ops.add(x, 2.0), x + 2) and torch.equal(ops.add_many([x], 3.0), x + 3)
    assert torch.equal(ops.first(x), x * 100)  # its code for the processor, not its kernel


def test_another_build_does_not_replace_an_operator(extensions):
    everywhere()
    with pytest.raises(RuntimeError, match="is there already, defined by another build of everywhere"):
        everywhere(extra_cflags=["-DOTHER"])


@pytest.mark.gpu
def test_operators_of_both_libraries(session_cache, nvcc, monkeypatch):
    """In a process of its own: an operator is registered once."""
    code = f"""
import sys, torch
sys.path.insert(0, {str(ROOT)!r})
from cuffi.old_torch import cpp_extension
cpp_extension.load("everywhere", [{str(SOURCES / "everywhere.cu")!r}], is_python_module=False)
ops = torch.ops.aten_test_everywhere
for device in "cpu", "cuda":
    x = torch.arange(5.0, device=device)
    assert torch.equal(ops.add(x, 2.0), x + 2) and torch.equal(ops.add_many([x], 3.0), x + 3), device
    assert torch.equal(ops.first(x), x * 100 if device == "cpu" else x + 1), device
    assert ops.add(x, 2.0).device == x.device
"""
    monkeypatch.setenv("CUFFI_CACHE", str(session_cache))
    monkeypatch.setenv("NVCC", nvcc)
    done = python_with_torch.run([sys.executable, "-c", code], cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_opcheck(operators):
    """The fake kernel and the gradient are the user's, in Python, as with torch's own headers."""
    torch.library.register_fake("aten_test_ops::muladd", lambda a, b, c: torch.empty_like(a))

    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a, None

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])

    torch.library.register_autograd("aten_test_ops::muladd", backward, setup_context=keep)
    x = [torch.randn(4, requires_grad=True) for _ in range(2)]
    found = torch.library.opcheck(operators.muladd.default, (*x, 1.0))
    assert set(found.values()) == {"SUCCESS"}


def test_an_operator_is_defined_once(operators, extensions):
    text = 'TORCH_LIBRARY_FRAGMENT(aten_test_ops, m) { m.def("doubled(Tensor a) -> Tensor"); }'
    with pytest.raises(
        RuntimeError,
        match=r"other: .* aten_test_ops::doubled is there already, defined by operators",
    ):
        cpp_extension.load_inline("other", text, is_python_module=False)


def test_an_implementation_with_a_key_of_its_own(extensions):
    """torch::dispatch, and a key before the function. Before, the second function of an operator was left out."""
    cpp_extension.load_inline("keyed", """
at::Tensor on_cpu(at::Tensor x) { return x + 1; }
at::Tensor on_meta(at::Tensor x) { return at::empty({7}, x.options()); }
TORCH_LIBRARY(aten_test_keys, m) {
  m.def("f(Tensor x) -> Tensor");
  m.impl("f", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(on_cpu)));
  m.impl("f", torch::dispatch(c10::DeviceType::Meta, &on_meta));
  m.def("g(Tensor x) -> Tensor");
  m.impl("g", c10::DispatchKey::CPU, on_cpu);
  m.impl("g", c10::DispatchKey::Meta, TORCH_FN(on_meta));
}""", is_python_module=False)  # fmt: skip
    for f in torch.ops.aten_test_keys.f, torch.ops.aten_test_keys.g:
        assert f(torch.zeros(2)).tolist() == [1, 1] and f(torch.zeros(2, device="meta")).shape == (7,)
