"""Activations: Softmax, over one axis."""

from . import StockLayer


class Softmax(StockLayer):
    """exp(x) / sum of exp(x) over `axis`, 1 by default; the bottom's shape.

    Source: BVLC's softmax_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        self.dim = definition.message.softmax_param.axis

    def setup(self, x):
        self.axis(self.dim, len(x))

    def forward(self, x):
        return x.softmax(self.dim)
