"""Backward sees what Forward wrote to its bottoms and parameters. The caller's tensors stay as they were.

Writing of caffe_zoo writes, and then computes w * a * b * b. The reference clips by torch, with the gradient of the
clipped values, as Caffe's Backward gives it.
"""

import importlib

import pytest
import torch
from support.zoo import grads

BOTTOMS = ["whole", "part", "host", "copy", "share", "buffer"]


def clipped(x, part=slice(None)):
    values = x.detach().clone()
    values[part] = values[part].clamp(-1, 1)
    return x + (values - x).detach()


def reference(what, w, a, b, calls=1):
    if what == "part":
        b = clipped(b, slice(len(b) // 2))
    elif what in ("whole", "host"):
        a, b = clipped(a), clipped(b)
    elif what in BOTTOMS:
        a = clipped(a)
    elif what == "weight":
        w = clipped(w)
    else:
        w = w + calls
    return w * a * b * b


@pytest.fixture
def made(zoo, place):
    """A function that returns the module that writes this, with its bottoms; blob0 is 3."""

    def make(what, **more):
        m = place(zoo.Writing(zoo_param={"memory": what}, **more))
        a, b = (3 * place.draw(6, grad=True, seed=s) for s in (1, 2))
        m.setup(a, b)
        return (
            m,
            a.detach().requires_grad_(),
            b.detach().requires_grad_(),
            m.blob0.detach().clone().requires_grad_(),
        )

    return make


@pytest.mark.parametrize("what", [*BOTTOMS, "weight", "running"])
def test_backward_sees_what_forward_wrote(made, what):
    m, a, b, w = made(what)
    before = a.detach().clone(), b.detach().clone()
    for calls in (1, 2, 3):  # by Python, then by C
        y, expected = m(a, b), reference(what, w, a, b, calls)
        torch.testing.assert_close(y, expected)
        torch.testing.assert_close(grads(y, (a, b, m.blob0)), grads(expected, (a, b, w)))
        assert torch.equal(a, before[0]) and torch.equal(b, before[1])


@pytest.mark.parametrize("what", ["whole", "part", "share", "weight", "running"])
def test_each_call_has_its_own(made, what):
    """A second Forward before the first one's Backward, in either order."""
    for order in (1, -1):
        m, a, b, w = made(what)
        other = (a.detach() * -0.3).requires_grad_()
        calls = [(m(x, b), x, reference(what, w, x, b, 1 + i)) for i, x in enumerate((a, other))]
        for y, x, expected in calls[::order]:
            torch.testing.assert_close(grads(y, (x, b, m.blob0)), grads(expected, (x, b, w)))


@pytest.mark.parametrize("what", ["whole", "part", "share", "weight"])
def test_a_second_backward(made, what):
    m, a, b, w = made(what)
    y, expected = m(a, b), reference(what, w, a, b)
    for _ in range(3):
        found = grads(y, (a, b, m.blob0), retain_graph=True)
        torch.testing.assert_close(found, grads(expected, (a, b, w), retain_graph=True))


@pytest.mark.parametrize("what", ["whole", "part", "weight"])
def test_beside_a_bottom_in_place(made, what):
    """The tensor that is computed in place is the top. The other bottom is written on a copy."""
    m, a, b, w = made(what, bottom=["a", "b"], top=["a"])
    before, given = b.detach().clone(), a * 1
    y, expected = m(given, b), reference(what, w, a, b)
    assert y.data_ptr() == given.data_ptr()
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(grads(y, (a, b, m.blob0)), grads(expected, (a, b, w)))
    assert torch.equal(b, before)


@pytest.mark.parametrize("what", ["whole", "part", "copy", "share"])
def test_in_a_graph(made, what):
    """The operator of torch.library runs Forward again for its backward, on another instance."""
    torch._dynamo.reset()
    m, a, b, w = made(what)
    compiled = torch.compile(m, backend="aot_eager", fullgraph=True)
    y, expected = compiled(a, b), reference(what, w, a, b)
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(grads(y, (a, b, m.blob0)), grads(expected, (a, b, w)))


def test_nothing_is_kept_without_a_gradient(zoo, made):
    m, a, b, _ = made("whole")
    services = importlib.import_module(f"{zoo.__package__.rpartition('.')[0]}._caffe.services")
    with torch.no_grad():
        m(a, b)
        before = len(services.memory)
        m(a, b)
        assert len(services.memory) == before
    y = m(a, b).sum()
    assert len(services.memory) == before + 2  # of both bottoms, until Backward
    y.backward()
    assert len(services.memory) == before
