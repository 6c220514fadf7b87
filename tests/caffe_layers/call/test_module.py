"""Caffe layers as torch modules: calls and gradients, bad input. On layers of caffe_zoo."""

import pytest
import torch
from support.typed import not_none
from support.zoo import FILLER, grads, raises
from torch import Tensor

from cuffi.runtime import CaffeRuntimeError, CaffeTypeError, CaffeValueError


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_bottom_one_top(zoo, place, dtype):
    m = place(zoo.Ramp(zoo_param={"slope": 0.25}))
    x = place.draw(2, 3, 4, dtype=dtype, grad=True)
    y = m(x)
    reference = torch.nn.functional.leaky_relu(x, 0.25)
    torch.testing.assert_close(y, reference)
    assert y.grad_fn is not None and y.device == x.device
    torch.testing.assert_close(grads(y, x), grads(reference, x))
    with torch.no_grad():
        for _ in range(3):  # by Python, then by C
            again = m(x)
            assert torch.equal(again, y) and not again.requires_grad
    assert torch.autograd.gradcheck(m, (place.draw(3, 5, grad=True),))


def test_two_bottoms_two_tops(zoo, place):
    m = place(zoo.Pair())
    if place.mode == "cpu":
        said = r"Pair's own Forward_cpu is NOT_IMPLEMENTED \(zoo_layers.cpp:\d+: Not Implemented Yet\)"
        with raises(CaffeRuntimeError, said):
            m(place.draw(3), place.draw(3))
        m.mode = None  # its kernels, as there is no CPU code
    a, b = place.draw(3, 4, grad=True), place.draw(3, 4, grad=True, seed=2)
    tops = m(a, b)
    assert type(tops) is tuple
    torch.testing.assert_close(tops, (a + b, a * b))
    torch.testing.assert_close(grads(m(a, b), (a, b)), grads((a + b, a * b), (a, b)))
    torch.testing.assert_close(grads(m(a, b)[1], (a,)), grads(a * b, (a,)))  # no gradient comes to the sum
    torch.testing.assert_close(grads(m(a.detach(), b), (b,)), grads((a + b, a * b), (b,)))  # propagate_down
    assert torch.autograd.gradcheck(m, (a, b))


def test_names_say_how_many_tops(zoo):
    m = zoo.Pair(bottom=["a", "b"], top=["s", "p", "s2", "p2"])
    a, b = torch.randn(5, requires_grad=True), torch.randn(5, requires_grad=True)
    torch.testing.assert_close(m(a, b), (a + b, a * b, a + b, a * b))
    torch.testing.assert_close(grads(m(a, b), (a, b)), grads((a + b, a * b, a + b, a * b), (a, b)))
    with raises(CaffeValueError, "expected 2 bottoms: a, b, got 1"):
        m(a)
    with raises(CaffeTypeError, "bottom 'b'", "float32 as"):
        m(a, b.double())
    with raises(CaffeRuntimeError, r"Check failed: .*2 vs. 1", "2 bottom"):
        zoo.Pair()(a)


def test_parameters_as_text(zoo):
    text = 'layer { name: "r" type: "Ramp" bottom: "x" top: "y" zoo_param { slope: 0.5 } }'
    assert torch.equal(zoo.Ramp(text)(torch.tensor([-2.0, 2.0])), torch.tensor([-1.0, 2.0]))
    assert torch.equal(zoo.Ramp({"zoo_param": {"slope": 3}})(torch.tensor([-2.0])), torch.tensor([-6.0]))
    assert "zoo_param { slope: 0.5 }" in repr(zoo.Ramp(text))
    with raises(CaffeValueError, "slop", "slope"):
        zoo.Ramp(zoo_param={"slop": 1})


def test_loss_and_its_weight(zoo, place):
    x, label = place.draw(6, 2, grad=True), place.draw(6, 2, seed=2)
    loss = 0.5 * (x - label).square().mean()
    for weight in (1, 0.25):
        m = place(zoo.Rewriting(loss_weight=[weight] if weight != 1 else []))
        for _ in range(3):  # by Python, then by C
            y = m(x, label)
            torch.testing.assert_close(y, weight * loss)
            torch.testing.assert_close(
                torch.autograd.grad(2 * y, x), torch.autograd.grad(2 * weight * loss, x, retain_graph=True)
            )
            with torch.no_grad():
                torch.testing.assert_close(m(x, label), weight * loss.detach())
    m = place(zoo.Pair(loss_weight=[0.5, 1]))
    m.mode = None
    a, b = place.draw(3, 4, grad=True), place.draw(3, 4, grad=True, seed=2)
    for _ in range(3):
        torch.testing.assert_close(m(a, b), ((a + b) / 2, a * b))
        torch.testing.assert_close(grads(m(a, b), (a, b)), grads(((a + b) / 2, a * b), (a, b)))
    shared = place(zoo.Shared(loss_weight=[3]))
    for _ in range(3):
        torch.testing.assert_close(shared(a), 3 * a.flatten())
        torch.testing.assert_close(grads(shared(a), a), grads(3 * a.flatten(), a))


def test_top_shaped_by_its_values(zoo, place):
    m = place(zoo.Positive())
    with torch.no_grad():
        for seed in range(6):
            x = place.draw(9, seed=seed)
            assert torch.equal(m(x), x[x > 0])
    x = place.draw(9, grad=True)
    m = place(zoo.Positive())
    for seed in range(6):
        x = place.draw(9, grad=True, seed=seed)
        torch.testing.assert_close(m(x), x[x > 0])
        torch.testing.assert_close(grads(m(x), x), grads(x[x > 0], x))
    assert m(-torch.ones(3, device=place.device)).shape == (0,)


def test_top_that_is_the_bottoms_memory(zoo, place):
    m = place(zoo.Shared())
    x = place.draw(2, 3, grad=True)
    y = m(x)
    assert y.data_ptr() == x.data_ptr() and y.shape == (6,)
    torch.testing.assert_close(grads(y * y, x), grads(x.flatten().square(), x))
    with torch.no_grad():
        assert m(x).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("memory", ["kept", "top", "bottom", "in top", "buffer"])
def test_tops_that_share_memory(zoo, place, memory, early):
    """They share it with each other, or with what the layer keeps for Backward. Inputs may grow."""
    m = place(zoo.Exposing(zoo_param={"memory": memory, "early": early}))
    calls = []
    for size in (3, 3, 3, 5, 2, 7):
        x = place.draw(size, grad=True, seed=len(calls))
        torch.full_like(x, 7)  # what the memory to come may hold
        calls.append((x, *m(x)))
        torch.testing.assert_close(grads(calls[-1][1], x), grads(x.exp(), x))
        with torch.no_grad():
            torch.testing.assert_close(m(x + 1)[1], x + 1 if memory == "bottom" else (x + 1).exp())
    for x, one, other in calls:  # none is written by a later call
        torch.testing.assert_close(one, x.exp())
        torch.testing.assert_close(other, x if memory == "bottom" else x.exp())


def test_in_place(zoo, place):
    m = place(zoo.Ramp(zoo_param={"slope": 0.25}, bottom=["x"], top=["x"]))
    x = place.draw(3, 4, grad=True)
    inner = x * 2
    y = m(inner)
    assert y.data_ptr() == inner.data_ptr()
    reference = torch.nn.functional.leaky_relu(x * 2, 0.25)
    assert torch.equal(y, reference)
    torch.testing.assert_close(grads(y, x, retain_graph=True), grads(reference, x))
    with raises(CaffeRuntimeError, "in-place", "once"):
        grads(y, x)
    before = x.detach().clone()
    with raises(CaffeRuntimeError, "bottom 'x' is a leaf"):
        m(x)
    assert torch.equal(x, before)
    with raises(CaffeTypeError, "bottom 'x'", "contiguous"):
        m(place.draw(3, 4).t())
    squared = (z := x * 1).square()  # needs z, which the layer then overwrites
    with torch.no_grad():
        m(z)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        grads(squared, x)


def test_setup_refuses_what_is_no_shape(zoo):
    m = zoo.Affine()
    with raises(
        CaffeTypeError,
        r"zoo: setup: bottom 0: expected a shape or a tensor \(m.setup\(\(2, 3, 4, 5\)\)",
        "int 2",
    ):
        m.setup(2, 3, 4, 5)
    for bad in ("text", None, (2, 3.5), torch.float32):
        with raises(CaffeTypeError, "setup: bottom 0", "a shape or a tensor"):
            m.setup(bad)
    for bad in ((2, -3), (2, 1 << 31), (1 << 70,)):
        with raises(CaffeValueError, "setup: bottom 0", "sizes that an int can hold"):
            m.setup(bad)
    with raises(CaffeRuntimeError, "setup", "blob size exceeds INT_MAX"):
        m.setup((1 << 16, 1 << 16))
    assert m.setup(torch.Size([2, 3])).blob0.shape == (3,)
    named = zoo.Pair(bottom=["a", "b"], top=["s", "p"])
    with raises(CaffeTypeError, "setup: bottom 'b'"):
        named.setup((1,), 2)


def test_a_path_is_no_prototxt(zoo, tmp_path):
    file = tmp_path / "deploy.prototxt"
    for path in (file, str(file), "deploy.prototxt", "models/deploy.prototxt"):
        with raises(
            CaffeValueError, "zoo: prototxt: expected text, got the path '.*deploy.prototxt'", "read_text"
        ):
            zoo.Ramp(path)
    for text in ("", " ", 'name: "a/b.prototxt"', "zoo_param { slope: 1 } # see models/deploy.prototxt"):
        assert zoo.Ramp(text)(torch.ones(1)).tolist() == [1]


def test_empty(zoo, place):
    m = place(zoo.Ramp())
    x = place.draw(0, 3, grad=True)
    y = m(x)
    assert y.shape == (0, 3)
    y.sum().backward()
    assert x.grad.shape == (0, 3)


def test_compile_breaks_the_graph(zoo):
    m, x = zoo.Ramp(zoo_param={"slope": 0.5}), torch.randn(5, requires_grad=True)
    compiled = torch.compile(lambda x: m(x * 2) + 1, backend="eager")
    torch.testing.assert_close(compiled(x), torch.nn.functional.leaky_relu(x * 2, 0.5) + 1)


def test_modes_and_subclasses(zoo):
    from torch.utils.flop_counter import FlopCounterMode

    class Marked(Tensor):
        pass

    m, x = zoo.Ramp(), torch.randn(3)
    with FlopCounterMode(display=False):
        assert torch.equal(m(x), x.relu())
    assert torch.equal(m(x.as_subclass(Marked)), x.relu())
    with torch.inference_mode():
        assert torch.equal(m(x), x.relu())
    assert torch.equal(m(x), x.relu())
    with torch.inference_mode():
        fresh = zoo.Noise().eval()
        fresh(x)
    y = torch.randn(3, requires_grad=True)
    fresh(y).sum().backward()
    assert not_none(y.grad).tolist() == [1, 1, 1]


@pytest.mark.parametrize("made", ["call", "setup", "state_dict"])
def test_first_used_under_inference_mode(zoo, place, made):
    """Its blobs are not inference tensors, so it can be trained afterwards."""
    m = place(zoo.Affine(zoo_param=FILLER))
    x = place.draw(2, 3)
    with torch.inference_mode():
        if made == "setup":
            m.setup((2, 3), dtype=torch.float64, device=place.device)
        elif made == "state_dict":
            m.load_state_dict({f"blob{i}": torch.ones(3, dtype=torch.float64) for i in range(2)})
            with torch.inference_mode(False):  # torch's own m.to() makes inference tensors under it
                place(m.double())
        m(x.clone())
    m(x).sum().backward()
    assert not m.blob0.is_inference() and m.blob1.grad.tolist() == [2, 2, 2]
    with torch.no_grad():
        m.blob0 -= m.blob0.grad
    torch.testing.assert_close(m(x), x * m.blob0 + m.blob1)
