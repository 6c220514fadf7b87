"""Old-style autograd Functions, as in code of 2017."""

import gc
import sys
import weakref
from typing import Any

import pytest
import torch
from support import python_with_torch

from cuffi import CaffeRuntimeError, CaffeTypeError
from cuffi.ffi import old_functions
from cuffi.old_torch.ffi import function

# The types of torch know today's Functions alone.
Function: Any = torch.autograd.Function


@pytest.fixture(autouse=True)
def everywhere(monkeypatch):
    """Old Functions of this file run, and torch is as before after the test."""
    for name in ("__init__", "__call__", "saved_tensors"):
        monkeypatch.setattr(Function, name, getattr(Function, name))
    monkeypatch.setattr(Function, "saved_variables", Function.saved_variables)
    monkeypatch.setattr(function, "_folders", set())
    old_functions()


class Scaled(Function):
    """k a b, with the gradients of a product."""

    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, a, b):
        self.seen = self.needs_input_grad
        self.save_for_backward(a, b)
        return self.k * a * b

    def backward(self, grad):
        a, b = self.saved_tensors
        self.strides = grad.stride()
        return self.k * grad * b, self.k * grad * a if self.needs_input_grad[1] else None


def test_values_and_gradients_in_double():
    a, b = (torch.rand(3, 4, dtype=torch.double, requires_grad=True) for _ in "ab")
    torch.testing.assert_close(Scaled(3)(a, b), 3 * a * b)
    assert torch.autograd.gradcheck(lambda a, b: Scaled(3)(a, b), (a, b))


def test_needs_input_grad_is_of_the_inputs_alone():
    f = Scaled(2)
    f(torch.ones(2, requires_grad=True), torch.ones(2)).sum().backward()
    assert f.seen == (True, False)


def test_a_gradient_without_strides_arrives_dense():
    f, a = Scaled(2), torch.rand(2, 3, requires_grad=True)
    result = f(a, torch.ones(2, 3))
    result.sum().backward()
    assert result.grad_fn.old.strides == (3, 1)


def test_one_object_called_twice_keeps_two_calls_apart():
    class Power(Function):
        def forward(self, x):
            self.x = x.clone()
            self.calls = getattr(self, "calls", 0) + 1
            return x * x

        def backward(self, grad):
            return 2 * grad * self.x

    f, x = Power(), torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.tensor([5.0, 7.0], requires_grad=True)
    first, second = f(x), f(y)
    (first + second).sum().backward()
    assert f.calls == 2
    torch.testing.assert_close((x.grad, y.grad), (2 * x.detach(), 2 * y.detach()))


def test_in_place_and_integer_results():
    class Clip(Function):
        def forward(self, x):
            self.mark_dirty(x)
            kept = (x > 0).long()
            self.mark_non_differentiable(kept)
            self.save_for_backward(kept)
            return x.clamp_(min=0), kept

        def backward(self, grad, of_kept):
            return grad * self.saved_variables[0]

    leaf = torch.tensor([-1.0, 2.0], requires_grad=True)
    x = leaf * 3
    version = x._version
    y, kept = Clip()(x)
    assert y is x and x._version > version and not kept.requires_grad
    y.sum().backward()
    torch.testing.assert_close(leaf.grad, torch.tensor([0.0, 3.0]))


def test_a_change_of_a_saved_tensor_is_an_error():
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2)
    result = Scaled(1)(a, b).sum()
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


def test_forward_and_backward_by_hand():
    f = Scaled(2)
    f.forward(torch.tensor([3.0]), torch.tensor([4.0]))
    f.needs_input_grad = (True, True)
    assert [g.item() for g in f.backward(torch.ones(1))] == [8, 6]


def test_too_few_gradients_are_an_error_with_the_name():
    class Lazy(Function):
        def forward(self, a, b):
            return a + b

        def backward(self, grad):
            return grad

    result = Lazy()(torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))
    with pytest.raises(CaffeRuntimeError, match="Lazy: backward returned 1 gradients, forward took 2 inputs"):
        result.sum().backward()


def test_no_silent_second_derivative():
    a = torch.ones(2, requires_grad=True)
    (grad,) = torch.autograd.grad((Scaled(2)(a, torch.ones(2)) ** 2).sum(), a, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_arguments_by_name_are_refused():
    with pytest.raises(CaffeTypeError, match=r"Scaled: .*by name"):
        Scaled(2)(torch.ones(1), b=torch.ones(1))


def test_saved_tensors_are_freed_with_the_graph():
    b = torch.ones(2)
    kept = weakref.ref(b)
    f = Scaled(2)
    result = f(torch.ones(2, requires_grad=True), b).sum()
    del b
    result.backward()
    del result
    gc.collect()
    assert kept() is None


def test_the_node_has_the_old_name():
    result = Scaled(2)(torch.ones(2, requires_grad=True), torch.ones(2))
    assert type(result.grad_fn).__name__ == "ScaledBackward"


def test_todays_functions_stay_torchs():
    class Today(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    x = torch.tensor(3.0, requires_grad=True)
    Today.apply(x).backward()
    assert x.grad == 6
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        today = Today()
    with pytest.raises(RuntimeError, match=r"[Ll]egacy autograd function"):
        today(x)


def test_only_below_the_folders(tmp_path):
    """In a new process, because old_functions() without folders cannot be undone."""
    text = "from torch.autograd import Function\nclass F(Function):\n def forward(self, x): return 2 * x\n"
    for folder in ("mine", "others"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.py").write_text(text)
    program = (
        "import sys, torch; from cuffi.ffi import old_functions; old_functions(sys.argv[1] + '/mine')\n"
        "sys.path += [sys.argv[1] + '/mine', sys.argv[1] + '/others']; import mine, others\n"
        "assert mine.F()(torch.ones(1)) == 2\n"
        "try: others.F()(torch.ones(1))\n"
        "except RuntimeError as error: assert 'egacy' in str(error)\n"
        "else: sys.exit('ran')\n"
    )
    done = python_with_torch.run([sys.executable, "-c", program, tmp_path])
    assert done.returncode == 0, done.stderr
