"""Regions, MS-CNN and Cascade R-CNN: proposals of several maps."""

import math

import torch

from . import KnownLayer
from ._boxes import overlap, overlap_in_pixels, suppressed


class BoxGroupOutput(KnownLayer):
    """Proposals of several maps: rows (item, left, top, right, bottom), and a second top with their scores, too.

    Bottoms, for each map: probabilities [items * fields, classes, h, w], of which the first is the background's, and
    offsets [items * fields, 4, h, w] from fields (field_w x field_h) around the centres of the cells. Boxes below
    fg_thr or min_size are dropped. Non-maximum suppression keeps boxes of the max_nms_num best, and the first
    max_post_nms_num of these are returned. No gradient.
    """

    types = ("BoxGroupOutput",)
    source = "zhaoweicai/cascade-rcnn"
    bottoms = (2, None)
    tops = (1, 2)
    edge = 1  # the length of a box, less the distance of its ends
    overlap = staticmethod(overlap_in_pixels)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.box_group_output_param
        groups = [(tuple(g.field_w), tuple(g.field_h), g.stride) for g in p.box_group_param]
        self.check(
            definition.bottoms == 2 * len(groups),
            f"{len(groups)} box_group_param for {definition.bottoms} bottoms",
        )
        self.check(all(len(w) == len(h) for w, h, _ in groups), "as many field_w as field_h are needed")
        self.groups = tuple(groups)
        self.take(definition, p)

    def take(self, definition, p):
        """Read the fields that both types have."""
        norm = definition.message.bbox_reg_param
        self.check(p.nms_type == "IOU", f"nms_type {p.nms_type} is not known here: port your fork's")
        both = norm.bbox_mean and norm.bbox_std
        self.mean, self.std = (
            (tuple(norm.bbox_mean), tuple(norm.bbox_std)) if both else ((0.0,) * 4, (1.0,) * 4)
        )
        self.bounds = 1 / p.field_xyr, math.log(p.field_whr)
        self.least, self.threshold, self.min_size = p.fg_thr, p.iou_thr, p.min_size
        self.before, self.after = p.max_nms_num, p.max_post_nms_num

    def agree(self, *bottoms):
        for (fields, _, _), chances, offsets in zip(self.groups, bottoms[::2], bottoms[1::2], strict=True):
            fits = chances[0] % len(fields) == 0 and offsets == (chances[0], 4, *chances[2:])
            said = "maps of {} fields are needed, not {} and {}"
            self.check(fits, said, len(fields), chances, offsets)

    def top_shapes(self, *bottoms):
        return [(1, 5, 1, 1), (1, 6, 1, 1)][: self.top_count]  # as in the layer's Reshape

    @torch.no_grad()
    def forward(self, *bottoms):
        boxes, scores = (torch.cat(parts, 1) for parts in zip(*self.levels(bottoms), strict=True))
        size = boxes[..., 2:] - boxes[..., :2] + self.edge
        valid = (scores >= self.least) & (size >= self.min_size).all(-1)
        count = min(self.before or scores.shape[1], scores.shape[1])
        if not torch.compiler.is_compiling():
            count = min(count, int(valid.sum(1).max()))
        best, order = torch.where(valid, scores, -torch.inf).sort(dim=1, descending=True, stable=True)
        best, order = best[:, :count], order[:, :count]
        boxes = boxes.gather(1, order[..., None].expand(*order.shape, 4))
        kept = suppressed(boxes, best > -torch.inf, self.threshold, overlap=self.overlap)
        if self.after:
            kept = kept & (kept.cumsum(1) <= self.after)
        return self.rows(kept, boxes, best)

    def levels(self, bottoms):
        """The boxes of each map [items, fields * h * w, 4], and their scores."""
        for group, chances, offsets in zip(self.groups, bottoms[::2], bottoms[1::2], strict=True):
            wide = chances[:, 0].to(torch.promote_types(offsets.dtype, torch.float32))
            boxes = self.boxes(group, offsets)
            yield boxes, (1 - wide).reshape(len(boxes), -1)

    def boxes(self, group, offsets):
        """The boxes of a map, cut to the image."""
        (widths, heights, stride), (rows, columns) = group, offsets.shape[2:]
        wide = {"dtype": torch.promote_types(offsets.dtype, torch.float32), "device": offsets.device}
        count, field = len(widths), torch.tensor((widths, heights), **wide).t()[:, :, None, None]
        given = offsets.to(wide["dtype"]).reshape(-1, count, 4, rows, columns)
        given = (
            given * torch.tensor(self.std, **wide)[:, None, None]
            + torch.tensor(self.mean, **wide)[:, None, None]
        )
        shift = given[:, :, :2].clamp(-self.bounds[0], self.bounds[0]) * field
        size = given[:, :, 2:].clamp(-self.bounds[1], self.bounds[1]).exp() * field
        y, x = ((torch.arange(n, **wide) + 0.5) * stride for n in (rows, columns))
        centre = torch.stack(torch.meshgrid(x, y, indexing="xy"))
        low = (centre + shift - size / 2).clamp(min=0)
        most = torch.tensor((columns * stride, rows * stride), **wide)[:, None, None]
        high = torch.minimum(self.ends(low, centre + shift, size), most)
        return torch.cat((low, high), 2).permute(0, 1, 3, 4, 2).reshape(len(given), -1, 4)

    def ends(self, low, centre, size):
        """The ends of boxes that begin at `low` after they were cut."""
        return centre + size / 2 - 1

    def rows(self, kept, boxes, scores):
        """The tops; one row if there is no box."""
        items = torch.arange(len(kept), device=boxes.device, dtype=boxes.dtype)[:, None, None].expand(
            *kept.shape, 1
        )
        table = torch.cat((items, boxes, scores[..., None]), 2).reshape(-1, 6)
        nothing = torch.tensor([[0, 1, 1, 10, 10, 0]], device=boxes.device, dtype=boxes.dtype)
        is_row = torch.cat((kept.reshape(-1), ~kept.any()[None]))
        found = torch.cat((table, nothing))[is_row][..., None, None]
        if self.top_count == 1:
            return found[:, :5]
        return found[:, :5], torch.where(kept.any(), found, 0)


class BoxOutput(BoxGroupOutput):
    """The same for maps with one field each: [items, classes + 4, h, w], scores of classes and offsets.

    A box's score is its best class score less the background's. A box ends at the end of its last pixel. A box that is
    cut at the left or the top keeps its size.
    """

    types = ("BoxOutput",)
    source = "zhaoweicai/mscnn"
    bottoms = (1, None)
    edge = 0
    overlap = staticmethod(overlap)

    def __init__(self, definition):
        KnownLayer.__init__(self, definition)
        p = definition.message.box_output_param
        for name in ("field_w", "field_h", "downsample_rate"):
            count = len(getattr(p, name))
            self.check(count == definition.bottoms, f"{count} {name} for {definition.bottoms} bottoms")
        fields = zip(p.field_w, p.field_h, p.downsample_rate, strict=True)
        self.groups = tuple(((width,), (height,), stride) for width, height, stride in fields)
        self.take(definition, p)

    def agree(self, *bottoms):
        for x in bottoms:
            is_map = len(x) == 4 and x[:2] == bottoms[0][:2] and x[1] > 5
            self.check(is_map, "maps of 2 classes or more and 4 offsets are needed, not {}", x)

    def levels(self, bottoms):
        for group, x in zip(self.groups, bottoms, strict=True):
            wide = x.to(torch.promote_types(x.dtype, torch.float32))
            scores, offsets = wide[:, :-4], wide[:, -4:]
            yield self.boxes(group, offsets), (scores[:, 1:].amax(1) - scores[:, 0]).flatten(1)

    def ends(self, low, centre, size):
        return low + size
