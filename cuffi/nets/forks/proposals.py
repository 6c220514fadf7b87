"""Proposals of MS-CNN and Cascade R-CNN: regions from maps, and regions for training.

BoxGroupOutput and BoxOutput: proposals of several maps.
ProposalTarget and BboxAccuracy: regions for training with their targets, and their accuracy.
"""

import math

import torch

from . import ForkLayer, Placement
from ._boxes import overlap, overlap_in_pixels, suppressed

# --------------------------------------------------------------------------- BoxGroupOutput and BoxOutput


class BoxGroupOutput(ForkLayer):
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
        kind = torch.promote_types(offsets.dtype, torch.float32)
        wide: Placement = {"dtype": kind, "device": offsets.device}
        count, field = len(widths), torch.tensor((widths, heights), **wide).t()[:, :, None, None]
        given = offsets.to(kind).reshape(-1, count, 4, rows, columns)
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
        ForkLayer.__init__(self, definition)
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


# ------------------------------------------------------------------------ ProposalTarget and BboxAccuracy


class ProposalTarget(ForkLayer):
    """Regions for training, and their targets.

    Bottoms: regions (item, left, top, right, bottom) and boxes (item, left, top, right, bottom, label, ignored, ...).
    Tops: regions, labels, offsets of the boxes [n, 4 * classes], or [n, 8], their two weights, the boxes (label, left,
    top, right, bottom, overlap), and weights of the regions. A region is an object if it overlaps its box by fg_thr,
    and background from bg_thr_lw to bg_thr_hg. If there are more of either than batch_size and fg_fraction allow, some
    are drawn at random. If there are fewer, others follow. No gradient.

    Boxes of 7 values are MS-CNN's: then random regions fill the batch. In Cascade R-CNN a box has 8 values; item -1
    means no box, and one random region is used if there is none.
    """

    types = ("ProposalTarget",)
    source = "zhaoweicai/mscnn and zhaoweicai/cascade-rcnn"
    bottoms = (2, 2)
    tops = (6, 7)

    def __init__(self, definition):
        super().__init__(definition)
        p, norm = definition.message.proposal_target_param, definition.message.bbox_reg_param
        self.check(
            p.batch_size > 0 or p.batch_size == -1,
            f"batch_size must be -1 or more than 0, not {p.batch_size}",
        )
        self.check(p.fg_thr >= p.bg_thr_hg, "fg_thr must not be less than bg_thr_hg")
        both = norm.bbox_mean and norm.bbox_std
        self.check(
            not both or len(norm.bbox_mean) == len(norm.bbox_std) == 4, "4 means and deviations are needed"
        )
        self.mean, self.std = (
            (tuple(norm.bbox_mean), tuple(norm.bbox_std)) if both else ((0.0,) * 4, (1.0,) * 4)
        )
        self.cls_aware, self.slots = norm.cls_aware, p.cls_num if norm.cls_aware else 2
        self.batch, self.images, self.image = p.batch_size, p.num_img_per_batch, (p.img_width, p.img_height)
        self.share, self.object, self.background = p.fg_fraction, p.fg_thr, (p.bg_thr_lw, p.bg_thr_hg)
        self.learns, self.iou_weighted = (p.bbox_thr_lw, p.bbox_thr_hg), p.iou_weighted
        self.takes_others, self.takes_boxes = p.pickup_discard, p.append_gtbox
        self.fills = False

    def agree(self, regions, boxes):
        self.check(regions[1:2] == (5,), "regions of 5 values are needed, not {}", regions)
        self.check(boxes[1:2] in ((7,), (8,)), "boxes of 7 or 8 values are needed, not {}", boxes)

    def setup(self, regions, boxes):
        self.fills = boxes[1] == 7

    def top_shapes(self, regions, boxes):
        rows = self.batch if self.batch > 0 else max(regions[0], 1)
        widths = (5, 1, *(4 * self.slots,) * 3, 6, 1)
        return [(rows, width, 1, 1) for width in widths][: self.top_count]

    @torch.no_grad()
    def forward(self, regions, boxes):
        wide = torch.promote_types(regions.dtype, torch.float32)
        regions, boxes = (bottom.to(wide).flatten(1) for bottom in (regions, boxes))
        boxes = boxes if self.fills else boxes[boxes[:, 0] != -1]
        regions = torch.cat((regions, boxes[:, :5])) if self.takes_boxes or self.fills else regions
        overlaps, matched = self.matched(regions, boxes)
        is_object = overlaps >= self.object
        usable = torch.cat((boxes[:, 6] == 0, boxes.new_ones(1, dtype=torch.bool)))[matched]
        chosen, count = self.chosen(overlaps, is_object, usable)
        drawn = self.drawn(self.lacking(len(chosen)), boxes)
        rows = torch.cat((regions[chosen], drawn))
        overlaps = torch.cat((overlaps[chosen], drawn.new_zeros(len(drawn))))
        matched = torch.cat((matched[chosen], matched.new_full((len(drawn),), len(boxes))))
        is_object = torch.arange(len(rows), device=rows.device) < count
        boxes = torch.cat((boxes, boxes.new_zeros(1, boxes.shape[1])))[matched]
        self.check_rows(regions[:, 0] >= self.images, "a region's item is not below num_img_per_batch")
        self.check_rows(is_object & (boxes[:, 5].trunc() <= 0), "the label of an object's box is not above 0")
        if self.cls_aware:
            wrong = is_object & (boxes[:, 5].trunc() >= self.slots)
            self.check_rows(wrong, "the label of an object's box is not below cls_num")
        tops = self.tops_of(rows, boxes, overlaps, is_object)
        return tuple(top.flatten(1)[..., None, None] for top in tops)[: self.top_count]

    def matched(self, regions, boxes):
        """The overlap of each region with its box, and the box's number; the number of boxes means none."""
        none = regions.new_zeros(len(regions), 1)
        overlaps = torch.where(
            regions[:, None, 0] == boxes[:, 0], overlap_of_rows(regions, boxes, self.fills), -torch.inf
        )
        best, matched = torch.cat((overlaps, torch.full_like(none, -1.0)), 1).max(1)
        # The fork compares them as float.
        return best.clamp(min=0).float().to(best.dtype), matched

    def chosen(self, overlaps, is_object, usable):
        """The numbers of the regions, objects first, and how many objects there are."""
        low, high = self.background
        is_background = ~is_object & (overlaps >= low) & (overlaps < high)
        objects = (is_object & usable).nonzero()[:, 0]
        backgrounds, others = is_background.nonzero()[:, 0], (~is_object & ~is_background).nonzero()[:, 0]
        most, total = len(objects), len(objects) + len(backgrounds)
        if self.batch > 0:
            most, total = int(self.share * self.batch + 0.5), self.batch
        objects = _some(objects, most)
        rest = total - len(objects)
        if len(backgrounds) > rest:
            backgrounds = _some(backgrounds, rest)
        elif self.takes_others or self.fills:
            backgrounds = torch.cat((backgrounds, others[: rest - len(backgrounds)]))
        return torch.cat((objects, backgrounds)), len(objects)

    def lacking(self, found: int) -> int:
        """The number of random regions to add."""
        if self.fills and self.batch > 0:
            return self.batch - found
        return int(found == 0)

    def drawn(self, count: int, boxes):
        """Random regions that are not objects."""
        found, fits = boxes.new_zeros(0, 5), min(self.image) > 32
        self.check(fits or not count, "img_width and img_height must be more than 32, to draw regions")
        while len(found) < count:
            item = torch.randint(self.images, (2 * count, 1), device=boxes.device)
            size = torch.tensor(self.image, device=boxes.device)
            chance = torch.rand(2, 2 * count, 2, device=boxes.device)
            low = (chance[0] * (size - 32)).long()
            own = (chance[1] * (size - low)).long().clamp(min=32)
            rows = torch.cat((item, low, low + own - 1), 1).to(boxes.dtype)
            overlaps, _ = self.matched(rows, boxes)
            found = torch.cat((found, rows[overlaps < self.object]))
        return found[:count]

    def tops_of(self, rows, boxes, overlaps, is_object):
        labels = torch.where(is_object, boxes[:, 5].trunc(), 0)
        size, own = rows[:, 3:5] - rows[:, 1:3] + 1, boxes[:, 3:5] - boxes[:, 1:3] + 1
        middle, own_middle = rows[:, 1:3] + size / 2, boxes[:, 1:3] + own / 2
        offsets = torch.cat(((own_middle - middle) / size, (own / size).log()), 1)
        offsets = (offsets - offsets.new_tensor(self.mean)) / offsets.new_tensor(self.std)
        slot = labels.long().clamp(max=self.slots - 1)
        is_slot = (torch.arange(self.slots, device=rows.device) == slot[:, None]) & is_object[:, None]
        targets = torch.where(is_slot[..., None], offsets[:, None], 0)
        learns = (overlaps >= self.learns[0]) & (overlaps <= self.learns[1])
        weights = (is_slot & learns[:, None])[..., None].expand_as(targets).to(targets.dtype)
        found = torch.cat((labels[:, None], boxes[:, 1:5], overlaps[:, None]), 1)
        found = torch.where(is_object[:, None], found, 0)
        return (
            rows,
            labels[:, None],
            targets,
            weights,
            weights,
            found,
            self.weights(overlaps, is_object)[:, None],
        )

    def weights(self, overlaps, is_object):
        """The regions' weights: objects have fg_fraction of the total, if there are any."""
        weights = torch.where(is_object, overlaps, 1.0) if self.iou_weighted else torch.ones_like(overlaps)
        objects, others = (torch.where(who, weights, 0).sum() for who in (is_object, ~is_object))
        factors = self.share * len(weights) / objects, (1 - self.share) * len(weights) / others
        return torch.where(objects != 0, weights * torch.where(is_object, *factors), weights)


class BboxAccuracy(ForkLayer):
    """The mean overlap of decoded boxes with their targets; a second top has that of the regions. -1 for none.

    Bottoms: offsets [n, 4 * classes], or [n, 8], regions, and boxes (label, left, top, right, bottom, overlap). Boxes
    that a region overlaps by more than 0.975 are ignored. An overlap thinner than a pixel is 0.
    """

    types = ("BboxAccuracy",)
    source = "zhaoweicai/cascade-rcnn"
    bottoms = (3, 3)
    tops = (1, 2)

    def __init__(self, definition):
        super().__init__(definition)
        norm = definition.message.bbox_reg_param
        both = norm.bbox_mean and norm.bbox_std
        self.check(
            not both or len(norm.bbox_mean) == len(norm.bbox_std) == 4, "4 means and deviations are needed"
        )
        self.mean, self.std = (
            (tuple(norm.bbox_mean), tuple(norm.bbox_std)) if both else ((0.0,) * 4, (1.0,) * 4)
        )
        self.cls_aware = norm.cls_aware

    def agree(self, offsets, regions, boxes):
        rows = offsets[0] == regions[0] == boxes[0] and regions[1:2] == (5,) and boxes[1:2] == (6,)
        fits, said = (
            rows and (self.cls_aware or offsets[1] == 8),
            "rows of 4 * classes (or 8), 5 and 6 values: ",
        )
        self.check(fits, said + "{}, {} and {}", offsets, regions, boxes)

    def top_shapes(self, *bottoms):
        return [(1, 1, 1, 1)] * self.top_count

    @torch.no_grad()
    def forward(self, offsets, regions, boxes):
        wide = torch.promote_types(offsets.dtype, torch.float32)
        offsets, regions, boxes = (bottom.to(wide).flatten(1) for bottom in (offsets, regions, boxes))
        labels = boxes[:, 0].long() if self.cls_aware else boxes[:, 0].long().clamp(max=1)
        near = boxes[:, 5] <= 0.975
        counts, count = (labels > 0) & near, ((boxes[:, 0] > 0) & near).sum()
        slots = offsets.shape[1] // 4 if self.cls_aware else 2
        self.check_rows(counts & (labels >= slots), f"the label of a box is not one of {slots} classes")
        slot = labels.clamp(0, slots - 1)
        own = offsets.unflatten(1, (-1, 4)).gather(1, slot[:, None, None].expand(-1, 1, 4))[:, 0]
        own = own * own.new_tensor(self.std) + own.new_tensor(self.mean)
        size = regions[:, 3:] - regions[:, 1:3] + 1
        length = size * own[:, 2:].exp()
        low = own[:, :2] * size + regions[:, 1:3] + size / 2 - length / 2
        moved = torch.cat((regions[:, :1], low, low + length - 1), 1)
        tops = [self.mean_of(rows, boxes, counts, count) for rows in (moved, regions)][: self.top_count]
        return tuple(tops) if len(tops) > 1 else tops[0]

    def mean_of(self, rows, boxes, counts, count):
        overlaps = overlap_of_rows(rows[:, None], boxes[:, None], False)[:, 0, 0]
        mean = torch.where(counts, overlaps, 0).sum() / count.clamp(min=1)
        return torch.where(count > 0, mean, -1.0).reshape(1, 1, 1, 1)


def overlap_of_rows(first, second, thin: bool):
    """Intersection over union of rows (_, left, top, right, bottom), ends included: [..., a, b].

    thin: an intersection of less than a pixel counts, too.
    """
    a, b = first[..., :, None, 1:5], second[..., None, :, 1:5]
    sides = torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2]) + 1
    sizes = [box[..., 2:] - box[..., :2] + 1 for box in (a, b)]
    valid = (sizes[0] > 0).all(-1) & (sizes[1] > 0).all(-1) & ((sides > 0) if thin else (sides >= 1)).all(-1)
    common = torch.where(valid, sides.prod(-1), 0)
    return torch.where(valid, common / (sizes[0].prod(-1) + sizes[1].prod(-1) - common), 0)


def _some(numbers, count: int):
    """`count` random ones of the numbers; all, in their order, if there are no more."""
    return (
        numbers
        if len(numbers) <= count
        else numbers[torch.randperm(len(numbers), device=numbers.device)[:count]]
    )
