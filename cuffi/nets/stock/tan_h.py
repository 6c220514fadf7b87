"""Activations: TanH."""

from . import StockLayer


class TanH(StockLayer):
    """tanh(x), for any shape. Source: BVLC's tanh_layer.cpp."""

    def forward(self, x):
        return x.tanh()
