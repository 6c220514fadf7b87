"""Activations: Swish, x times its sigmoid."""

from . import StockLayer


class Swish(StockLayer):
    """x * sigmoid(beta * x), for any shape. Source: BVLC's swish_layer.cpp."""

    def __init__(self, definition):
        super().__init__(definition)
        self.beta = definition.message.swish_param.beta

    def forward(self, x):
        return x * (x * self.beta).sigmoid()
