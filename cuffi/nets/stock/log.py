"""Activations: Log, the logarithm to a base."""

import math

from . import StockLayer


class Log(StockLayer):
    """log of (shift + scale * x) to `base`, for any shape; base -1 means e.

    Source: BVLC's log_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.log_param
        self.check(p.base == -1 or (p.base > 0 and p.base != 1), "base must be strictly positive, and not 1")
        self.factor = 1.0 if p.base == -1 else 1 / math.log(p.base)
        self.scale, self.shift = p.scale, p.shift

    def forward(self, x):
        x = x if self.scale == 1 and self.shift == 0 else self.shift + self.scale * x
        return x.log() * self.factor
