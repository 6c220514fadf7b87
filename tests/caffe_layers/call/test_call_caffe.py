"""A call of a Caffe layer by C, and the calls that C leaves to Python."""

import pytest
import torch
from support.zoo import FILLER, grads, raises

from cuffi.runtime import CaffeRuntimeError, CaffeValueError
from cuffi.runtime.extension import usable

needs_the_extension = pytest.mark.skipif(usable() is None, reason="the extension is not built")


@pytest.mark.filterwarnings("ignore:.*torch.jit")  # make_dual's own
@needs_the_extension
def test_c_and_python_agree(zoo, place):
    """C makes the calls that need no conversion. Python converts for all others, or words the error."""
    m = place(zoo.Ramp(zoo_param={"slope": 0.5}))
    reference = torch.nn.functional.leaky_relu
    x = place.draw(4, 6, dtype=torch.float32)
    grad = x.clone().requires_grad_()
    calls = [x, grad, x.t(), x[:2], x.double(), x.round().int(), x[:0], x.view(6, 4), x.unsqueeze(0), x, grad]
    calls += [torch._neg_view(x), x.as_strided((4, 6), (1, 1)), torch.nn.Parameter(x), x]
    with torch.no_grad():
        for other in calls:
            for again in (other, other, x):
                floating = again if again.is_floating_point() else again.float()
                torch.testing.assert_close(m(again), reference(floating, 0.5))
                assert not m(again).requires_grad
    assert m(grad).requires_grad and not m(x).requires_grad
    torch.testing.assert_close(grads(m(grad), grad), grads(reference(grad, 0.5), grad))
    with (
        torch.autograd.forward_ad.dual_level(),
        pytest.raises(RuntimeError, match="forward"),
    ):
        m(torch.autograd.forward_ad.make_dual(x, x))
    with raises(CaffeRuntimeError, "torch.func"):
        torch.func.grad(lambda x: m(x).sum())(x)
    with raises(CaffeValueError, "expected 1 bottoms, got 2"):
        m(x, x)


@needs_the_extension
def test_c_makes_the_calls(zoo, place, monkeypatch):
    m = place(zoo.Affine(zoo_param=FILLER))
    x = place.draw(2, 3, 4, grad=True)
    m(x)
    m(x[:1])
    (instance,) = m._pool.free[next(iter(m._pool.free))]

    def careful(*_):
        raise AssertionError("the careful way")

    monkeypatch.setattr(type(m._pool), "forward", careful)
    monkeypatch.setattr(type(instance), "backward", careful)
    y = place.draw(2, 3, 4, seed=2)
    for inputs in [(x, m.blob0, m.blob1), (x,), (m.blob1,), (m.blob0, x)]:
        reference = x * m.blob0.view(3, 1) + m.blob1.view(3, 1)
        for diff in (y, y.mT.contiguous().mT, y[:1, :1, :1].expand(2, 3, 4)):
            result = m(x)
            torch.testing.assert_close(result, reference)
            expected = torch.autograd.grad(reference, inputs, diff, retain_graph=True)
            torch.testing.assert_close(torch.autograd.grad(result, inputs, diff), expected)
            with torch.no_grad():
                torch.testing.assert_close(m(x), reference)
                torch.testing.assert_close(m(x[:1]), reference[:1])  # another shape, which it has seen
    with raises(CaffeRuntimeError, "once only"):
        (gradient,) = torch.autograd.grad(m(x).square().sum(), x, create_graph=True)
        gradient.sum().backward()
    monkeypatch.undo()
    several = [m(x) for _ in range(3)]  # each with an instance of its own
    for result in several:
        torch.testing.assert_close(grads(result, x), grads(reference, x, retain_graph=True))
    result = m(x).sum()  # C's backward, then Python's
    once, twice = (torch.autograd.grad(result, x, retain_graph=True) for _ in range(2))
    expected = torch.autograd.grad(reference.sum(), x, retain_graph=True)
    torch.testing.assert_close(once, expected)
    torch.testing.assert_close(twice, expected)


def test_c_says_which_sizes_vary(zoo, place):
    """The pool also learns sizes that depend on values from calls by C."""
    m = place(zoo.Positive())
    first, second = place.draw(6).abs(), place.draw(6).abs()
    second[2] = -1
    with torch.no_grad():
        assert m(first).shape == (6,) and m(first).shape == (6,)
        m._pool.varying.clear()
        assert m(second).shape == (5,)
    assert m._pool.varying == {(0, 0)}


def test_a_saved_tensor_that_comes_back_as_another(zoo, place):
    """A hook on saved tensors may change them: another layout is accepted, another dtype is an error."""
    m, x = place(zoo.Affine(zoo_param=FILLER)), place.draw(2, 3, 4, grad=True)
    expected = grads(m(x), (x, m.blob0))
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: t, lambda t: t.mT.contiguous().mT if t.dim() > 1 else t
    ):
        result = m(x)
    torch.testing.assert_close(grads(result, (x, m.blob0)), expected)
    with torch.autograd.graph.saved_tensors_hooks(torch.Tensor.float, lambda t: t):
        result = m(x)
    with pytest.raises(TypeError, match="another dtype"):
        grads(result, x)
