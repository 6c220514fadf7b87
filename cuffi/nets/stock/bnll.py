import torch
import torch.nn.functional as F

from . import StockLayer


class BNLL(StockLayer):
    """log(1 + exp(x)), for any shape, without overflow. Source: BVLC's bnll_layer.cpp."""

    def forward(self, x):
        return F.relu(x) + torch.log1p(torch.exp(-x.abs()))
