"""SSD: DetectionOutput, the found boxes."""

import math

import torch
import torch.nn.functional as F

from . import KnownLayer
from ._boxes import decode, priors_of, suppressed


class DetectionOutput(KnownLayer):
    """The found boxes: [1, 1, boxes, 7], rows (item, label, score, left, top, right, bottom).

    Bottoms: offsets [N, priors * classes * 4], scores [N, priors * classes] and PriorBox's top. For each class but the
    background: the top_k boxes above confidence_threshold, after non-maximum suppression. Of each item the keep_top_k
    best are kept. If nothing is found, each item has a row of -1. No gradient. Files are not written:
    save_output_param and visualize have no effect. OpenCV's field `clip` first clips boxes at the image's edge.
    """

    types = ("DetectionOutput",)
    source = "weiliu89/caffe, ssd"
    bottoms = (3, 4)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.detection_output_param
        self.check(p.HasField("num_classes"), "must specify num_classes")
        self.classes, self.background, self.code = p.num_classes, p.background_label_id, p.code_type
        self.box_classes = 1 if p.share_location else p.num_classes
        self.variance_in_target, self.keep_top_k, self.clip = (
            p.variance_encoded_in_target,
            p.keep_top_k,
            p.clip,
        )
        self.least = (
            p.confidence_threshold if p.HasField("confidence_threshold") else -torch.finfo(torch.float).max
        )
        nms = p.nms_param
        self.threshold, self.eta, self.top_k = (
            nms.nms_threshold,
            nms.eta,
            nms.top_k if nms.HasField("top_k") else -1,
        )
        self.check(self.threshold >= 0, "nms_threshold must be non negative")
        self.check(0 < self.eta <= 1, "eta: expected more than 0 and at most 1")

    def agree(self, offsets, scores, priors, *image):
        count = math.prod(priors) // 8
        sizes = math.prod(offsets[1:]), math.prod(scores[1:])
        self.check(offsets[:1] == scores[:1], "offsets of {} and scores of {}", offsets, scores)
        self.check(count * self.box_classes * 4 == sizes[0], "number of priors must match number of offsets")
        self.check(count * self.classes == sizes[1], "number of priors must match number of scores")

    def top_shapes(self, *bottoms):
        return [(1, 1, 1, 7)]  # as in the layer's Reshape, before the number of boxes is known

    @torch.no_grad()
    def forward(self, offsets, scores, priors, image=None):
        number, (priors, variances) = offsets.shape[0], priors_of(priors)
        wide = torch.promote_types(offsets.dtype, priors.dtype)
        scores = self.foreground(scores.to(wide).reshape(number, -1, self.classes).transpose(1, 2))
        count = self.most(scores)
        if count == 0:
            return self.nothing(scores)[None, None]
        best, order = (part[..., :count] for part in scores.sort(dim=2, descending=True, stable=True))
        offsets = offsets.to(wide).reshape(number, -1, self.box_classes, 4).transpose(1, 2)
        if self.box_classes > 1:
            offsets = self.foreground(offsets)
        index = order[..., None].expand(*order.shape, 4)
        boxes = decode(
            self.code,
            priors[order],
            1 if self.variance_in_target else variances[order],
            offsets.expand(-1, order.shape[1], -1, -1).gather(2, index),
        )
        boxes = boxes.clamp(0, 1) if self.clip else boxes
        kept = suppressed(boxes, best > self.least, self.threshold, self.eta)
        return self.rows(self.best_of(kept, best), best, boxes)

    def foreground(self, x):
        """All classes but the background; classes are axis 1."""
        if not 0 <= self.background < self.classes:
            return x
        before, behind = x[:, : self.background], x[:, self.background + 1 :]
        return torch.cat((before, behind), 1) if self.background else behind

    def most(self, scores) -> int:
        """The most candidates of an item and class. A graph may not ask for it."""
        count = scores.shape[2] if self.top_k < 0 else min(self.top_k, scores.shape[2])
        if torch.compiler.is_compiling():
            return count
        return min(count, int((scores > self.least).sum(2).max())) if scores.numel() else 0

    def best_of(self, kept, scores):
        """The keep_top_k best of each item's boxes."""
        if self.keep_top_k < 0 or kept[0].numel() <= self.keep_top_k:
            return kept
        flat = torch.where(kept, scores, -torch.inf).flatten(1)
        chosen = flat.sort(dim=1, descending=True, stable=True)[1][:, : self.keep_top_k]
        return kept & torch.zeros_like(kept).flatten(1).scatter(1, chosen, True).reshape(kept.shape)

    def rows(self, kept, scores, boxes):
        """The top: a row for each kept box, or rows of -1."""
        nothing = self.nothing(boxes)
        labels = torch.arange(kept.shape[1], device=kept.device)
        if 0 <= self.background < self.classes:
            labels = labels + (labels >= self.background)
        named = (nothing[:, :1, None], labels.to(boxes.dtype)[:, None], scores)
        table = torch.cat((*(column.expand(kept.shape)[..., None] for column in named), boxes), 3)
        is_nothing = (~kept.any()).expand(len(nothing))
        table, is_row = torch.cat((table.reshape(-1, 7), nothing)), torch.cat((kept.reshape(-1), is_nothing))
        return table[is_row][None, None]

    def nothing(self, like):
        """A row of -1 for each item."""
        items = torch.arange(like.shape[0], device=like.device, dtype=like.dtype)
        return F.pad(items[:, None], (0, 6), value=-1.0)
