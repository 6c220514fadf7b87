"""Calls like the one before, and those that only look like it."""

import pytest
import torch
from support.zoo import FILLER, grads, raises

from layers._runtime import CaffeRuntimeError, CaffeValueError
from layers._runtime.extension import UNUSABLE

needs_the_short_way = pytest.mark.skipif(bool(UNUSABLE), reason="the extension is not built")


@pytest.mark.filterwarnings("ignore:.*torch.jit")  # make_dual's own
@needs_the_short_way
def test_short_and_careful_way_agree(zoo, place):
    """The short way is for calls like the last one. All other calls must not take it."""
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
    assert m._recorded is not None
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


@needs_the_short_way
def test_training_takes_the_short_way(zoo, place, monkeypatch):
    m = place(zoo.Affine(zoo_param=FILLER))
    x = place.draw(2, 3, 4, grad=True)
    m(x)
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
    with raises(CaffeRuntimeError, "once only"):
        (gradient,) = torch.autograd.grad(m(x).square().sum(), x, create_graph=True)
        gradient.sum().backward()
    monkeypatch.undo()
    several = [m(x) for _ in range(3)]  # each with an instance of its own
    for result in several:
        torch.testing.assert_close(grads(result, x), grads(reference, x, retain_graph=True))
    result = m(x).sum()  # the short way's backward, then a second one
    once, twice = (torch.autograd.grad(result, x, retain_graph=True) for _ in range(2))
    expected = torch.autograd.grad(reference.sum(), x, retain_graph=True)
    torch.testing.assert_close(once, expected)
    torch.testing.assert_close(twice, expected)
