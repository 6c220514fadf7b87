"""Boxes between the stages of Cascade R-CNN, and at its end.

DecodeBBox: boxes from their offsets.
ScaleRoute: rows by the size of their region.
FrcnnOutput: the boxes found in one image.
"""

import math

import torch
import torch.nn.functional as F

from . import ForkLayer
from ._boxes import overlap_in_pixels, suppressed

# --------------------------------------------------------------------------------------------- DecodeBBox


class DecodeBBox(ForkLayer):
    """Decodes offsets from boxes to new boxes: rows (item, left, top, right, bottom) in pixels, ends included.

    Bottoms: offsets [n, 8], of which the last four are used; boxes [n, 5]; in training also the matched boxes, whose
    last value is the overlap. Offsets are multiplied by bbox_std, and bbox_mean is added. Training leaves out boxes
    that end before they begin, and those that overlap by gt_iou_thr or more. No gradient.
    """

    types = ("DecodeBBox",)
    source = "zhaoweicai/cascade-rcnn"
    bottoms = (2, 3)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.bbox_reg_param
        self.check(
            len(p.bbox_mean) in (0, 4) and len(p.bbox_std) in (0, 4), "4 means and deviations are needed"
        )
        both = p.bbox_mean and p.bbox_std
        self.mean, self.std = (tuple(p.bbox_mean), tuple(p.bbox_std)) if both else ((0.0,) * 4, (1.0,) * 4)
        self.most = definition.message.decode_bbox_param.gt_iou_thr

    def agree(self, offsets, boxes, *matched):
        self.check(math.prod(offsets[1:]) == 8, "offsets of 8 values are needed, not {}", offsets)
        self.check(math.prod(boxes[1:]) == 5, "boxes of 5 values are needed, not {}", boxes)
        for other in (offsets, *matched):
            self.check(other[:1] == boxes[:1], "{} boxes are needed, not {}", boxes[0], other)

    def top_shapes(self, offsets, boxes, *matched):
        return [(boxes[0], 5, 1, 1)]

    @torch.no_grad()
    def forward(self, offsets, boxes, matched=None):
        rows = boxes.reshape(-1, 5)
        wide = torch.promote_types(rows.dtype, torch.float32)
        offsets = offsets.reshape(-1, 8)[:, 4:].to(wide)
        offsets = offsets * offsets.new_tensor(self.std) + offsets.new_tensor(self.mean)
        low, high = rows[:, 1:3].to(wide), rows[:, 3:].to(wide)
        size = high - low + 1
        own = size * offsets[:, 2:].exp()
        first = offsets[:, :2] * size + (low + high) / 2 - (own - 1) / 2
        made = torch.cat((rows[:, :1].to(wide), first, first + own - 1), 1)
        if self.training:
            valid = (made[:, 1:3] <= made[:, 3:]).all(1)
            if matched is not None:
                valid = valid & (matched.reshape(len(made), -1)[:, -1] < self.most)
            made = made[valid]
        return made[..., None, None]


# --------------------------------------------------------------------------------------------- ScaleRoute


class ScaleRoute(ForkLayer):
    """The rows of all bottoms whose region's size is at least low_scale and below high_scale; otherwise the nearest
    row.

    The first bottom has the regions: rows (item, left, top, right, bottom). The size is the square root of the area;
    "nearest" is by its logarithm. No gradient.
    """

    types = ("ScaleRoute",)
    source = "zhaoweicai/cascade-rcnn"
    bottoms = (1, None)
    tops = (1, None)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.scale_route_param
        self.check(definition.bottoms == definition.tops, "as many tops as bottoms are needed")
        ends = [p.low_scale] * p.HasField("low_scale") + [p.high_scale] * p.HasField("high_scale")
        self.check(all(0 < end < math.inf for end in ends), "low_scale and high_scale must be positive")
        self.low, self.high = p.low_scale, p.high_scale if p.HasField("high_scale") else math.inf
        self.check(self.low <= self.high, "high_scale must not be less than low_scale")
        self.middle = math.prod(ends) ** (1 / len(ends)) if ends else 256.0

    def agree(self, *bottoms):
        rows = bottoms[0][0]
        self.check(math.prod(bottoms[0]) == 5 * rows, "regions of 5 values are needed, not {}", bottoms[0])
        self.check(all(x[0] == rows for x in bottoms), "{} rows of each bottom are needed", rows)

    def top_shapes(self, *bottoms):
        return [(1, *x[1:]) for x in bottoms]  # as in the layer's Reshape, before the number of rows is known

    @torch.no_grad()
    def forward(self, *bottoms):
        regions = bottoms[0].reshape(-1, 5)
        regions = regions.to(torch.promote_types(regions.dtype, torch.float32))
        sides = regions[:, 3:] - regions[:, 1:3]
        size = torch.where((sides < 0).any(1), 0, (sides + 1).prod(1)).sqrt()
        chosen = (size >= self.low) & (size < self.high)
        nearest = (size / self.middle).log2().abs().argmin()
        is_nearest = torch.arange(len(size), device=size.device) == nearest
        chosen = torch.where(chosen.any(), chosen, is_nearest)
        tops = tuple(x.detach()[chosen] for x in bottoms)
        return tops if len(tops) > 1 else tops[0]


# -------------------------------------------------------------------------------------------- FrcnnOutput


class FrcnnOutput(ForkLayer):
    """The boxes found in one image: [1 + boxes, 7, 1, 1], rows (0, left, top, right, bottom, label, score).

    The first row is 0 and six times -1. Bottoms: probabilities [n, classes], offsets [n, 4 * classes], or [n, 8] of
    which the last four are used, regions [n, 5 or 6] and the image's height and width. Offsets are multiplied by
    bbox_std, and bbox_mean is added. For each class but the first: the boxes above conf_thr, after non-maximum
    suppression by iou_thr; of all classes the max_det_num best. No gradient. Files are not written.
    """

    types = ("FrcnnOutput",)
    source = "zhaoweicai/cascade-rcnn"
    bottoms = (4, 4)

    def __init__(self, definition):
        super().__init__(definition)
        p, norm = definition.message.frcnn_output_param, definition.message.bbox_reg_param
        self.check(p.nms_type == "IOU", f"nms_type {p.nms_type} is not known here: port your fork's")
        sizes = len(norm.bbox_mean), len(norm.bbox_std)
        both = norm.bbox_mean and norm.bbox_std
        self.check(not both or sizes == (4, 4), "4 means and deviations are needed")
        self.mean, self.std = (
            (tuple(norm.bbox_mean), tuple(norm.bbox_std)) if both else ((0.0,) * 4, (1.0,) * 4)
        )
        self.cls_aware, self.least, self.threshold, self.most = (
            norm.cls_aware,
            p.conf_thr,
            p.iou_thr,
            p.max_det_num,
        )

    def agree(self, chances, offsets, regions, size):
        wanted = 4 * chances[1] if self.cls_aware else 8
        fits = offsets[:2] == (chances[0], wanted) and regions[0] == chances[0] and regions[1] in (5, 6)
        said = "{} offsets for each probability, and regions of 5 or 6 values, are needed: {}, {} and {}"
        self.check(fits, said, wanted, chances, offsets, regions)
        self.check(math.prod(size) == 2, "one height and width are needed, not {}", size)

    def top_shapes(self, *bottoms):
        return [(1, 7, 1, 1)]  # as in the layer's Reshape

    @torch.no_grad()
    def forward(self, chances, offsets, regions, size):
        self.check_rows(regions.flatten(1)[:, 0] != 0, "a region is of another image than the first")
        wide = torch.promote_types(offsets.dtype, torch.float32)
        chances = chances.to(wide).flatten(1)[:, 1:].t()  # [classes, n]
        boxes = self.boxes(
            offsets.to(wide).flatten(1), regions.to(wide).flatten(1), size.to(wide).reshape(2).flip(0)
        )
        best, order = chances.sort(dim=1, descending=True, stable=True)
        boxes = boxes.expand(len(chances), -1, -1).gather(1, order[..., None].expand(*order.shape, 4))
        kept = suppressed(boxes, best >= self.least, self.threshold, overlap=_overlap_of_boxes)
        if self.most:
            flat = torch.where(kept, best, -torch.inf).flatten()
            chosen = flat.sort(descending=True, stable=True)[1][: self.most]
            kept = kept & torch.zeros_like(flat, dtype=torch.bool).scatter(0, chosen, True).reshape(
                kept.shape
            )
        labels = torch.arange(1, len(chances) + 1, device=kept.device, dtype=wide)[:, None].expand(kept.shape)
        zero = torch.zeros_like(best)[..., None]
        table = torch.cat((zero, boxes, labels[..., None], best[..., None]), 2)[kept]
        first = F.pad(table.new_zeros(1, 1), (0, 6), value=-1.0)
        return torch.cat((first, table))[..., None, None]

    def boxes(self, offsets, regions, most):
        """The decoded boxes, clipped to the image: [classes or 1, n, 4]."""
        offsets = offsets.unflatten(1, (-1, 4))[:, 1:].transpose(0, 1)
        offsets = offsets * offsets.new_tensor(self.std) + offsets.new_tensor(self.mean)
        low, high = regions[:, 1:3], regions[:, 3:5]
        size = high - low + 1
        own = size * offsets[..., 2:].exp()
        first = offsets[..., :2] * size + (low + high) / 2 - (own - 1) / 2
        return torch.cat((first.clamp(min=0), torch.minimum(first + own - 1, most)), -1)


def _overlap_of_boxes(first, second):
    """Intersection over union in pixels; 0 for a box that ends before it begins."""
    valid = [(boxes[..., 2:] >= boxes[..., :2]).all(-1) for boxes in (first, second)]
    return torch.where(valid[0][..., :, None] & valid[1][..., None, :], overlap_in_pixels(first, second), 0)
