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

    def forward(self, x):
        if self.scale != 1:
            x = x * self.scale
        if self.shift != 0:
            x = x + self.shift
        if self.power == 1:
            return x
        top = x.pow(self.power)
        if self.power == 2 or not (x.requires_grad and torch.is_grad_enabled()):
            return top
        fixed, slope = top.detach(), torch.zeros_like(top)
        if self.power * self.scale:
            slope = self.power * fixed / x.detach()
        return Sloped.apply(x, fixed, slope)
