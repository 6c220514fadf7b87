"""Normalisation: LRN, by neighbouring channels or positions."""

import torch.nn.functional as F

from . import StockLayer


class LRN(StockLayer):
    """x / (k + alpha / n sum of x²)^beta: local response normalisation.

    ACROSS_CHANNELS: the sum is over local_size channels around the value's channel, and n is local_size.
    WITHIN_CHANNEL: it is over a square of local_size x local_size, n is its area, and k is 1. Bottom and top: [N,
    C, H, W].

    Source: BVLC's lrn_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.lrn_param
        self.size, self.alpha, self.beta, self.k = p.local_size, p.alpha, p.beta, p.k
        self.within_channel = p.norm_region == 1
        self.check(self.size % 2 == 1, f"local_size: expected an odd number, got {self.size}")

    def setup(self, x):
        self.check(len(x) == 4, f"input must have 4 axes, not {list(x)}")

    def forward(self, x):
        if not self.within_channel:
            return F.local_response_norm(x, self.size, self.alpha, self.beta, self.k)
        squares = F.avg_pool2d(x.square(), self.size, 1, (self.size - 1) // 2)
        return x * (1 + self.alpha * squares).pow(-self.beta)
