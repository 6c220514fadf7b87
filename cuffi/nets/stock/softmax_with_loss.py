"""Losses: SoftmaxWithLoss, the cross entropy of labels; what other losses share with it."""

import math

import torch
import torch.nn.functional as F

from ...caffe_files.prototxt import number
from . import StockLayer

FULL, VALID, BATCH_SIZE, NONE = range(4)
_MOST = -math.log(1.1754943508222875e-38)  # Caffe takes no logarithm of less than FLT_MIN


def normalization(p, default: int) -> int:
    """The count of loss_param by which the sum is divided."""
    if p.HasField("normalization"):
        return p.normalization
    if p.HasField("normalize"):
        return VALID if p.normalize else BATCH_SIZE
    return default


def normalizer(mode: int, batch: int, full: int, valid):
    """The divisor, at least 1. valid: a number, or a tensor if labels are ignored."""
    if mode == VALID:
        return valid.clamp(min=1) if isinstance(valid, torch.Tensor) else max(valid, 1)
    return max({FULL: full, BATCH_SIZE: batch, NONE: 1}[mode], 1)


def check_labels(layer, scores, labels, is_loss: bool) -> int:
    """Check that each prediction along the layer's axis has a label. Returns the number of classes.

    is_loss: Caffe's losses require the same first axis, too.
    """
    axis = layer.axis(layer.dim, len(scores))
    count = math.prod(scores[:axis]) * math.prod(scores[axis + 1 :])
    found = math.prod(labels)
    said = "{} labels for {} predictions along axis {} of {}"
    layer.check(count == found, said, found, count, axis, scores)
    fits = not is_loss or labels[:1] == scores[:1]
    layer.check(fits, "labels of {} for scores of {}: the first axis must be the same", labels, scores)
    return scores[axis]


class SoftmaxWithLoss(StockLayer):
    """-1/normalizer sum of log(softmax(x)[label]).

    Bottoms: scores with the classes on `axis`, labels with that axis left out or 1. Tops: a number; then the
    probabilities. The normalizer is the number of labels that are not ignore_label, unless loss_param says
    otherwise. The scores have a gradient.

    SegNet's fork multiplies each term by its class's class_weighting, if weight_by_label_freqs says so.

    Source: BVLC's softmax_loss_layer.cpp.
    """

    bottoms = (2, 2)
    tops = (1, 2)
    is_loss = True
    understands = ("loss_param.weight_by_label_freqs", "loss_param.class_weighting")

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.loss_param
        self.dim = definition.message.softmax_param.axis
        self.normalization = normalization(p, VALID)
        self.ignore_label = p.ignore_label if p.HasField("ignore_label") else None
        weights = definition.extra.get("loss_param.class_weighting", "").split()
        is_weighted = definition.flag("loss_param.weight_by_label_freqs", False)
        self.class_weights = tuple(map(number, weights)) if is_weighted else None

    def agree(self, scores, labels):
        classes, weights = check_labels(self, scores, labels, is_loss=True), self.class_weights
        fits = weights is None or len(weights) == classes
        self.check(fits, "{} class_weighting for {} classes", len(weights or ()), classes)

    def forward(self, scores, labels):
        classes = scores.movedim(self.dim, 1)
        labels = labels.reshape(classes.shape[:1] + classes.shape[2:]).long()
        ignored = -100 if self.ignore_label is None else self.ignore_label
        terms = F.cross_entropy(classes, labels, reduction="none", ignore_index=ignored)
        terms = terms + (terms.clamp(max=_MOST) - terms).detach()
        if self.class_weights is not None:
            own = labels if self.ignore_label is None else labels.where(labels != ignored, 0)
            terms = terms * terms.new_tensor(self.class_weights)[own]
        valid = labels.numel() if self.ignore_label is None else (labels != ignored).sum()
        dim = self.dim + scores.dim() if self.dim < 0 else self.dim
        batch = scores.shape[:dim].numel()
        loss = terms.sum() / normalizer(self.normalization, batch, labels.numel(), valid)
        return loss if self.top_count == 1 else (loss, scores.detach().softmax(self.dim))
