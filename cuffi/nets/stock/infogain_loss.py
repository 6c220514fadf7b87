"""Losses: InfogainLoss, a cross entropy weighted by a matrix."""

import math

import torch

from ...caffe_files.caffemodel import stored_blob
from . import StockLayer
from .multinomial_logistic_loss import LEAST
from .softmax_with_loss import check_labels, normalizer

_MOST = -math.log(LEAST)


class InfogainLoss(StockLayer):
    """-1/normalizer sum over n of H[label_n, :] · log(softmax(x_n)).

    Bottoms: scores with the classes on `axis`, labels, and H [K, K] as a third bottom or a file. Tops: a number;
    then the probabilities. The normalizer is SoftmaxWithLoss's. The scores have a gradient.

    Source: BVLC's infogain_loss_layer.cpp.
    """

    bottoms = (2, 3)
    tops = (1, 2)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.loss_param
        self.dim, self.normalization = definition.message.infogain_loss_param.axis, p.normalization
        self.ignore_label = p.ignore_label if p.HasField("ignore_label") else None
        self.check(not p.HasField("normalize"), "normalize is deprecated: use normalization")
        if definition.bottoms < 3:
            source = definition.message.infogain_loss_param.source
            self.check(bool(source), "a third bottom or infogain_loss_param.source, the matrix, is needed")
            with open(source, "rb") as file:
                self.register_buffer("matrix", stored_blob(source).read(file), persistent=False)

    def agree(self, scores, labels, matrix=None):
        classes = check_labels(self, scores, labels, is_loss=True)
        size = torch.Size(matrix).numel() if matrix is not None else self.matrix.numel()
        self.check(size == classes**2, "the matrix has {} values, {} x {} are needed", size, classes, classes)

    def forward(self, scores, labels, matrix=None):
        terms = -scores.movedim(self.dim, -1).log_softmax(-1)
        terms = terms + (terms.clamp(max=_MOST) - terms).detach()
        labels = labels.reshape(terms.shape[:-1]).long()
        valid = torch.ones_like(labels, dtype=torch.bool)
        if self.ignore_label is not None:
            valid = labels != self.ignore_label
        matrix = self.matrix if matrix is None else matrix.detach()
        rows = matrix.reshape(terms.shape[-1], -1).to(terms.dtype)
        weights = rows[torch.where(valid, labels, 0)] * valid[..., None]
        dim = self.dim + scores.dim() if self.dim < 0 else self.dim
        batch = math.prod(scores.shape[:dim])
        loss = (weights * terms).sum() / normalizer(self.normalization, batch, labels.numel(), valid.sum())
        return loss if self.top_count == 1 else (loss, scores.detach().softmax(self.dim))
