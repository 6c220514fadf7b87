"""Gradients at the points where a root, a logarithm, a division or a corner has none, as Caffe's code gives them.

Each row has the layer, its bottoms, and the gradient of the first by Caffe's own formula, for a top diff of g.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from support.fork_cases import CASES
from support.nets import draw, one_layer, randomised, same
from support.pairs import SINGLE_CASES, STOCK_CASES
from support.typed import not_none

from cuffi.base import CaffeError
from cuffi.nets.forks import fork_classes, fork_types
from cuffi.nets.stock import stock_types

# Each type; a fork's class of a stock type's name keeps its own row.
EACH = {**STOCK_CASES, **SINGLE_CASES, **{f"fork's {name}": case for name, case in CASES.items()}}
# Where Caffe's own formula divides by 0, or takes its root or logarithm.
NO_NUMBER = {("Log", 0.0): "1 / 0", ("fork's MarginInnerProduct", 0.0): "w x / |x|"}
FLAT = [0.0, 1.0, -1.0, 2.0, 60.0, -60.0]


def gradient(text, bottoms, diff=None, train=True, **options):
    """(the top diff, the gradients of all bottoms)."""
    bottoms = [torch.as_tensor(np.array(x, float)).requires_grad_() for x in bottoms]
    net = one_layer(text, *(x.shape for x in bottoms), **options).train(train)
    top = net(*bottoms)
    g = draw(*top.shape, seed=5) if diff is None else diff
    top.backward(g)
    return g.numpy(), [not_none(x.grad).numpy() for x in bottoms]


def sign(x):
    return (x > 0) * 1.0 - (x < 0)


def power(x, p, scale, shift):
    """Caffe: 2 scale (shift + scale x) for 2, else power * scale * y / (shift + scale x)."""
    if scale * p == 0 or p == 1:
        return np.full_like(x, scale * p)
    inner = shift + scale * x
    return 2 * scale * inner if p == 2 else p * scale * inner**p / inner


POINTWISE = {
    "AbsVal": sign,
    "BNLL": lambda x: 1 / (1 + np.exp(-x)),
    "ReLU": lambda x: (x > 0) * 1.0,
    "ReLU relu_param { negative_slope: 0.25 }": lambda x: np.where(x > 0, 1, 0.25),
    "ELU elu_param { alpha: 0.5 }": lambda x: np.where(x > 0, 1, 0.5 * np.exp(np.minimum(x, 0))),
    "PReLU": lambda x: np.where(x > 0, 1, 0.25),
    "Clip clip_param { min: -1 max: 2 }": lambda x: ((x >= -1) & (x <= 2)) * 1.0,
    "Log": lambda x: 1 / x,
    "Log log_param { scale: 2 shift: 2 }": lambda x: 2 / (2 + 2 * x),
    "Exp": np.exp,
    "SafeInv": lambda x: np.where(x == 0, 0, -1 / np.where(x == 0, 1, x) ** 2),
    "Reduction reduction_param { operation: ASUM axis: 1 }": sign,
    "Reduction reduction_param { operation: SUMSQ axis: 1 }": lambda x: 2 * x,
} | {
    f"Power power_param {{ power: {p} scale: {scale} shift: {shift} }}": (
        lambda x, p=p, scale=scale, shift=shift: power(x, p, scale, shift)
    )
    for p, scale, shift in itertools.product((0, 0.5, 1, 2, 3, -1), (0, 1, 2), (0, 2))
    if (p, scale) != (0, 0)
}


@pytest.mark.parametrize("text", POINTWISE)
@np.errstate(all="ignore")
def test_pointwise(text):
    x = np.array([FLAT])
    kind, _, fields = text.partition(" ")
    g, (found,) = gradient(f'type: "{kind}" {fields}', [x])
    wanted = POINTWISE[text](x) * (g[..., None] if g.ndim < 2 else g)
    np.testing.assert_allclose(found, np.broadcast_to(wanted, x.shape), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "power, scale, shift", [(-1, 0, 0), (0.5, 0, 2), (1, 0, 3), (0, 2, 1), (2, 0, -3), (3, 0, -2)]
)
def test_a_power_that_does_not_depend_on_x_is_constant(power, scale, shift):
    """Caffe: shift^power, or 1 for power 0, whatever x is; its gradient is 0."""
    said = f"power: {power} scale: {scale} shift: {shift}"
    x = torch.tensor([[0.0, -0.0, -2.0, 3.0, math.inf, math.nan]]).double().requires_grad_()
    top = one_layer(f'type: "Power" power_param {{ {said} }}', (1, 6))(x)
    wanted = 1.0 if power == 0 else math.inf if (power, shift) == (-1, 0) else float(shift) ** power
    assert top[0].tolist() == pytest.approx([wanted] * 6, rel=1e-15)
    top.sum().backward()
    assert not not_none(x.grad).any()


@pytest.mark.parametrize("index", [-0.4, -1.0, 4.0])
def test_items_by_indices_outside_of_the_batch_are_refused(index):
    """Caffe compares the number with 0 before its cast to int."""
    net = one_layer('type: "BatchReindex"', (4, 2), (3,))
    with pytest.raises(CaffeError, match="BatchReindex"):
        net(draw(4, 2), torch.tensor([1.9, 0.0, index]).double())


def test_the_least_probability_is_a_float_s():
    least = float(np.float32(1e-20))
    zeros = torch.zeros(1, 2).double().requires_grad_()
    loss = one_layer('type: "MultinomialLogisticLoss"', (1, 2), (1,))(zeros, torch.zeros(1).double())
    loss.backward()
    same(loss, -math.log(least), 1e-15)
    np.testing.assert_allclose(not_none(zeros.grad).numpy(), [[-1 / least, 0]], rtol=1e-15)


def test_clip_where_clamp_has_no_gradient_at_its_limits(monkeypatch):
    """As in torch 2.15."""

    def clamp(x, least=None, most=None, **named):
        least, most = named.get("min", least), named.get("max", most)
        inside = torch.ones_like(x, dtype=torch.bool)
        inside = inside if least is None else inside & (x > least)
        inside = inside if most is None else inside & (x < most)
        return torch.where(inside, x, theirs(x.detach(), least, most))

    theirs = torch.Tensor.clamp
    monkeypatch.setattr(torch.Tensor, "clamp", clamp)
    g, (found,) = gradient('type: "Clip" clip_param { min: -1 max: 2 }', [np.array([[-3.0, -1, 0, 2, 4]])])
    assert (found == g * [[0, 1, 1, 1, 0]]).all()


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("eps", [1e-9, 1e-3, 0.5])
def test_mvn_of_a_constant_channel(eps, across):
    """Caffe: (g - mean(g) - y mean(y g)) / (sqrt(variance) + eps), with y the top."""
    x = draw(3, 2, 3, 3).numpy()
    x[1, 0] = 0.5
    x[2] = 0.25
    said = f"eps: {eps} across_channels: {str(across).lower()}"
    g, (found,) = gradient(f'type: "MVN" mvn_param {{ {said} }}', [x])
    rows = x.reshape(3, -1) if across else x.reshape(6, -1)
    diffs = g.reshape(rows.shape)
    eps = float(np.float32(eps))
    for row, diff, got in zip(rows, diffs, found.reshape(rows.shape), strict=True):
        spread = math.sqrt(((row - row.mean()) ** 2).mean()) + eps
        top = (row - row.mean()) / spread
        np.testing.assert_allclose(got, (diff - diff.mean() - top * (top * diff).mean()) / spread, rtol=1e-7)


def test_weights_in_front_of_mvn_learn_from_a_blank_picture():
    net = one_layer('type: "MVN" mvn_param { eps: 1e-3 }', (2, 2, 3, 3)).train()
    x = draw(2, 2, 3, 3)
    x[1] = 0.5
    weight = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (net(x * weight[:, None, None]) * draw(2, 2, 3, 3, seed=1)).sum().backward()
    assert not_none(weight.grad).isfinite().all()


@pytest.mark.parametrize("stable", [True, False])
@np.errstate(all="ignore")
def test_a_product_with_zeros(stable):
    """stable_prod_grad: the product of the others; else top / bottom, which is no number at 0."""
    a, b, c = np.array(list(itertools.product((0.0, 2.0, -1.0), repeat=3))).T[:, None]
    said = f"operation: PROD stable_prod_grad: {str(stable).lower()}"
    g, found = gradient(f'type: "Eltwise" eltwise_param {{ {said} }}', [a, b, c])
    for x, others, got in zip((a, b, c), (b * c, a * c, a * b), found, strict=True):
        np.testing.assert_allclose(got, g * (others if stable else a * b * c / x), rtol=1e-12)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_pair_at_the_margin_learns_nothing(legacy):
    a, b = [[3.0, 4.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]
    said = f"margin: {25 if legacy else 5} legacy_version: {str(legacy).lower()}"
    bottoms = [torch.tensor(x).double().requires_grad_() for x in (a, b)]
    net = one_layer(f'type: "ContrastiveLoss" contrastive_loss_param {{ {said} }}', (2, 2), (2, 2), (2,))
    net(*bottoms, torch.zeros(2)).backward()
    assert not any(not_none(bottom.grad).any() for bottom in bottoms)


def test_a_score_at_the_margin_learns_nothing():
    """Caffe takes the sign of max(0, 1 - s x)."""
    scores = torch.tensor([[1.0, -1.0, 0.5]]).double().requires_grad_()
    one_layer('type: "HingeLoss"', (1, 3), (1,))(scores, torch.zeros(1)).backward()
    same(scores.grad, [[0.0, 0.0, 1.0]])


@pytest.mark.parametrize("kind", ["Normalize norm_param { across_spatial: false }", "BatchNorm", "LRN"])
def test_norms_of_zeros_have_finite_gradients(kind):
    name, _, fields = kind.partition(" ")
    _, (found,) = gradient(f'type: "{name}" {fields}', [np.zeros((2, 3, 2, 2))])
    assert np.isfinite(found).all()


def test_the_ratio_of_dropout_is_asked_only_in_training():
    """Caffe's release build computes 1 / (1 - 1) there: every value would be no number."""
    net = one_layer('type: "Dropout" dropout_param { dropout_ratio: 1 }', (2, 3))
    x = draw(2, 3)
    same(net.eval()(x), x)
    with pytest.raises(CaffeError, match=r"dropout_ratio.*got 1"):
        net.train()(x)


@pytest.mark.parametrize("text", [t for t in POINTWISE if t.split()[0] in ("ReLU", "Reduction")])
def test_the_compiled_types_have_the_same_gradients(stock, text):
    kind, _, fields = text.partition(" ")
    x = torch.tensor([FLAT], dtype=torch.float64, requires_grad=True)
    module = getattr(stock, kind)(fields)
    top = module(x)
    g = draw(*top.shape, seed=5)
    top.backward(g)
    _, (found,) = gradient(f'type: "{kind}" {fields}', [[FLAT]], g)
    np.testing.assert_allclose(found, not_none(x.grad).numpy(), rtol=1e-9, atol=1e-12)


def test_each_type_has_a_row():
    known = {f"fork's {kind.__name__}" for name in fork_types() for kind in fork_classes(name)}
    assert set(EACH) == set(stock_types()) | known


@pytest.mark.parametrize("value", [0.0, 0.5])
@pytest.mark.parametrize("name", [name for name in EACH if EACH[name].learn])
def test_gradients_where_all_values_are_equal(name, value):
    """No gradient of a bottom or a blob is lost to 0 / 0 or to a root's slope at 0, unless Caffe's formula says so."""
    case = EACH[name]
    torch.manual_seed(1)
    kind = case.layer.partition(" ")[0]
    net = one_layer(case.text, *(x.shape for x in case.bottoms), tops=case.tops, native={kind: True})
    randomised(net).train(case.train)
    bottoms = [
        torch.full_like(x, value).requires_grad_() if i in case.learn else x
        for i, x in enumerate(case.bottoms)
    ]
    tops = net(*bottoms)
    tops = [tops] if isinstance(tops, torch.Tensor) else list(tops.values())
    sum((top.double() * draw(*top.shape)).sum() for top in tops if top.requires_grad).backward()
    gradients = [x.grad for x in (*bottoms, *net.parameters()) if x.grad is not None]
    assert gradients
    assert all(g.isfinite().all() for g in gradients) == ((name, value) not in NO_NUMBER)
