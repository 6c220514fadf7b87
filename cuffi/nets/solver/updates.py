"""Caffe's learning rates and updates, by formula: `src/caffe/solvers/*.cpp` of BVLC/caffe.

i is the iteration, g the gradient after clipping, division by iter_size and regularisation, w the parameter, h and h2
its history, mu the momentum, and r the rate: lr_policy's times the parameter's lr_mult.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable

import torch
from torch import Tensor

# For each lr_policy: its rate at iteration i of the SolverParameter s, and its required fields.
POLICIES: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "fixed": (lambda s, i: s.base_lr, ()),
    "step": (lambda s, i: s.base_lr * s.gamma ** (i // s.stepsize), ("gamma", "stepsize")),
    "exp": (lambda s, i: s.base_lr * s.gamma**i, ("gamma",)),
    "inv": (lambda s, i: s.base_lr * (1 + _single(s.gamma * i)) ** -s.power, ("gamma", "power")),
    "multistep": (lambda s, i: s.base_lr * s.gamma ** sum(i >= v for v in s.stepvalue), ("gamma",)),
    "poly": (lambda s, i: s.base_lr * max(0.0, 1 - i / s.max_iter) ** s.power, ("power", "max_iter")),
    "sigmoid": (
        lambda s, i: s.base_lr * _logistic(s.gamma * (i - s.stepsize)),
        ("gamma", "stepsize"),
    ),
}


def _single(x: float) -> float:
    """Rounded to single precision, in which Caffe computes gamma * i."""
    return ctypes.c_float(x).value


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


Arrays = list[Tensor]


# Each updates w, h and h2 in place: lists of tensors of one group of parameters.


def sgd(group: dict, w: Arrays, g: Arrays, h: Arrays, h2: Arrays, step: int) -> None:
    """h = mu h + r g; w -= h. torch.optim.SGD differs: it multiplies by the rate after the momentum."""
    torch._foreach_mul_(h, group["momentum"])
    torch._foreach_add_(h, g, alpha=group["lr"])
    torch._foreach_sub_(w, h)


def nesterov(group: dict, w: Arrays, g: Arrays, h: Arrays, h2: Arrays, step: int) -> None:
    """h' = mu h + r g; w -= (1 + mu) h' - mu h."""
    mu = group["momentum"]
    torch._foreach_add_(w, h, alpha=mu)
    torch._foreach_mul_(h, mu)
    torch._foreach_add_(h, g, alpha=group["lr"])
    torch._foreach_sub_(w, h, alpha=1 + mu)


def adagrad(group: dict, w: Arrays, g: Arrays, h: Arrays, h2: Arrays, step: int) -> None:
    """h += g^2; w -= r g / (sqrt(h) + delta)."""
    torch._foreach_addcmul_(h, g, g)
    _subtract_scaled(group, w, g, h)


def rmsprop(group: dict, w: Arrays, g: Arrays, h: Arrays, h2: Arrays, step: int) -> None:
    """h = rms_decay h + (1 - rms_decay) g^2; w -= r g / (sqrt(h) + delta)."""
    torch._foreach_mul_(h, group["rms_decay"])
    torch._foreach_addcmul_(h, g, g, 1 - group["rms_decay"])
    _subtract_scaled(group, w, g, h)


def adadelta(group: dict, w: Arrays, g: Arrays, h: Arrays, h2: Arrays, step: int) -> None:
    """h = mu h + (1 - mu) g^2; u = g sqrt((h2 + delta) / (h + delta)); h2 = mu h2 + (1 - mu) u^2; w -= r u."""
    mu, delta = group["momentum"], group["delta"]
    torch._foreach_mul_(h, mu)
    torch._foreach_addcmul_(h, g, g, 1 - mu)
    update = torch._foreach_add(h2, delta)
    torch._foreach_div_(update, torch._foreach_add(h, delta))
    torch._foreach_sqrt_(update)
    torch._foreach_mul_(update, g)
    torch._foreach_mul_(h2, mu)
    torch._foreach_addcmul_(h2, update, update, 1 - mu)
    torch._foreach_sub_(w, update, alpha=group["lr"])


def adam(group: dict, w: Arrays, g: Arrays, h: Arrays, h2: Arrays, step: int) -> None:
    """h = mu h + (1 - mu) g; h2 = mu2 h2 + (1 - mu2) g^2; w -= r c h / (sqrt(h2) + delta), with t = i + 1 and
    c = sqrt(1 - mu2^t) / (1 - mu^t). torch's Adam adds its epsilon after the bias correction."""
    mu, mu2 = group["momentum"], group["momentum2"]
    torch._foreach_lerp_(h, g, 1 - mu)
    torch._foreach_mul_(h2, mu2)
    torch._foreach_addcmul_(h2, g, g, 1 - mu2)
    _subtract_scaled(group, w, h, h2, math.sqrt(1 - mu2 ** (step + 1)) / (1 - mu ** (step + 1)))


def _subtract_scaled(group: dict, w: Arrays, g: Arrays, h: Arrays, factor: float = 1.0) -> None:
    """w -= r factor g / (sqrt(h) + delta)."""
    below = torch._foreach_sqrt(h)
    torch._foreach_add_(below, group["delta"])
    torch._foreach_addcdiv_(w, g, below, -group["lr"] * factor)


# For each solver type: its update, and the number of history blobs of each parameter.
RULES: dict[str, tuple[Callable, int]] = {
    "SGD": (sgd, 1),
    "Nesterov": (nesterov, 1),
    "AdaGrad": (adagrad, 1),
    "RMSProp": (rmsprop, 1),
    "AdaDelta": (adadelta, 2),
    "Adam": (adam, 2),
}
