"""Losses: FocalLoss, a cross entropy that counts hard labels more."""

import torch
import torch.nn.functional as F

from ..stock.softmax_with_loss import VALID, check_labels, normalization, normalizer
from . import KnownLayer


class FocalLoss(KnownLayer):
    """-alpha (1 - p)^gamma log p of the softmax's p of the label; the sum is divided as SoftmaxWithLoss does.

    A second top has the probabilities.
    """

    types = ("FocalLoss",)
    source = "chuanqi305/FocalLoss"
    bottoms = (2, 2)
    tops = (1, 2)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        p, loss = definition.message.focal_loss_param, definition.message.loss_param
        self.alpha, self.gamma, self.dim = p.alpha, p.gamma, p.axis
        self.normalization = normalization(loss, VALID)
        self.ignore_label = loss.ignore_label if loss.HasField("ignore_label") else None

    def agree(self, scores, labels):
        check_labels(self, scores, labels, is_loss=True)

    def forward(self, scores, labels):
        classes = scores.movedim(self.dim, 1)
        labels = labels.reshape(classes.shape[:1] + classes.shape[2:]).long()
        ignored = -100 if self.ignore_label is None else self.ignore_label
        surprise = F.cross_entropy(classes, labels, reduction="none", ignore_index=ignored)
        terms = self.alpha * (-torch.expm1(-surprise)) ** self.gamma * surprise
        valid = labels.numel() if self.ignore_label is None else (labels != ignored).sum()
        loss = terms.sum() / normalizer(self.normalization, scores.shape[0], labels.numel(), valid)
        return loss if self.top_count == 1 else (loss, scores.detach().softmax(self.dim))
