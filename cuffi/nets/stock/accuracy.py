"""Scores: Accuracy, the fraction of labels that are found."""

import torch

from . import StockLayer
from .softmax_with_loss import check_labels


class Accuracy(StockLayer):
    """The fraction of labels that are among the top_k largest scores.

    Bottoms: scores [N, C, ...] with the classes on `axis`, labels [N, ...]. Tops: a number; then the fraction for each
    class, [C]. Labels equal to ignore_label do not count. No gradient.

    Source: BVLC's accuracy_layer.cpp.
    """

    bottoms = (2, 2)
    tops = (1, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.accuracy_param
        self.top_k, self.dim = p.top_k, p.axis
        self.ignore_label = p.ignore_label if p.HasField("ignore_label") else None

    def agree(self, scores, labels):
        classes = check_labels(self, scores, labels, is_loss=False)
        self.check(self.top_k <= classes, "top_k {} of {} classes", self.top_k, classes)

    @torch.no_grad()
    def forward(self, scores, labels):
        classes = scores.movedim(self.dim, -1).reshape(-1, scores.shape[self.dim])
        labels = labels.reshape(-1).long()
        valid = torch.ones_like(labels, dtype=torch.bool)
        if self.ignore_label is not None:
            valid = labels != self.ignore_label
        own = classes.gather(1, torch.where(valid, labels, 0)[:, None])
        # Caffe counts those that are not less than the label's own score, itself among them.
        right = ((classes >= own).sum(1) <= self.top_k) & valid
        total = right.sum().to(scores.dtype) / valid.sum().to(scores.dtype)
        total = torch.where(valid.any(), total, torch.zeros_like(total))
        if self.top_count == 1:
            return total
        where = torch.where(valid, labels, 0)
        zeros = torch.zeros(classes.shape[1], dtype=scores.dtype, device=scores.device)
        hits = zeros.index_add(0, where, right.to(scores.dtype))
        counts = zeros.index_add(0, where, valid.to(scores.dtype))
        return total, torch.where(counts > 0, hits / counts.clamp(min=1), zeros)
