"""Activations: Exp, a power of a base."""

import math

from . import StockLayer


class Exp(StockLayer):
    """base ^ (shift + scale * x), for any shape; base -1 means e. Source: BVLC's exp_layer.cpp."""

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.exp_param
        self.check(p.base == -1 or p.base > 0, "base must be strictly positive")
        log_base = 1.0 if p.base == -1 else math.log(p.base)
        self.inner = log_base * p.scale
        self.outer = (math.e if p.base == -1 else p.base) ** p.shift if p.shift else 1.0

    def forward(self, x):
        top = (x * self.inner).exp()
        return top if self.outer == 1 else top * self.outer
