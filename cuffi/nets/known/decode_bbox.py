"""Regions, Cascade R-CNN: DecodeBBox, boxes from their offsets."""

import math

import torch

from . import KnownLayer


class DecodeBBox(KnownLayer):
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
