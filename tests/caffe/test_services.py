"""Caffe layers as torch modules: random numbers, and Forward run again for them. On layers of caffe_zoo."""

import torch
from support.zoo import grads, raises

from layers._runtime import CaffeRuntimeError


def test_follows_torchs_seed(zoo, place):
    m, x = place(zoo.Noise()), place.draw(1000)
    torch.manual_seed(5)
    y = m(x)
    other = m(x)
    torch.manual_seed(5)
    assert torch.equal(m(x), y) and not torch.equal(other, y)
    assert 300 < (y == 0).sum() < 700
    assert torch.equal(m.eval()(x), x)
    assert not torch.equal(m.train()(x), x)
    m = place(zoo.Noise('layer { type: "Noise" phase: TEST }'))
    assert torch.equal(m(x), x) and not torch.equal(m.train()(x), x)


def test_cpu_forward_without_cpu_backward(zoo, monkeypatch):
    """Forward is run again by kernels, and from then on at once."""
    m, x = zoo.Kernels(), torch.randn(5, requires_grad=True)
    torch.testing.assert_close(grads(m(x), x), grads(2 * x, x))
    assert m._pool.host_mode == 1
    torch.testing.assert_close(grads(m(x), x), grads(2 * x, x))
    m = zoo.Kernels()
    m(x)
    several = [m(x) for _ in range(3)]  # each object has its short way, with CPU code
    grads(several.pop(), x)
    del several
    monkeypatch.setattr(type(m._pool), "forward_again", None)
    for _ in range(2):
        several = [m(x) for _ in range(3)]
        for y in several:
            torch.testing.assert_close(grads(y, x), grads(2 * x, x))
    m = zoo.Kernels()
    m.mode = "cpu"
    with raises(CaffeRuntimeError, r"Backward_cpu is NOT_IMPLEMENTED \(zoo_layers.cpp:\d+: ", "m.mode"):
        grads(m(x), x)


def test_cpu_forward_without_cpu_backward_and_other_random_numbers(zoo):
    m, x = zoo.Noise(zoo_param={"slope": 1}), torch.randn(100, requires_grad=True)
    with raises(CaffeRuntimeError, "gave another result"):
        m(x).sum().backward()
    y = m(x)
    y.sum().backward()
    assert torch.equal(x.grad, (y != 0).to(x))


def test_no_backward_at_all(zoo):
    m, x = zoo.Kernels(zoo_param={"slope": 1}), torch.randn(3, requires_grad=True)
    for _ in range(2):
        with raises(CaffeRuntimeError, r"Backward_... is NOT_IMPLEMENTED \(zoo_layers.c..?:\d+: "):
            m(x).sum().backward()
    assert m._pool.host_mode in (None, 0)
