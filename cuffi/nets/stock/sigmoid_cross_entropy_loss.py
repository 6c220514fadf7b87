"""Losses: SigmoidCrossEntropyLoss, of independent probabilities."""

import math

import torch.nn.functional as F

from . import StockLayer
from .softmax_with_loss import BATCH_SIZE, normalization, normalizer


class SigmoidCrossEntropyLoss(StockLayer):
    """-1/normalizer sum of t log(p) + (1 - t) log(1 - p), with p = sigmoid(x).

    Bottoms: x and targets t, of one count. Tops: a number; then the term of each position. The normalizer is
    the number of items unless loss_param says otherwise; positions with the target ignore_label do not count. x has a
    gradient.

    Source: BVLC's sigmoid_cross_entropy_loss_layer.cpp.
    """

    bottoms = (2, 2)
    tops = (1, 2)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.loss_param
        self.normalization = normalization(p, BATCH_SIZE)
        self.ignore_label = p.ignore_label if p.HasField("ignore_label") else None

    def agree(self, x, target):
        same = x[:1] == target[:1] and math.prod(x) == math.prod(target)
        self.check(same, "inputs must have the same number of items and the same count: {} and {}", x, target)

    def forward(self, x, target):
        target = target.reshape(x.shape)
        # Caffe truncates targets to integers before it compares them with the label.
        valid = None if self.ignore_label is None else (target.trunc() != self.ignore_label)
        terms = F.binary_cross_entropy_with_logits(x, target.to(x.dtype), reduction="none")
        if valid is not None:
            terms = terms * valid
        count = x.numel() if valid is None else valid.sum()
        loss = terms.sum() / normalizer(self.normalization, x.shape[0], x.numel(), count)
        return loss if self.top_count == 1 else (loss, terms.detach())
