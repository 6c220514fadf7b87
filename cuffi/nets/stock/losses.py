"""Losses and scores, and what losses share: the normalizer, and labels that fit scores.

SoftmaxWithLoss: the cross entropy of labels.
MultinomialLogisticLoss: a cross entropy of probabilities.
InfogainLoss: a cross entropy weighted by a matrix.
SigmoidCrossEntropyLoss: of independent probabilities.
HingeLoss: a margin of one class against all.
EuclideanLoss: half of the mean squared distance.
ContrastiveLoss: of pairs that should be near or far.
Accuracy: the fraction of labels that are found.
ArgMax: where the largest values are.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...base.files import to_read
from ...caffe_files.caffemodel import stored_blob
from ...caffe_files.prototxt import number
from . import StockLayer, legacy, root

# ---------------------------------------------------------------------------------------- SoftmaxWithLoss

FULL, VALID, BATCH_SIZE, NONE = range(4)
LARGEST_TERM = -math.log(1.1754943508222875e-38)  # Caffe takes no logarithm of less than FLT_MIN
NONE_IGNORED = -(2**62) - 1  # no label is this number, as a float has no digits for it; torch's own is -100


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


def capped(terms, most: float = LARGEST_TERM):
    """Terms of at most `most`; the gradient ignores this, as Caffe's does."""
    return terms + (terms.clamp(max=most) - terms).detach()


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


def why_outside(layer, labels: torch.Tensor, classes: int) -> str:
    """Words for a label that is no class; "" if all are."""
    wrong = labels[(labels.long() < 0) | (labels.long() >= classes)]
    ignored = getattr(layer, "ignore_label", None)
    wrong = wrong if ignored is None else wrong[wrong.long() != ignored]
    if not wrong.numel():
        return ""
    label = int(wrong[0])
    ignore = f". To ignore it: loss_param {{ ignore_label: {label} }}" if ignored is None else ""
    said = f"label {label} for {classes} classes, which are 0 to {classes - 1}"
    return f"{said}: num_output of the scores' layer says how many{ignore}"


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
        ignored = NONE_IGNORED if self.ignore_label is None else self.ignore_label
        terms = F.cross_entropy(classes, labels, reduction="none", ignore_index=ignored)
        terms = capped(terms)
        if self.class_weights is not None:
            own = labels if self.ignore_label is None else labels.where(labels != ignored, 0)
            terms = terms * terms.new_tensor(self.class_weights)[own]
        valid = labels.numel() if self.ignore_label is None else (labels != ignored).sum()
        dim = self.dim + scores.dim() if self.dim < 0 else self.dim
        batch = scores.shape[:dim].numel()
        loss = terms.sum() / normalizer(self.normalization, batch, labels.numel(), valid)
        return loss if self.top_count == 1 else (loss, scores.detach().softmax(self.dim))


# -------------------------------------------------------------------------------- MultinomialLogisticLoss

LEAST = float(np.float32(1e-20))  # Caffe takes no logarithm of less; its constant is a float


class MultinomialLogisticLoss(StockLayer):
    """-1/N sum of log(p[n, label_n]), with probabilities of at least 1e-20.

    Bottoms: probabilities [N, K], labels [N]. The probabilities have a gradient.

    Source: BVLC's multinomial_logistic_loss_layer.cpp.
    """

    bottoms = (2, 2)
    is_loss = True

    def agree(self, probabilities, labels):
        legacy(self, probabilities)
        fits = probabilities[:1] == labels[:1] and legacy(self, labels)[1:] == (1, 1, 1)
        self.check(fits, "labels of {} for probabilities of {}", labels, probabilities)

    def forward(self, probabilities, labels):
        items = probabilities.shape[0]
        own = probabilities.reshape(items, -1).gather(1, labels.reshape(-1, 1).long())
        floor = own.clamp(min=LEAST)
        # Caffe's gradient is not 0 below that minimum.
        missing = (own - own.detach()) / floor.detach() - (floor - floor.detach()) / floor.detach()
        return -(floor.log() + missing).sum() / items


# ------------------------------------------------------------------------------------------- InfogainLoss

_LARGEST_OF_INFOGAIN = -math.log(LEAST)


class InfogainLoss(StockLayer):
    """-1/normalizer sum over n of H[label_n, :] · log(softmax(x_n)).

    Bottoms: scores with the classes on `axis`, labels, and H [K, K] as a third bottom or a file. Tops: a number;
    then the probabilities. The normalizer is SoftmaxWithLoss's. The scores have a gradient.

    Source: BVLC's infogain_loss_layer.cpp.
    """

    bottoms = (2, 3)
    tops = (1, 2)
    is_loss = True
    matrix: Tensor

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.loss_param
        self.dim, self.normalization = definition.message.infogain_loss_param.axis, p.normalization
        self.ignore_label = p.ignore_label if p.HasField("ignore_label") else None
        self.check(not p.HasField("normalize"), "normalize is deprecated: use normalization")
        if definition.bottoms < 3:
            source = definition.message.infogain_loss_param.source
            self.check(bool(source), "a third bottom or infogain_loss_param.source, the matrix, is needed")
            with to_read(source) as file:
                self.register_buffer("matrix", stored_blob(source).read(file), persistent=False)

    def agree(self, scores, labels, matrix=None):
        classes = check_labels(self, scores, labels, is_loss=True)
        size = torch.Size(matrix).numel() if matrix is not None else self.matrix.numel()
        self.check(size == classes**2, "the matrix has {} values, {} x {} are needed", size, classes, classes)

    def forward(self, scores, labels, matrix=None):
        terms = -scores.movedim(self.dim, -1).log_softmax(-1)
        terms = capped(terms, _LARGEST_OF_INFOGAIN)
        labels = labels.reshape(terms.shape[:-1]).long()
        valid = torch.ones_like(labels, dtype=torch.bool)
        if self.ignore_label is not None:
            valid = labels != self.ignore_label
        matrix = self.matrix if matrix is None else matrix.detach()
        rows = matrix.reshape(terms.shape[-1], -1).to(terms.dtype)
        weights = F.embedding(torch.where(valid, labels, 0), rows) * valid[..., None]
        dim = self.dim + scores.dim() if self.dim < 0 else self.dim
        batch = math.prod(scores.shape[:dim])
        loss = (weights * terms).sum() / normalizer(self.normalization, batch, labels.numel(), valid.sum())
        return loss if self.top_count == 1 else (loss, scores.detach().softmax(self.dim))


# -------------------------------------------------------------------------------- SigmoidCrossEntropyLoss


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


# ---------------------------------------------------------------------------------------------- HingeLoss


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

    def top_shapes(self, scores, labels):
        return [()]

    def forward(self, scores, labels):
        items = scores.shape[0]
        flat = scores.reshape(items, -1)
        labels = labels.reshape(-1)[:items, None].long()
        self.check_rows(
            (labels < 0) | (labels >= flat.shape[1]), f"a label is not one of {flat.shape[1]} classes"
        )
        own = torch.zeros_like(flat).scatter(1, labels, 1.0)
        margins = torch.relu(1 + flat * (1 - 2 * own))
        return (margins.square() if self.norm == 2 else margins).sum() / items


# ------------------------------------------------------------------------------------------ EuclideanLoss


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


# ---------------------------------------------------------------------------------------- ContrastiveLoss


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


# ----------------------------------------------------------------------------------------------- Accuracy


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


# ------------------------------------------------------------------------------------------------- ArgMax


class ArgMax(StockLayer):
    """The indices of the top_k largest values, as floating numbers.

    Top: [N, 1, top_k] over all values of an item; with out_max_val [N, 2, top_k], indices and values. With `axis`:
    the bottom's shape with top_k on that axis, values instead of indices with out_max_val. No gradient.

    Of equal values the last one comes first: Caffe sorts pairs of value and index, the greatest first.

    Source: BVLC's argmax_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.argmax_param
        self.out_max_val, self.top_k = p.out_max_val, p.top_k
        self.along = p.axis if p.HasField("axis") else None

    def setup(self, x):
        size = x[self.axis(self.along, len(x))] if self.along is not None else torch.Size(x[1:]).numel()
        self.check(1 <= self.top_k <= size, f"top_k {self.top_k} of {size} values")

    @torch.no_grad()
    def forward(self, x):
        dim = self.along if self.along is not None else 1
        flat = x if self.along is not None else x.flatten(1)
        # A stable sort of the reversed values keeps the last of equal ones in front. topk promises no order.
        values, order = flat.flip(dim).sort(dim=dim, descending=True, stable=True)
        values = values.narrow(dim, 0, self.top_k)
        indices = (flat.shape[dim] - 1 - order.narrow(dim, 0, self.top_k)).to(x.dtype)
        if self.along is not None:
            return values if self.out_max_val else indices
        top = torch.stack((indices, values), 1) if self.out_max_val else indices[:, None]
        return top.reshape(top.shape + (1,) * max(0, x.dim() - 3))
