"""Losses: EuclideanLoss, half of the mean squared distance."""

import math

from . import StockLayer


class EuclideanLoss(StockLayer):
    """1/(2N) sum of (a - b)², for two bottoms [N, ...] of one count. Both have a gradient.

    Source: BVLC's euclidean_loss_layer.cpp.
    """

    bottoms = (2, 2)
    is_loss = True

    def agree(self, a, b):
        same = a[:1] == b[:1] and math.prod(a[1:]) == math.prod(b[1:])
        self.check(same and 0 not in a[1:], "inputs of {} and {}", a, b)

    def forward(self, a, b):
        difference = a - b.reshape(a.shape)
        return difference.square().sum() / a.shape[0] / 2
