"""Regions, Cascade R-CNN: loss and accuracy of its maps, several fields in each cell."""

import math

import torch
import torch.nn.functional as F

from ..stock.softmax_with_loss import _MOST
from . import KnownLayer
from .detection_loss import _corners, _mean, accuracy, decoded
from .proposal_target import _overlap


class _Group(KnownLayer):
    """The base of the types for Cascade R-CNN's maps.

    Bottoms: scores [N * fields, classes, h, w], offsets [N * fields, 4, h, w] from fields around the centres of the
    cells, and targets [N * fields, 6, h, w]: (label, x, y, width, height, overlap).
    """

    source = "zhaoweicai/cascade-rcnn"
    bottoms = (3, 3)

    def take(self, definition, p):
        norm, loss = definition.message.bbox_reg_param, definition.message.loss_param
        self.check(len(p.field_w) == len(p.field_h) > 0, "as many field_w as field_h are needed")
        self.check(not p.objectness or p.cls_num == 2, f"objectness has 2 classes, not {p.cls_num}")
        self.fields, self.stride = tuple(zip(p.field_w, p.field_h, strict=True)), p.stride
        self.classes, self.objectness, self.least = p.cls_num, p.objectness, p.bg_threshold
        self.bounds = 1 / p.field_xyr, math.log(p.field_whr)
        self.ignored = loss.ignore_label if loss.HasField("ignore_label") else None
        both = norm.bbox_mean and norm.bbox_std
        self.check(
            not both or len(norm.bbox_mean) == len(norm.bbox_std) == 4, "4 means and deviations are needed"
        )
        self.mean, self.std = (
            (tuple(norm.bbox_mean), tuple(norm.bbox_std)) if both else ((0.0,) * 4, (1.0,) * 4)
        )

    def agree(self, scores, offsets, wanted):
        maps, rest = scores[0], scores[2:]
        fits = len(scores) == 4 and scores[1] == self.classes and maps % len(self.fields) == 0
        fits = fits and offsets == (maps, 4, *rest) and wanted == (maps, 6, *rest)
        said = "maps of {}, 4 and 6 values, {} each, are needed: {}, {} and {}"
        self.check(fits, said, self.classes, len(self.fields), scores, offsets, wanted)

    def labels_of(self, wanted):
        """Labels, labels as the scores have them, and which are negative."""
        labels = wanted[:, 0].detach().long()
        own = labels.clamp(max=1) if self.objectness else labels
        return labels, own, (labels == 0) & (wanted[:, 5] < self.least)

    def is_valid(self, labels):
        return torch.ones_like(labels, dtype=torch.bool) if self.ignored is None else labels != self.ignored

    def centres(self, x):
        rows, columns = x.shape[2:]
        y, x = (
            (torch.arange(n, device=x.device, dtype=x.dtype) + 0.5) * self.stride for n in (rows, columns)
        )
        return torch.stack(torch.meshgrid(x, y, indexing="xy"))

    def field(self, x):
        """The size of each map's field, [maps, 2, 1, 1]."""
        return x.new_tensor(self.fields).repeat(len(x) // len(self.fields), 1)[..., None, None]

    def along(self, values, x):
        return x.new_tensor(values)[:, None, None]


class DetectionGroupLoss(_Group):
    """Softmax loss of the selected cells, plus lambda times smooth L1 loss of the offsets of those with an object.

    The top has the sum and the second part: [1, 1, 1, 2]; the gradient is that of the sum. Of each item batch_size
    cells are selected, one in 1 + bg_multiple with an object. With batch_size -1 all cells with an object are selected,
    and bg_multiple times as many negative ones (label 0, overlap below bg_threshold), at least min_num_neg. Negative
    cells are drawn at random ("random"), or are the hardest ones ("bootstrap"), or half of each ("mixture"). Offsets
    are clipped to the file's bounds, if any, but the gradient ignores this.
    """

    types = ("DetectionGroupLoss",)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.detection_group_loss_param
        self.take(definition, p)
        self.is_bounded = p.HasField("field_xyr") and p.HasField("field_whr")
        self.weight, self.multiple, self.balanced = getattr(p, "lambda"), p.bg_multiple, p.pos_neg_weighted
        self.batch, self.fewest, self.mode, self.ranking = (
            p.batch_size,
            p.min_num_neg,
            p.neg_mining_type,
            p.neg_ranking_type,
        )
        self.check(
            self.batch > 0 or self.batch == -1, f"batch_size must be -1 or more than 0, not {self.batch}"
        )
        for name, allowed in (
            ("neg_mining_type", ("random", "bootstrap", "mixture")),
            ("neg_ranking_type", ("conf_prob", "conf_loss")),
            ("bbox_loss_type", ("Smooth_L1", "Euclidean_L2")),
        ):
            self.check(
                getattr(p, name) in allowed, f"{name} {getattr(p, name)!r}: one of {', '.join(allowed)}"
            )
        self.is_smooth = p.bbox_loss_type == "Smooth_L1"

    def top_shapes(self, scores, offsets, wanted):
        return [(1, 1, 1, 2)]

    def forward(self, scores, offsets, wanted):
        labels, own, negative = self.labels_of(wanted)
        terms = -scores.log_softmax(1).gather(1, own.clamp(0, self.classes - 1)[:, None])[:, 0]
        terms = terms + (terms.clamp(max=_MOST) - terms).detach()
        with torch.no_grad():
            hard = terms if self.ranking == "conf_loss" else 1 - scores.softmax(1)[:, 0]
            kept = self.sampled(hard, labels > 0, negative)
            weights = self.weights(labels > 0, kept, terms)
        counts = self.is_valid(own) & kept
        classes = torch.where(counts, terms * weights, 0).sum() / counts.sum().clamp(min=1)
        found = self.is_valid(labels) & (labels != 0) & kept
        difference = torch.where(
            found[:, None], self.bounded(offsets) - self.targets(wanted[:, 1:5].detach()), 0
        )
        zero = torch.zeros_like(difference)
        places = (
            F.huber_loss(difference, zero, reduction="sum")
            if self.is_smooth
            else difference.square().sum() / 2
        )
        places = self.weight * places / (4 * found.sum()).clamp(min=1)
        return torch.stack((classes + places, places.detach())).reshape(1, 1, 1, 2)

    def targets(self, boxes):
        field = self.field(boxes)
        places = (boxes[:, :2] - self.centres(boxes)) / field
        targets = torch.cat((places, (boxes[:, 2:].clamp(min=2) / field).log()), 1)
        return (targets - self.along(self.mean, boxes)) / self.along(self.std, boxes)

    def bounded(self, offsets):
        """Clipped offsets, with the gradient of the unclipped ones."""
        if not self.is_bounded:
            return offsets
        mean, std, ends = self.mean, self.std, []
        for bound, i in zip(self.bounds, (0, 2), strict=True):
            middle, scale = (mean[i] + mean[i + 1]) / 2, math.sqrt(std[i] * std[i + 1])
            ends += [((-bound - middle) / scale, (bound - middle) / scale)] * 2
        low, high = (self.along(values, offsets) for values in zip(*ends, strict=True))
        return offsets + (torch.minimum(torch.maximum(offsets, low), high) - offsets).detach()

    def sampled(self, hard, positive, negative):
        """The selected cells, of all maps of an item together."""
        shape, (hard, positive, negative) = positive.shape, map(self.by_item, (hard, positive, negative))
        objects, others = positive.sum(1), negative.sum(1)
        if self.batch > 0:
            objects = objects.clamp(max=math.floor(self.batch / (1 + self.multiple) + 0.5))
            wanted = torch.minimum(self.batch - objects, others)
        else:
            wanted = torch.minimum((objects * self.multiple).clamp(min=self.fewest), others)
        kept = _first(torch.rand_like(hard), positive, objects)
        hardest = (
            wanted
            if self.mode == "bootstrap"
            else (wanted + 1) // 2
            if self.mode == "mixture"
            else wanted * 0
        )
        taken = _first(hard, negative, hardest)
        rest = _first(torch.rand_like(hard), negative & ~taken, wanted - hardest)
        return (kept | taken | rest).reshape(shape)

    def by_item(self, x):
        return x.unflatten(0, (-1, len(self.fields))).flatten(1)

    def weights(self, positive, kept, terms):
        weights = torch.ones_like(terms)
        if not self.balanced:
            return weights
        objects, others = (who.sum() for who in (positive & kept, kept & ~positive))
        share, count = 1 / (1 + self.multiple), kept.sum()
        parts = (
            (share * count / objects.clamp(min=1), objects),
            ((1 - share) * count / others.clamp(min=1), others),
        )
        factors = [torch.where(number > 0, factor, 1.0) for factor, number in parts]
        return weights * torch.where(positive, *factors)


class DetectionGroupAccuracy(_Group):
    """The fraction of labels with the best score: [1, 1, 1, 2], of all selected cells and of objects; -1 if there are
    none.

    A second top has the mean overlap of the objects' boxes. No gradient.
    """

    types = ("DetectionGroupAccuracy",)
    tops = (1, 2)

    def __init__(self, definition):
        super().__init__(definition)
        self.take(definition, definition.message.detection_group_accuracy_param)

    def top_shapes(self, scores, offsets, wanted):
        return [(1, 1, 1, 2), (1, 1, 1, 1)][: self.top_count]

    @torch.no_grad()
    def forward(self, scores, offsets, wanted):
        labels, own, negative = self.labels_of(wanted)
        top = accuracy(self, (scores.argmax(1) == own).to(scores.dtype), own, negative)
        if self.top_count == 1:
            return top
        ours = decoded(self, offsets, self.field(offsets))
        common = _overlap(self.rows(ours), self.rows(wanted[:, 1:5]), False)[..., 0, 0]
        found = self.is_valid(labels) & (labels != 0)
        return top, _mean(common, found).reshape(1, 1, 1, 1)

    def rows(self, boxes):
        """Rows (_, left, top, right, bottom), ends included, one for each cell: [maps, h, w, 1, 5]."""
        corners = _corners(boxes)
        return F.pad(torch.cat((corners[..., :2], corners[..., 2:] - 1), -1), (1, 0))[..., None, :]


def _first(keys, among, count):
    """The `count` largest of each row, among some."""
    order = torch.where(among, keys, -torch.inf).sort(dim=1, descending=True, stable=True)[1]
    place = torch.arange(keys.shape[1], device=keys.device) < count[:, None]
    return torch.zeros_like(among).scatter(1, order, place) & among
