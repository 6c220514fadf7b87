"""Losses and accuracies of detection maps: MS-CNN's and Cascade R-CNN's.

DetectionLoss and DetectionAccuracy: loss and accuracy of its maps.
DetectionGroupLoss and DetectionGroupAccuracy: loss and accuracy of its maps, several fields in each cell.
"""

import math

import torch
import torch.nn.functional as F

from ..stock.losses import capped
from . import ForkLayer
from ._boxes import overlap
from .proposals import overlap_of_rows

# -------------------------------------------------------------------- DetectionLoss and DetectionAccuracy


class _Detection(ForkLayer):
    """The base of the types for MS-CNN's maps.

    Bottoms: a map [N, cls_num + 4, h, w], scores of classes and offsets from a field around the centre of each cell,
    and targets [N, 6, h, w]: (label, x, y, width, height, overlap).
    """

    source = "zhaoweicai/mscnn"
    bottoms = (2, 2)

    def take(self, definition, p):
        norm, loss = definition.message.bbox_reg_param, definition.message.loss_param
        self.check(p.coord_num == 4, f"coord_num must be 4, not {p.coord_num}")
        self.check(not p.objectness or p.cls_num == 2, f"objectness has 2 classes, not {p.cls_num}")
        self.classes, self.objectness, self.least = p.cls_num, p.objectness, p.bg_threshold
        self.field, self.stride = (p.field_w, p.field_h), p.downsample_rate
        self.check(min(self.field) > 0, "field_w and field_h are needed")
        self.bounds = 1 / p.field_xyr, math.log(p.field_whr)
        self.ignored = loss.ignore_label if loss.HasField("ignore_label") else None
        both = norm.bbox_mean and norm.bbox_std
        sizes = len(norm.bbox_mean), len(norm.bbox_std)
        self.check(not both or sizes == (4, 4), "4 means and deviations are needed")
        self.mean, self.std = (
            (tuple(norm.bbox_mean), tuple(norm.bbox_std)) if both else ((0.0,) * 4, (1.0,) * 4)
        )

    def agree(self, x, wanted):
        fits = len(x) == 4 and x[1] == self.classes + 4 and wanted == (x[0], 6, *x[2:])
        said = "a map of {} classes and 6 values are needed, not {}, {}"
        self.check(fits, said, self.classes, x, wanted)

    def split(self, x, wanted):
        """Scores, offsets, boxes (centre and size), labels, labels as the scores have them, and which are negative."""
        wanted = wanted.detach()
        labels = wanted[:, 0].long()
        own = labels.clamp(max=1) if self.objectness else labels
        negative = (labels == 0) & (wanted[:, 5] < self.least)
        return x[:, : self.classes], x[:, self.classes :], wanted[:, 1:5], labels, own, negative

    def is_valid(self, labels):
        return torch.ones_like(labels, dtype=torch.bool) if self.ignored is None else labels != self.ignored

    def centres(self, x):
        rows, columns = x.shape[2:]
        y, x = (
            (torch.arange(n, device=x.device, dtype=x.dtype) + 0.5) * self.stride for n in (rows, columns)
        )
        return torch.stack(torch.meshgrid(x, y, indexing="xy"))

    def along(self, values, x):
        return x.new_tensor(values)[:, None, None]


class DetectionLoss(_Detection):
    """Softmax loss of the selected cells, plus lambda times smooth L1 loss of the offsets of those with an object.

    The top has the sum and the second part: [1, 1, 1, 2]; the gradient is that of the sum. Of the negative cells (label
    0, overlap below bg_threshold) sample_mode selects some: "random" draws, "bootstrap" takes the best scores of each
    class, "mixture" takes half of each. Offsets are clipped to their bounds, but the gradient ignores this.
    """

    types = ("DetectionLoss",)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.detection_loss_param
        self.take(definition, p)
        self.mode, self.multiple = p.sample_mode, p.bg_multiple
        self.weight, self.is_smooth = getattr(p, "lambda"), p.bb_smooth
        self.iou_weighted, self.balanced = p.iou_weighted, p.pos_neg_weighted

    def top_shapes(self, x, wanted):
        return [(1, 1, 1, 2)]

    def forward(self, x, wanted):
        scores, offsets, boxes, labels, own, negative = self.split(x, wanted)
        valid, is_object = self.is_valid(own), labels != 0
        kept = self.sampled(scores.detach(), own, negative)
        weights = self.weights(wanted[:, 5], is_object, kept)
        terms = terms_of(self, scores, own)
        counts = valid & ((own != 0) | kept)
        refuse_labels(self, own, counts)
        classes = torch.where(counts, terms * weights, 0).sum() / counts.sum().clamp(min=1)
        found = self.is_valid(labels) & is_object
        difference = bounded(self, offsets) - targets(self, boxes, self.along(self.field, boxes))
        places = places_loss(self, difference, found)
        return torch.stack((classes + places, places.detach())).reshape(1, 1, 1, 2)

    def sampled(self, scores, labels, negative):
        """The selected negative cells."""
        flat, labels = negative.flatten(1), labels.flatten(1)
        share = 0.5 if self.mode == "mixture" else 1.0
        kept = torch.zeros_like(flat)
        if self.mode in ("random", "mixture"):
            count = ((labels != 0).sum(1) * (self.multiple * share)).long().clamp(min=4 * (self.classes - 1))
            # Each draw is of any cell, and may be of one that was drawn before.
            most = flat.shape[1] * self.multiple if torch.compiler.is_compiling() else int(count.max())
            drawn = torch.randint(flat.shape[1], (len(flat), max(most, 4 * self.classes)), device=flat.device)
            counts = torch.arange(drawn.shape[1], device=flat.device) < count[:, None]
            kept = torch.zeros(len(flat), flat.shape[1] + 1, dtype=torch.bool, device=flat.device)
            kept = kept.scatter(1, drawn.where(counts, flat.shape[1]), True)[:, :-1]
        if self.mode in ("bootstrap", "mixture"):
            classes = torch.arange(1, self.classes, device=flat.device)[:, None]
            count = ((labels[:, None] == classes).sum(2) * (self.multiple * share)).long().clamp(min=4)
            ranked = torch.where(flat[:, None], scores[:, 1:].flatten(2), -torch.inf).flip(2)
            order = flat.shape[1] - 1 - ranked.sort(dim=2, descending=True, stable=True)[1]
            best = torch.arange(flat.shape[1], device=flat.device) < count[..., None]
            taken = torch.zeros_like(best).scatter(2, order, best)
            kept = kept | taken.any(1)
        if self.mode not in ("random", "mixture", "bootstrap"):
            kept = torch.ones_like(flat)
        return (kept & flat).reshape(negative.shape)

    def weights(self, overlaps, is_object, kept):
        weights = torch.where(is_object, overlaps, 1.0) if self.iou_weighted else torch.ones_like(overlaps)
        if not self.balanced:
            return weights
        share = 1 / (1 + self.multiple)
        count = is_object.sum() + kept.sum()
        positive, negative = (torch.where(who, weights, 0).sum() for who in (is_object, kept))
        negative = torch.where(negative != 0, negative, 1)  # nothing is divided by it then
        factors = share * count / positive, (1 - share) * count / negative
        return torch.where(positive != 0, weights * torch.where(is_object, *factors), weights)


class DetectionAccuracy(_Detection):
    """The fraction of labels among the top_k scores: [1, 1, 1, 2], of all selected cells and of objects; -1 if none.

    A second top has the mean overlap of the objects' boxes. No gradient.
    """

    types = ("DetectionAccuracy",)
    tops = (1, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.detection_accuracy_param
        self.take(definition, p)
        self.top_k = p.top_k

    def top_shapes(self, x, wanted):
        return [(1, 1, 1, 2), (1, 1, 1, 1)][: self.top_count]

    @torch.no_grad()
    def forward(self, x, wanted):
        scores, offsets, boxes, labels, own, negative = self.split(x, wanted)
        # Among equal scores the later class comes first.
        order = self.classes - 1 - scores.flip(1).sort(dim=1, descending=True, stable=True)[1]
        hits = (order[:, : self.top_k] == own[:, None]).any(1).to(x.dtype)
        top = accuracy(self, hits, own, negative)
        if self.top_count == 1:
            return top
        ours = _corners(decoded(self, offsets, self.along(self.field, offsets)))
        common = overlap(ours[..., None, :], _corners(boxes)[..., None, :])[..., 0, 0]
        found = self.is_valid(labels) & (labels != 0)
        return top, _mean(common, found).reshape(1, 1, 1, 1)


def accuracy(layer, hits, own, negative):
    """[1, 1, 1, 2]: the mean of the hits of all labels that count, and of the objects among them."""
    counts = layer.is_valid(own) & ((own != 0) | negative)
    return torch.stack([_mean(hits, counts), _mean(hits, counts & (own != 0))]).reshape(1, 1, 1, 2)


def refuse_labels(layer, own, counts):
    """CaffeValueError if a cell that counts has a label that is no class."""
    wrong = counts & ((own < 0) | (own >= layer.classes))
    layer.check_rows(wrong, f"a label is not one of {layer.classes} classes")


def terms_of(layer, scores, own):
    """The softmax loss of each cell, with the nearest class's for a label that is none."""
    return capped(-scores.log_softmax(1).gather(1, own.clamp(0, layer.classes - 1)[:, None])[:, 0])


def places_loss(layer, difference, found):
    """The loss of offsets that differ so much from their targets, of these cells."""
    difference = torch.where(found[:, None], difference, 0)
    zero = torch.zeros_like(difference)
    smooth = layer.is_smooth
    places = F.huber_loss(difference, zero, reduction="sum") if smooth else difference.square().sum() / 2
    return layer.weight * places / (4 * found.sum()).clamp(min=1)


def targets(layer, boxes, field):
    """The offsets of boxes from their cells' fields."""
    places = (boxes[:, :2] - layer.centres(boxes)) / field
    offsets = torch.cat((places, (boxes[:, 2:].clamp(min=2) / field).log()), 1)
    return (offsets - layer.along(layer.mean, boxes)) / layer.along(layer.std, boxes)


def bounded(layer, offsets):
    """Clipped offsets, with the gradient of the unclipped ones."""
    mean, std, ends = layer.mean, layer.std, []
    for bound, i in zip(layer.bounds, (0, 2), strict=True):
        middle, scale = (mean[i] + mean[i + 1]) / 2, math.sqrt(std[i] * std[i + 1])
        ends += [((-bound - middle) / scale, (bound - middle) / scale)] * 2
    low, high = (layer.along(values, offsets) for values in zip(*ends, strict=True))
    return offsets + (torch.minimum(torch.maximum(offsets, low), high) - offsets).detach()


def decoded(layer, offsets, field):
    """Decode offsets from the cells to boxes, as centre and size."""
    offsets = offsets * layer.along(layer.std, offsets) + layer.along(layer.mean, offsets)
    xyr, whr = layer.bounds
    centre = offsets[:, :2].clamp(-xyr, xyr) * field + layer.centres(offsets)
    return torch.cat((centre, field * offsets[:, 2:].clamp(-whr, whr).exp()), 1)


def _corners(boxes):
    """[N, h, w, 4] of [N, 4, h, w], centre and size."""
    half = boxes[:, 2:] / 2
    return torch.cat((boxes[:, :2] - half, boxes[:, :2] + half), 1).permute(0, 2, 3, 1)


def _mean(values, which):
    """The mean of these values; -1 if there are none."""
    count = which.sum()
    return torch.where(count > 0, torch.where(which, values, 0).sum() / count, -1.0)


# ---------------------------------------------------------- DetectionGroupLoss and DetectionGroupAccuracy


class _Group(ForkLayer):
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
        terms = terms_of(self, scores, own)
        with torch.no_grad():
            hard = terms if self.ranking == "conf_loss" else 1 - scores.softmax(1)[:, 0]
            kept = self.sampled(hard, labels > 0, negative)
            weights = self.weights(labels > 0, kept, terms)
        counts = self.is_valid(own) & kept
        refuse_labels(self, own, counts)
        classes = torch.where(counts, terms * weights, 0).sum() / counts.sum().clamp(min=1)
        found = self.is_valid(labels) & (labels != 0) & kept
        boxes = wanted[:, 1:5].detach()
        offsets = bounded(self, offsets) if self.is_bounded else offsets
        places = places_loss(self, offsets - targets(self, boxes, self.field(boxes)), found)
        return torch.stack((classes + places, places.detach())).reshape(1, 1, 1, 2)

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
        common = overlap_of_rows(self.rows(ours), self.rows(wanted[:, 1:5]), False)[..., 0, 0]
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
