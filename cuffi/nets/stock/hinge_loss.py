"""Losses: HingeLoss, a margin of one class against all."""

import torch

from . import StockLayer, legacy


class HingeLoss(StockLayer):
    """One against all: 1/N sum over n, k of max(0, 1 - s x[n, k]), squared for norm L2; s is 1 for the label, else -1.

    Bottoms: scores [N, K], labels [N]; of more labels the first N are read. The scores have a gradient.

    Source: BVLC's hinge_loss_layer.cpp.
    """

    bottoms = (2, 2)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        self.norm = definition.message.hinge_loss_param.norm

    def agree(self, scores, labels):
        legacy(self, scores)
        fits = scores[:1] == labels[:1] and torch.Size(labels).numel() >= scores[0]
        self.check(fits, "labels of {} for scores of {}", labels, scores)

    def forward(self, scores, labels):
        items = scores.shape[0]
        flat = scores.reshape(items, -1)
        own = torch.zeros_like(flat).scatter(1, labels.reshape(-1)[:items, None].long(), 1.0)
        margins = torch.relu(1 + flat * (1 - 2 * own))
        return (margins.square() if self.norm == 2 else margins).sum() / items
