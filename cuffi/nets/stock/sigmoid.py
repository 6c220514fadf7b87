"""Activations: Sigmoid."""

from . import StockLayer


class Sigmoid(StockLayer):
    """1 / (1 + exp(-x)), for any shape. Source: BVLC's sigmoid_layer.cpp."""

    def forward(self, x):
        return x.sigmoid()
