"""The updates and rates, compared with the formulas for one number at a time, in double."""

import math

import pytest
import torch

from cuffi.nets.solver import caffe_solver, read_settings

MULTIPLIERS = [(1, 1), (2, 0), (0.5, 3)]  # of a's weight and bias, and b's weight; b's bias is not trained


def plain(kind, s, w, gradients, i, memory, multipliers):
    """One update of one number, by the formulas of Caffe's solvers."""
    lr_mult, decay_mult = multipliers
    toward = math.copysign(1, w) if s.regularization_type == "L1" else w
    g = gradients + s.weight_decay * decay_mult * toward
    r = s.base_lr * s.gamma ** (i // s.stepsize) * lr_mult
    h, h2 = memory
    if kind in ("SGD", "Nesterov"):
        new = s.momentum * h + r * g
        return w - (new if kind == "SGD" else (1 + s.momentum) * new - s.momentum * h), (new, h2)
    if kind == "AdaGrad":
        return w - r * g / (math.sqrt(h + g * g) + s.delta), (h + g * g, h2)
    if kind == "RMSProp":
        h = s.rms_decay * h + (1 - s.rms_decay) * g * g
        return w - r * g / (math.sqrt(h) + s.delta), (h, h2)
    if kind == "AdaDelta":
        h = s.momentum * h + (1 - s.momentum) * g * g
        u = g * math.sqrt((h2 + s.delta) / (h + s.delta))
        return w - r * u, (h, s.momentum * h2 + (1 - s.momentum) * u * u)
    h = s.momentum * h + (1 - s.momentum) * g
    h2 = s.momentum2 * h2 + (1 - s.momentum2) * g * g
    correction = math.sqrt(1 - s.momentum2 ** (i + 1)) / (1 - s.momentum ** (i + 1))
    return w - r * correction * h / (math.sqrt(h2) + s.delta), (h, h2)


@pytest.mark.parametrize("regularization", ["L1", "L2"])
@pytest.mark.parametrize("kind", ["SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam"])
def test_a_rule_is_its_formula(kind, regularization, net, tmp_path):
    """40 updates with a drop of the rate, iter_size 2, clipping and multipliers."""
    momentum = "" if kind in ("AdaGrad", "RMSProp") else "momentum: 0.9"
    (tmp_path / "solver.prototxt").write_text(
        f'type: "{kind}" base_lr: 0.05 {momentum} weight_decay: 0.02 lr_policy: "step" gamma: 0.1 stepsize: 20 '
        f'iter_size: 2 clip_gradients: 1.5 delta: 1e-4 regularization_type: "{regularization}"'
    )
    optimizer, schedule = caffe_solver(tmp_path / "solver.prototxt", net)
    s = optimizer.settings.s
    params = [net.a.weight, net.a.bias, net.b.weight]
    assert not net.b.bias.requires_grad
    expected = [[(v, (0.0, 0.0)) for v in p.detach().reshape(-1).tolist()] for p in params]
    clipped = 0
    for i in range(40):
        optimizer.zero_grad()
        for _ in range(2):
            size = 1 if i % 2 else 1e-3  # the gradients of every other update are small: not clipped
            data, label = torch.randn(2, 4, 3, dtype=torch.double).mul(size).unbind()
            net.loss(net(data=data, label=label[:, :2] + net.b.bias.detach())).backward()
        gradients = [p.grad.reshape(-1).tolist() for p in params]
        norm = math.sqrt(sum(g * g for one in gradients for g in one))
        factor = min(1.0, s.clip_gradients / norm) / 2
        clipped += factor < 0.5
        for row, found, multipliers in zip(expected, gradients, MULTIPLIERS, strict=True):
            row[:] = [
                plain(kind, s, w, g * factor, i, memory, multipliers)
                for (w, memory), g in zip(row, found, strict=True)
            ]
        optimizer.step()
        schedule.step()
    assert 0 < clipped < 40
    for p, row in zip(params, expected, strict=True):
        wanted = torch.tensor([w for w, _ in row], dtype=torch.double).view(p.shape)
        torch.testing.assert_close(p.detach(), wanted, rtol=1e-10, atol=1e-12)


def test_the_rate_is_inside_of_the_momentum(tmp_path):
    """On w^2 / 2, with a drop from 0.1 to 0.01: Caffe's figures, which torch.optim.SGD does not give."""
    (tmp_path / "s.prototxt").write_text(
        'base_lr: 0.1 momentum: 0.9 lr_policy: "multistep" gamma: 0.1 stepvalue: 3'
    )
    module = torch.nn.Linear(1, 1, bias=False).double()
    torch.nn.init.ones_(module.weight)
    optimizer, schedule = caffe_solver(tmp_path / "s.prototxt", module)
    seen = []
    for _ in range(5):
        optimizer.zero_grad()
        (module.weight**2 / 2).sum().backward()
        optimizer.step()
        schedule.step()
        seen.append(module.weight.item())
    w, h = 1.0, 0.0
    for i, value in enumerate(seen):
        h = 0.9 * h + (0.1 if i < 3 else 0.01) * w
        w -= h
        assert value == pytest.approx(w, rel=1e-6)
    assert seen[2] == pytest.approx(0.486, rel=1e-3) and seen[3] == pytest.approx(0.2705, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ('lr_policy: "fixed"', {0: 0.5, 99: 0.5}),
        ('lr_policy: "step" gamma: 0.5 stepsize: 10', {9: 0.5, 10: 0.25, 25: 0.125}),
        ('lr_policy: "exp" gamma: 0.5', {0: 0.5, 3: 0.0625}),
        ('lr_policy: "inv" gamma: 1 power: 2', {0: 0.5, 1: 0.125, 3: 0.5 / 16}),
        ('lr_policy: "multistep" gamma: 0.5 stepvalue: 2 stepvalue: 5', {1: 0.5, 2: 0.25, 4: 0.25, 5: 0.125}),
        ('lr_policy: "poly" power: 2 max_iter: 10', {0: 0.5, 5: 0.125, 10: 0.0}),
        ('lr_policy: "sigmoid" gamma: 1 stepsize: 10', {10: 0.25, 0: 0.5 / (1 + math.exp(10))}),
    ],
)
def test_policies(text, rates, tmp_path):
    path = tmp_path / "s.prototxt"
    path.write_text("base_lr: 0.5 " + text)
    settings = read_settings(path)
    for iteration, rate in rates.items():
        assert settings.rate(iteration) == pytest.approx(rate, rel=1e-12)
