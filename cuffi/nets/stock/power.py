"""Activations: Power, a power of a linear function."""

import torch

from . import Sloped, StockLayer


class Power(StockLayer):
    """(shift + scale * x) ^ power, for any shape.

    The gradient is the source's power * scale * top / (shift + scale * x): no number where that is 0 / 0. For power 0,
    1 and 2 it has other formulas.

    Source: BVLC's power_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.power_param
        self.power, self.scale, self.shift = p.power, p.scale, p.shift
        self.constant = None  # of every x, as in the source
        if self.power * self.scale == 0:
            self.constant = torch.tensor(p.shift, dtype=torch.float64).pow(p.power).item()

    def forward(self, x):
        if self.constant is not None:
            top = torch.full_like(x, self.constant)
            return (
                Sloped.apply(x, top, torch.zeros_like(x))
                if x.requires_grad and torch.is_grad_enabled()
                else top
            )
        if self.scale != 1:
            x = x * self.scale
        if self.shift != 0:
            x = x + self.shift
        if self.power == 1:
            return x
        top = x.pow(self.power)
        if self.power == 2 or not (x.requires_grad and torch.is_grad_enabled()):
            return top
        fixed = top.detach()
        return Sloped.apply(x, fixed, self.power * fixed / x.detach())
