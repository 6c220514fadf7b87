"""Losses: ContrastiveLoss, of pairs that should be near or far."""

import torch

from . import StockLayer, legacy, root


class ContrastiveLoss(StockLayer):
    """1/(2N) sum of y d² + (1 - y) max(margin - d, 0)², where d = |a - b|.

    Bottoms: features a and b [N, C], perhaps with more axes of 1; y [N], whose whole part is 0 for a dissimilar pair,
    else not. Of more labels than N the first are read. a and b have a gradient. With legacy_version the second term
    is max(margin - d², 0).

    Source: BVLC's contrastive_loss_layer.cpp.
    """

    bottoms = (3, 3)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.contrastive_loss_param
        self.margin, self.legacy = p.margin, p.legacy_version

    def agree(self, a, b, similar):
        same = a[:1] == b[:1] and legacy(self, a)[1:] == legacy(self, b)[1:] == (*legacy(self, a)[1:2], 1, 1)
        self.check(same, "features of {} and {}", a, b)
        enough = legacy(self, similar)[1:] == (1, 1, 1) and legacy(self, similar)[0] >= a[0]
        self.check(enough, "{} labels: one a pair", similar)

    def forward(self, a, b, similar):
        pairs = a.shape[0]
        squared = (a - b.reshape(a.shape)).reshape(pairs, -1).square().sum(1)
        if self.legacy:
            apart = torch.relu(self.margin - squared)
        else:
            apart = torch.relu(self.margin - root(squared, 1e-4)).square()
        return torch.where(similar.reshape(-1)[:pairs].trunc() != 0, squared, apart).sum() / pairs / 2
