"""Caffe layers as torch modules: the state of one call, until its backward. On layers of caffe_zoo."""

import copy
import pickle
import threading

import pytest
import torch
from support.typed import not_none
from support.zoo import grads, raises

from cuffi.runtime import CaffeRuntimeError


def test_several_forwards_before_a_backward(zoo, place):
    m = place(zoo.Rewriting())
    xs, label = [place.draw(4, grad=True, seed=s) for s in range(3)], place.draw(4, seed=9)
    ys = [m(x, label) for x in xs]
    for x, y in reversed([*zip(xs, ys, strict=True)]):
        torch.testing.assert_close(torch.autograd.grad(y, x)[0], (x - label).detach() / 4)
    assert [len(pool) for pool in m._pool.free.values()] == [3]


def test_results_that_a_file_says_are_overwritten(zoo):
    """caffe_zoo's `overwrites` lists one function wrongly, which shows that the core uses the file."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)  # new memory is filled with NaN
    try:
        m, x = zoo.AddingNeuron(), torch.ones(4, requires_grad=True)
        for _ in range(3):
            y = m(x)
            assert y.isnan().all()
            assert torch.autograd.grad(y.sum(), x)[0].tolist() == [1] * 4
        m.mode = "gpu"
        assert m(x).tolist() == [1] * 4
    finally:
        torch.use_deterministic_algorithms(before)


def test_backward_twice(zoo, place):
    """Backward overwrites what it reads, so a second one must start from Forward's state again."""
    m = place(zoo.Rewriting())
    x, label = place.draw(4, grad=True), place.draw(4, seed=9)
    y = m(x, label)
    first = torch.autograd.grad(y, x, retain_graph=True)[0]
    second = torch.autograd.grad(y, x, retain_graph=True)[0]
    torch.testing.assert_close(first, (x - label).detach() / 4)
    assert torch.equal(first, second)
    torch.autograd.grad(y, x)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, x)


def test_backward_twice_of_a_random_layer(zoo, place):
    m = place(zoo.Noise())
    x = place.draw(100, grad=True)
    y = m(x)
    first = torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
    assert torch.equal(first, (y != 0).to(x))
    expected = torch.rand(3, generator=_state_like())
    assert torch.equal(torch.autograd.grad(y.sum(), x, retain_graph=True)[0], first)
    assert torch.equal(torch.rand(3), expected)  # torch's generator went on as if nothing had been drawn


def _state_like():
    generator = torch.Generator()
    generator.set_state(torch.get_rng_state())
    return generator


def test_second_backward_that_would_be_wrong_is_refused(zoo):
    m = zoo.Noise()
    x = torch.randn(100, requires_grad=True)
    y = m(x)
    torch.autograd.grad(y.sum(), x, retain_graph=True)
    m.eval(), m.train()
    m._pool.free.clear()
    node = y.grad_fn
    node.call.states.clear()  # as if the layer drew from a source that nobody can replay
    with raises(CaffeRuntimeError, "gave another result"):
        torch.autograd.grad(y.sum(), x)


def test_modified_bottom_is_noticed(zoo):
    m, x = zoo.Noise(), torch.randn(4, requires_grad=True) * 1
    y = m(x)
    x.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_backward_twice_of_a_layer_that_writes_a_blob(zoo, place):
    """For the second backward, Forward runs again on copies, so the blob changes once per call."""
    m, x = place(zoo.Running().setup((3,), dtype=torch.float64)), place.draw(3, grad=True)
    for calls in (1, 2, 3):
        y = m(x)
        for _ in range(3):
            torch.testing.assert_close(grads(y, x, retain_graph=True), grads(2 * x, x))
            assert m.blob0.tolist() == [calls] and m.blob1.tolist() == [2 * calls]
    with torch.no_grad():
        m(x)
    assert m.blob0.tolist() == [4]


@pytest.mark.parametrize("layer", ["Early", "EarlyNeuron"])
def test_a_gradient_that_forward_leaves(zoo, place, layer):
    """Backward finds it in the bottom's diff, once per call, in C's and in Python's calls."""
    m = place(getattr(zoo, layer)())
    for seed in range(4):
        x = place.draw(2, 3, grad=True, seed=seed)
        torch.full_like(x, 7)  # what the memory to come may hold
        y = m(x)
        torch.testing.assert_close(y, x * x / 2)
        torch.testing.assert_close(grads(y, x, retain_graph=True), grads(x * x / 2, x))
        torch.testing.assert_close(grads(y, x), grads(x * x / 2, x))
        with torch.no_grad():
            m(x + 1)
    several = [(x, m(x)) for x in (place.draw(4, grad=True, seed=s) for s in range(3))]
    for x, y in several:
        torch.testing.assert_close(grads(y, x), grads(x * x / 2, x))


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_a_gradient_that_forward_scales_by_the_loss_weight(zoo, place, weight):
    """Caffe keeps the loss weight in the top's diff from the start. Backward writes nothing."""
    m = place(zoo.EarlyLoss(loss_weight=[weight]))
    # Python's call and C's; more elements, and fewer.
    for shape in [(2, 3), (2, 3), (4, 5), (2, 2), (2, 2)]:
        x = place.draw(*shape, grad=True)
        y = m(x)
        torch.testing.assert_close(y, weight * x * x / 2)
        torch.testing.assert_close(torch.autograd.grad(y.sum(), x, retain_graph=True)[0], weight * x.detach())
        torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], weight * x.detach())
        with torch.no_grad():
            m(x + 1)


def test_an_incoming_gradient_is_not_written(zoo, place):
    """It belongs to autograd, which may pass it to others. An in-place layer writes into a copy."""
    for weight in ([], [3.0]):
        names = {"bottom": ["x"], "top": ["x"], "loss_weight": weight}
        for m in (zoo.Ramp(zoo_param={"slope": 0.25}, **names), zoo.Ramp(zoo_param={"slope": 0.25})):
            m = place(m)
            x, other = place.draw(3, 4, grad=True), place.draw(3, 4, grad=True, seed=2)
            diff = place.draw(3, 4, seed=3)
            given = diff.clone()
            for _ in range(3):  # by Python, then by C
                factor = weight[0] if weight and m._pool.in_place else 1
                dx, dother = torch.autograd.grad(m(x * 1) + other, (x, other), given)
                assert torch.equal(given, diff) and torch.equal(dother, diff)
                torch.testing.assert_close(dx, factor * torch.where(x > 0, diff, diff / 4))


def test_second_derivative_is_refused(zoo):
    m, x = zoo.Rewriting(), torch.randn(4, requires_grad=True)
    (diff,) = torch.autograd.grad(m(x, torch.zeros(4)), x, create_graph=True)
    with raises(CaffeRuntimeError, "no second derivative"):
        diff.sum().backward()


def test_threads(zoo):
    m = zoo.Rewriting()
    m.setup((64,), (64,))
    wrong = []

    def work(seed):
        for i in range(50):
            x = torch.randn(64, generator=torch.Generator().manual_seed(seed * 100 + i)).requires_grad_()
            y = m(x, torch.zeros(64))
            y.backward()
            if not torch.allclose(not_none(x.grad), x.detach() / 64):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_mode_after_a_call(zoo):
    """A new mode applies from the next call on."""
    m, x = zoo.Sided(), torch.zeros(2, requires_grad=True)
    for mode in ("cpu", "gpu", None, "gpu", "cpu", "gpu", "gpu"):
        m.mode = mode
        assert m.mode == mode
        added = 2 if mode == "gpu" else 1
        for _ in range(3):
            y = m(x)
            assert y.tolist() == [added] * 2
            assert torch.autograd.grad(y.sum(), x)[0].tolist() == [added] * 2
            with torch.no_grad():
                assert m(x).tolist() == [added] * 2
        for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            assert other.mode == mode and other(x).tolist() == [added] * 2
    y = m(x)
    m.mode = "cpu"  # between a forward and its backward: this call stays what it was
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [2, 2]
    pair = zoo.Pair()
    pair(x, x)
    pair.mode = "cpu"
    with raises(CaffeRuntimeError, "Pair's own Forward_cpu is NOT_IMPLEMENTED"):
        pair(x, x)
