"""Activations: BNLL, the softplus."""

import torch.nn.functional as F

from . import StockLayer


class BNLL(StockLayer):
    """log(1 + exp(x)), for any shape, without overflow. Source: BVLC's bnll_layer.cpp."""

    def forward(self, x):
        return F.softplus(x, threshold=50)
