"""Activations: ReLU, with a fixed slope below 0."""

import torch
import torch.nn.functional as F

from . import StockLayer


class ReLU(StockLayer):
    """max(x, 0) + negative_slope * min(x, 0), for any shape. The gradient at 0 is negative_slope.

    Source: BVLC's relu_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        self.negative_slope = definition.message.relu_param.negative_slope

    def top_shapes(self, x):
        return [x]

    def forward(self, x, in_place=False):
        """in_place: may the top overwrite the bottom?"""
        if self.negative_slope:
            return F.leaky_relu(x, self.negative_slope)
        return torch.relu_(x) if in_place else torch.relu(x)
