"""Activations: ELU, exponential below 0."""

import torch.nn.functional as F

from . import StockLayer


class ELU(StockLayer):
    """x where x > 0, else alpha (exp(x) - 1), for any shape. Source: BVLC's elu_layer.cpp."""

    def __init__(self, definition):
        super().__init__(definition)
        self.alpha = definition.message.elu_param.alpha

    def forward(self, x):
        return F.elu(x, self.alpha)
