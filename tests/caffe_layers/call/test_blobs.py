"""Caffe layers as torch modules: parameter blobs. On layers of caffe_zoo."""

import copy
import pickle

import pytest
import torch
from support.zoo import FILLER, grads, raises
from torch.nn.utils import prune

from cuffi.runtime import CaffeRuntimeError, CaffeTypeError, CaffeValueError


def test_blobs(zoo, place):
    torch.manual_seed(1)
    m = place(zoo.Affine(zoo_param=FILLER))
    x = place.draw(2, 3, 4, grad=True)
    m(x)
    torch.manual_seed(1)
    other = place(zoo.Affine(zoo_param=FILLER)).setup((2, 3, 4), dtype=torch.float64, device=place.device)
    assert torch.equal(m.blob0, other.blob0) and (m.blob0 >= 1).all() and (m.blob0 < 2).all()
    assert dict(m.named_parameters()).keys() == {"blob0", "blob1"} and m.blob0.is_leaf

    def reference(x, w, b):
        return x * w[:, None] + b[:, None]

    inputs = (x, m.blob0, m.blob1)
    torch.testing.assert_close(m(x), reference(*inputs))
    torch.testing.assert_close(grads(m(x), inputs), grads(reference(*inputs), inputs))
    y = m(x)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    torch.testing.assert_close(m.blob1.grad, torch.full_like(m.blob1, 16))
    with torch.no_grad():
        m.blob0.fill_(2), m.blob1.fill_(1)
        for _ in range(3):
            torch.testing.assert_close(m(x), 2 * x + 1)
        m.blob1 = torch.nn.Parameter(torch.zeros_like(m.blob1))
        torch.testing.assert_close(m(x), 2 * x)


def test_propagate_down(zoo, place):
    m = place(zoo.Pair(propagate_down=[True, False]))
    m.mode = None
    a, b = place.draw(3, 4, grad=True), place.draw(3, 4, grad=True, seed=2)
    for _ in range(2):
        tops = m(a, b)
        torch.testing.assert_close(tops, (a + b, a * b))
        left, right = grads(tops, (a, b), allow_unused=True)
        torch.testing.assert_close(left, grads((a + b, a * b), (a,))[0])
        assert right is None
    with raises(CaffeValueError, "propagate_down is for 1 bottoms, got 2"):
        zoo.Pair("propagate_down: false")(a, b)


def test_learning_rate_zero_freezes(zoo):
    m = zoo.Affine(param=[{"lr_mult": 1}, {"lr_mult": 0}], zoo_param=FILLER).setup((2, 3))
    assert [p.requires_grad for p in m.parameters()] == [True, False]
    m(torch.randn(2, 3)).sum().backward()
    assert m.blob0.grad is not None and m.blob1.grad is None


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize(
    "said, lr_mult, decay_mult",
    [
        ([], [0], [1, 0.25]),
        ([{"lr_mult": 3}], [0], [1, 0.25]),
        ([{}, {"lr_mult": 2, "decay_mult": 4}], [0, 2], [1, 0.25]),
    ],
)
def test_multipliers_that_setup_writes(zoo, loaded, said, lr_mult, decay_mult):
    m = zoo.Running(zoo_param={"early": True}, param=said)
    if loaded:
        m.load_state_dict({"blob0": torch.ones(1), "blob1": torch.ones(1)})
    m(torch.ones(3))
    assert (m.lr_mult, m.decay_mult) == (lr_mult, decay_mult)
    assert [p.requires_grad for p in m.parameters()] == [False, True]
    plain = zoo.Running(param=said).setup((3,))
    assert plain.lr_mult == [p.get("lr_mult", 1) for p in said] and plain.blob0.requires_grad
    plain.decay_mult = [2]
    assert plain.decay_mult == [2]
    with raises(CaffeTypeError, "decay_mult: expected a list of numbers"):
        plain.decay_mult = ["x"]


def test_another_shape_meets_the_layers_own_check(zoo):
    m = zoo.Affine(zoo_param=FILLER).setup((2, 3))
    x = torch.randn(2, 3)
    first = m(x)  # keeps the first instance; what comes is checked by a second one
    with raises(
        CaffeRuntimeError,
        "zoo: forward",
        r"zoo_layers.cpp:\d+",
        "Check failed: .*5 vs. 3",
        "channels changed",
    ):
        m(torch.randn(2, 5))
    torch.testing.assert_close(m(x), first)
    assert m(torch.randn(7, 3, 2)).shape == (7, 3, 2)


def test_blobs_that_the_layer_was_not_given(zoo):
    """If a layer does not fix its number of blobs, Caffe reads past the end of a list."""
    x = torch.ones(2, 3)
    with raises(CaffeRuntimeError, "forward", "a bottom or top that the layer was not given"):
        zoo.Careless()(x)
    assert zoo.Careless()(x, 2 * x).tolist() == (2 * x).tolist()
    m = zoo.Careless(zoo_param={"slope": 1})
    with raises(CaffeRuntimeError, "setup", r"it has 2 bottom\(s\) and 1 top\(s\), and needs more"):
        m(x, x)
    assert m(x[:1], 2 * x[:1]).tolist() == [[2, 2, 2]]
    with raises(CaffeRuntimeError, "forward", "and needs more"):
        m(x, x)
    assert m(3 * x[:1], x[:1]).tolist() == [[3, 3, 3]]
    tops = zoo.Careless(top=["product", "other"], zoo_param={"slope": 1})(x, x)
    assert [top.tolist() for top in tops] == [x.tolist(), (0 * x).tolist()]


def test_no_top_that_the_layer_does_not_tell_of(zoo):
    for grad in (False, True):
        m = zoo.Finite()
        for x in (torch.ones(3), torch.zeros(2, 2), torch.ones(3)):
            assert m(x.requires_grad_(grad)) == ()
        with raises(CaffeRuntimeError, "number 1"):
            m(torch.tensor([1, torch.inf]))
    with raises(CaffeRuntimeError, "top 'y'", "no shape"):
        zoo.Finite(bottom=["x"], top=["y"])(torch.ones(3))


def test_more_instances_leave_the_generator_alone(zoo):
    m = zoo.Affine(zoo_param=FILLER).setup((2, 3))
    x = torch.randn(2, 3)
    state = torch.get_rng_state()
    kept = [m(x), m(x), m.eval()(x)]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(kept[0], kept[2])


def test_state_dict_before_the_first_call(zoo):
    m = zoo.Affine(zoo_param=FILLER).setup((2, 3), dtype=torch.float64)
    other = zoo.Affine(zoo_param=FILLER, param=[{"lr_mult": 0}])
    other.load_state_dict(m.state_dict())
    assert not other.blob0.requires_grad and other.blob1.requires_grad
    state = torch.get_rng_state()
    x = torch.randn(2, 3, dtype=torch.float64, generator=torch.Generator())
    assert torch.equal(other(x), m(x)) and torch.equal(torch.get_rng_state(), state)
    wrong = zoo.Affine()
    wrong.load_state_dict(m.state_dict())
    with raises(CaffeValueError, "blob0", r"\[4\]", r"\[3\]"):
        wrong(torch.randn(2, 4, dtype=torch.float64))
    with raises(CaffeTypeError, "blob0", "float32 on cpu", "float64"):
        m(x.float())
    assert m.float()(x.float()).dtype == torch.float32


def test_copies(zoo):
    m = zoo.Affine(zoo_param=FILLER).setup((2, 3))
    x = torch.randn(2, 3)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m)), copy.copy(m)):
        assert torch.equal(other(x), m(x))
    other = copy.deepcopy(m)
    with torch.no_grad():
        other.blob0 += 1
    assert not torch.equal(other(x), m(x))


def test_functional_call(zoo):
    m, x = zoo.Affine(zoo_param=FILLER).setup((2, 3)), torch.randn(2, 3)
    blobs = {"blob0": torch.full((3,), 2.0, requires_grad=True), "blob1": torch.ones(3)}
    torch.testing.assert_close(torch.func.functional_call(m, blobs, (x,)), 2 * x + 1)


def test_what_torch_makes_of_parameters(zoo):
    """They are parametrized, pruned, or copied before or after the first call. One module has an extra parameter."""

    class Double(torch.nn.Module):
        def forward(self, values):
            return 2 * values

    m, x = zoo.Affine(zoo_param=FILLER).setup((2, 3)), torch.randn(2, 3)
    with torch.no_grad():
        m.blob1 += torch.arange(1, 4)
    wanted = x * m.blob0 * 2 + m.blob1
    torch.nn.utils.parametrize.register_parametrization(m, "blob0", Double())
    m.extra = torch.nn.Parameter(torch.zeros(5))
    for module in (m, copy.deepcopy(m)):
        for _ in range(2):
            torch.testing.assert_close(module(x), wanted)
    prune.l1_unstructured(m, "blob1", 2)
    assert m.blob1.tolist() == [0, 0, 3]
    torch.testing.assert_close(m(x), x * m.blob0 + m.blob1)


@pytest.mark.parametrize("called", [True, False])
def test_blobs_that_are_none(zoo, called):
    for wrong in (None, torch.nn.Parameter(torch.ones(3).to_sparse())):
        m, x = zoo.Affine(zoo_param=FILLER), torch.randn(2, 3)
        m(x), m(x)
        other = m if called else copy.deepcopy(m)
        other.blob0 = wrong
        with raises(CaffeTypeError, "blob0", "None" if wrong is None else "sparse_coo"):
            other(x)
    del m.blob0
    with raises(CaffeTypeError, "blob0", "None"):
        m(x)
    m.register_parameter("blob0", torch.nn.Parameter(torch.ones(3)))
    torch.testing.assert_close(m(x), x + m.blob1)


def test_attributes_of_other_kinds(zoo):
    m, x = zoo.Affine(zoo_param=FILLER), torch.randn(2, 3)
    m(x)
    for wrong in ("a", 1.5, float("nan"), 2**31, 2**70, -1):
        with raises(CaffeTypeError if isinstance(wrong, float | str) else CaffeValueError, "iteration"):
            m.iteration = wrong
    with raises(CaffeValueError, "mode"):
        m.mode = ["cpu"]
    m.training = "yes"
    assert torch.equal(m(x), m(x))


def test_state_dict_of_integers(zoo):
    m = zoo.Affine()
    m.load_state_dict({"blob0": torch.ones(3, dtype=torch.int64), "blob1": torch.ones(3)})
    with raises(CaffeTypeError, "blob0", "int64"):
        m(torch.randn(2, 3))
    with pytest.raises(RuntimeError, match="loading state_dict for Affine"):
        zoo.Affine().load_state_dict({"blob0": 3})


def test_derivatives_that_there_are_not(zoo):
    m, x = zoo.Affine(zoo_param=FILLER), torch.randn(2, 3, requires_grad=True)
    m(x)
    with raises(CaffeTypeError, "gradient", "vmap"):
        torch.autograd.functional.jacobian(m, x, vectorize=True)
    with torch.autograd.forward_ad.dual_level(), raises(CaffeRuntimeError, "forward-mode"):
        m(torch.autograd.forward_ad.make_dual(x, x))


def test_top_shapes(zoo):
    """Reshape alone computes them, for any bottoms that the layer accepts. This also sets up the layer."""
    m = zoo.Affine(zoo_param=FILLER)
    assert m.top_shapes((2, 3)) == [(2, 3)] and m.blob0.shape == (3,)
    assert m.top_shapes((7, 3, 5)) == [(7, 3, 5)]
    assert zoo.Pair().top_shapes((4,), (4,)) == [(4,), (4,)]
    with raises(CaffeRuntimeError, "channels changed"):
        m.top_shapes((2, 5))
    with raises(CaffeTypeError, "setup: bottom 0", "a shape"):
        m.top_shapes(5)
