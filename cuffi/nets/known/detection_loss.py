"""Regions, MS-CNN: loss and accuracy of its maps; what detection_group_loss shares with it."""

import math

import torch
import torch.nn.functional as F

from ..stock.softmax_with_loss import _MOST
from . import KnownLayer
from ._boxes import overlap


class _Detection(KnownLayer):
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
        terms = -scores.log_softmax(1).gather(1, own.clamp(0, self.classes - 1)[:, None])[:, 0]
        terms = terms + (terms.clamp(max=_MOST) - terms).detach()
        counts = valid & ((own != 0) | kept)
        classes = torch.where(counts, terms * weights, 0).sum() / counts.sum().clamp(min=1)
        found = self.is_valid(labels) & is_object
        difference = torch.where(found[:, None], self.bounded(offsets) - self.targets(boxes), 0)
        zero = torch.zeros_like(difference)
        places = (
            F.huber_loss(difference, zero, reduction="sum")
            if self.is_smooth
            else difference.square().sum() / 2
        )
        places = self.weight * places / (4 * found.sum()).clamp(min=1)
        return torch.stack((classes + places, places.detach())).reshape(1, 1, 1, 2)

    def targets(self, boxes):
        field = self.along(self.field, boxes)
        places = (boxes[:, :2] - self.centres(boxes)) / field
        targets = torch.cat((places, (boxes[:, 2:].clamp(min=2) / field).log()), 1)
        return (targets - self.along(self.mean, boxes)) / self.along(self.std, boxes)

    def bounded(self, offsets):
        """Clipped offsets, with the gradient of the unclipped ones."""
        (xyr, whr), mean, std = self.bounds, self.mean, self.std
        middles = [(mean[i] + mean[i + 1]) / 2 for i in (0, 2)]
        scales = [math.sqrt(std[i] * std[i + 1]) for i in (0, 2)]
        pairs = zip((xyr, whr), middles, scales, strict=True)
        least, most = zip(*(((-b - m) / s, (b - m) / s) for b, m, s in pairs), strict=True)
        low, high = (self.along([e[0], e[0], e[1], e[1]], offsets) for e in (least, most))
        cut = torch.minimum(torch.maximum(offsets, low), high)
        return offsets + (cut - offsets).detach()

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
