"""Activations: AbsVal, the absolute value."""

from . import StockLayer


class AbsVal(StockLayer):
    """|x|, for any shape. The gradient at 0 is 0. Source: BVLC's absval_layer.cpp."""

    def forward(self, x):
        return x.abs()
