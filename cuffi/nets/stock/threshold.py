"""Activations: Threshold, 1 above a limit."""

import torch

from . import StockLayer


class Threshold(StockLayer):
    """1 where the bottom is greater than the threshold, else 0, for any shape. No gradient.

    Source: BVLC's threshold_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        self.threshold = definition.message.threshold_param.threshold

    @torch.no_grad()
    def forward(self, x):
        return (x > self.threshold).to(x.dtype)
