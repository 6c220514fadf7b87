"""YOLO, versions 2 and 3: maps of boxes by anchors, their losses, and the found boxes.

Reorg: positions as channels.
Yolov3: the loss of version 3.
RegionLoss: the loss of version 2.
Yolov3DetectionOutput and YoloDetectionOutput: the found boxes of version 3, one map or two.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from . import ForkLayer, Placement
from ._boxes import suppressed

# ------------------------------------------------------------------------------------------------ Anchors


def overlap_by_centre(first: Tensor, second: Tensor) -> Tensor:
    """Intersection over union of boxes (x, y, width, height), x and y the centre: [..., a, b]."""
    a, b = first[..., :, None, :], second[..., None, :, :]
    high = torch.minimum(a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2)
    low = torch.maximum(a[..., :2] - a[..., 2:] / 2, b[..., :2] - b[..., 2:] / 2)
    sides = high - low
    common = torch.where((sides < 0).any(-1), 0, sides.prod(-1))
    return common / (a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - common)


class Anchors:
    """The anchors of one map: `mask` selects the map's own sizes. A cell is `scale` units long."""

    def __init__(self, layer, biases, mask, scale: int, is_square: bool = False):
        sizes = list(zip(biases[::2], biases[1::2], strict=False))
        layer.check(all(i < len(sizes) for i in mask), f"mask {list(mask)} of {len(sizes)} biases")
        self.layer, self.scale, self.mask, self.is_square = layer.check, scale, tuple(mask), is_square
        self.every = tuple(sizes)
        self.chosen = tuple(sizes[i] for i in mask)

    def check(self, shape, classes: int) -> None:
        channels = len(self.chosen) * (5 + classes)
        is_map = len(shape) == 4 and shape[1] == channels
        self.layer(
            not (is_map and self.is_square) or shape[2] == shape[3],
            "a square map is needed, not {}",
            shape,
        )
        self.layer(is_map, "a map of {} channels is needed, not {}", channels, shape)

    def cells(self, x: Tensor, classes: int) -> Tensor:
        """[N, h, w, anchors, 5 + classes]"""
        return x.unflatten(1, (len(self.chosen), 5 + classes)).permute(0, 3, 4, 1, 2)

    def boxes(self, cells: Tensor) -> Tensor:
        """The boxes [N, h, w, anchors, 4] as centre and size, in fractions of the image."""
        down, across = cells.shape[1:3]
        where: Placement = {"device": cells.device, "dtype": cells.dtype}
        y, x = torch.arange(down, **where)[:, None, None], torch.arange(across, **where)[:, None]
        size = cells.new_tensor((across, down))
        corner = torch.stack(torch.broadcast_tensors(x, y), -1)
        centre = (corner + cells[..., :2].sigmoid()) / size
        return torch.cat(
            (centre, cells[..., 2:4].exp() * cells.new_tensor(self.chosen) / (size * self.scale)), -1
        )


# -------------------------------------------------------------------------------------------------- Reorg


class Reorg(ForkLayer):
    """YOLO's darknet reorg: [N, C, H, W] to [N, C * stride², H / stride, W / stride], or back with `reverse`.

    Darknet reads the memory as a map of C / stride² channels that is stride times as high and wide, and moves each
    position of its stride x stride cells to its own channel.
    """

    types = ("Reorg",)
    source = "eric612/MobileNet-YOLO"

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.reorg_param
        self.check(p.stride > 0, "stride is needed")
        self.stride, self.reverse = p.stride, p.reverse

    def setup(self, x):
        self.check(len(x) == 4, f"a bottom [num, channels, height, width] is needed, not {list(x)}")
        self.check(x[1] % self.stride**2 == 0, f"{x[1]} channels are not a multiple of stride²")
        divides = self.reverse or not (x[2] % self.stride or x[3] % self.stride)
        self.check(divides, f"stride {self.stride} does not divide {list(x[2:])}")

    def forward(self, x):
        number, channels, height, width = x.shape
        s, few = self.stride, channels // self.stride**2
        if self.reverse:
            x = x.reshape(number, s, s, few, height, width).permute(0, 3, 4, 1, 5, 2)
            return x.reshape(number, few, height * s, width * s)
        x = x.reshape(number, few, height, s, width, s).permute(0, 3, 5, 1, 2, 4)
        return x.reshape(number, channels * s * s, height // s, width // s)


# ------------------------------------------------------------------------------------------------- Yolov3


class Yolov3(ForkLayer):
    """YOLO v3's loss for one map: the sum of the squared errors of its cells, for each item.

    Bottoms: the map [N, num * (5 + num_class), h, w] and boxes [N, 300, 5], rows (class, x, y, width, height) in
    fractions of the image. The boxes of an item end before the first row with width 0, and those that an anchor may
    overlap before the first with x 0, too. A box whose centre is outside of the image is left out: the source counts it
    in another cell, or writes outside of its memory. A box is assigned to the cell of its centre, with the anchor
    most similar in size, and with the map's anchors whose overlap is more than iou_thresh. The errors of an assigned
    anchor are its distance to the box, times coord_scale * (2 - area); 1 minus the objectness; and the difference of
    the class probabilities to 1 for the box's class and to 0 for others (nearer to 0.5 with label_smooth_eps). If
    several boxes have the same cell and anchor, the last one counts, with the classes of all. For other anchors the
    error is their objectness, unless they overlap a box by more than thresh.

    The gradient is the error of each value, with use_logic_gradient times the sigmoid's slope. It is not the loss's
    own.
    """

    types = ("Yolov3",)
    source = "eric612/MobileNet-YOLO"
    bottoms = (2, 2)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.yolov3_param
        self.check(p.iou_loss == p.MSE, "iou_loss: only MSE is known here: port your fork's")
        self.check(len(p.mask) >= p.num, f"{len(p.mask)} mask for {p.num} anchors")
        self.anchors = Anchors(self, p.biases, p.mask[: p.num], p.anchors_scale)
        self.classes, self.coord_scale = p.num_class, p.coord_scale
        self.near, self.alike = p.thresh, p.iou_thresh
        self.class_scale, self.object_scale = p.class_scale, p.object_scale if p.use_logic_gradient else 1.0
        self.check(not p.use_focal_loss, "use_focal_loss is not known here: port your fork's")
        self.has_slope, self.smooth = p.use_logic_gradient, p.label_smooth_eps

    def agree(self, x, boxes):
        self.anchors.check(x, self.classes)
        fits = math.prod(boxes) == x[0] * 1500
        self.check(fits, "300 boxes of 5 values for each item are needed, not {}", boxes)

    def top_shapes(self, x, boxes):
        return [()]

    def forward(self, x, boxes):
        with torch.no_grad():
            wide = torch.promote_types(x.dtype, torch.float32)
            cells, boxes = (
                self.anchors.cells(x.to(wide), self.classes),
                boxes.to(wide).reshape(len(x), 300, 5),
            )
            lacks = self.lacks(cells, boxes)
            lacks = lacks.permute(0, 3, 4, 1, 2).reshape(x.shape)
            loss, slope = lacks.square().sum() / len(x), lacks
            if self.has_slope:
                chances = cells.sigmoid().permute(0, 3, 4, 1, 2)
                slopes = chances * (1 - chances)
                slopes[:, :, 2:4] = 1
                slope = lacks * slopes.reshape(x.shape)
        # The value is the loss, the gradient is `slope`.
        return loss + ((x - x.detach()) * (slope / len(x)).to(x.dtype)).sum()

    def lacks(self, cells, boxes):
        """The error of each value of the cells [N, h, w, anchors, 5 + classes]."""
        values = cells.sigmoid()
        values[..., 2:4] = cells[..., 2:4]
        last, classes = self.answers(boxes, values)
        box = _taken(boxes, last)
        scale = (self.coord_scale * (2 - box[..., 3] * box[..., 4]))[..., None]
        answer = (
            scale * (values[..., :4] - self.targets(box)),
            self.object_scale * (values[..., 4:5] - 1),
            self.class_scale * (values[..., 5:] - classes * (1 - self.smooth) - 0.5 * self.smooth),
        )
        other = torch.zeros_like(values)
        other[..., 4] = torch.where(self.is_near(cells, boxes), 0, values[..., 4])
        return torch.where((last >= 0)[..., None], torch.cat(answer, -1), other)

    def is_near(self, cells, boxes):
        """Which anchors overlap a box by more than thresh: [N, h, w, anchors]."""
        overlaps = overlap_by_centre(self.anchors.boxes(cells).flatten(1, 3), boxes[..., 1:])
        most = torch.where(_before(boxes[..., 1])[:, None], overlaps.nan_to_num(0), 0).amax(2)
        return (most > self.near).reshape(cells.shape[:4])

    def targets(self, box):
        """Encode these boxes, each in its cell."""
        down, across = box.shape[1:3]
        size = box.new_tensor((across, down))
        y = torch.arange(down, device=box.device)[:, None, None]
        corner = torch.stack(torch.broadcast_tensors(torch.arange(across, device=box.device)[:, None], y), -1)
        own = box.new_tensor(self.anchors.chosen)
        return torch.cat(
            (box[..., 1:3] * size - corner, (box[..., 3:] * size * self.anchors.scale / own).log()), -1
        )

    def answers(self, boxes, values):
        """The last box assigned to each anchor of each cell, or -1, and the classes of all its boxes."""
        down, across, count = values.shape[1:4]
        column, row = (boxes[..., 1:3] * boxes.new_tensor((across, down))).long().unbind(-1)
        inside = (column >= 0) & (column < across) & (row >= 0) & (row < down)
        counts, label = inside & _before(boxes[..., 3]), boxes[..., :1].long()
        wrong = counts[..., None] & ((label < 0) | (label >= self.classes))
        self.check_rows(wrong, f"the class of a box is not one of {self.classes}")
        fits = self.fitting(boxes, values.shape) & counts[..., None]  # [N, 300, anchors]
        places = down * across * count
        anchor = torch.arange(count, device=boxes.device)
        place = ((row * across + column)[..., None] * count + anchor).where(fits, places)
        number = torch.arange(boxes.shape[1], device=boxes.device)[:, None].expand(place.shape).flatten(1)
        last = number.new_full((len(boxes), places + 1), -1)
        last = last.scatter_reduce(1, place.flatten(1), number, "amax")[:, :-1]
        at = (place * self.classes + label.clamp(0, self.classes - 1)).flatten(1)
        classes = values.new_zeros(len(boxes), (places + 1) * self.classes).scatter(1, at, 1.0)
        classes = classes[:, : places * self.classes]
        return last.reshape(values.shape[:4]), classes.reshape(*values.shape[:4], self.classes)

    def fitting(self, boxes, shape):
        """The map's anchors to which each box is assigned: [N, 300, anchors]."""
        scale = boxes.new_tensor((shape[2], shape[1])) * self.anchors.scale
        sizes = boxes.new_tensor(self.anchors.every) / scale
        alike = self.alike_by(boxes, sizes)
        most, best = alike.max(2, keepdim=True)
        best = torch.where(most > 0, best, -1)  # a box without a height is like none
        mask = torch.tensor(self.anchors.mask, device=boxes.device)
        is_best = mask == best
        # The fork uses the best anchor's number in the mask as a number among all anchors.
        own = torch.where(is_best.any(2, keepdim=True), is_best.long().argmax(2, keepdim=True), best)
        return is_best | ((alike[..., mask] > self.alike) & (mask != own) & (self.alike < 1))

    def alike_by(self, boxes, sizes):
        """The overlap of each box with boxes of these sizes around its centre."""
        return overlap_by_centre(_centred(boxes[..., 3:]), _centred(sizes).expand(len(boxes), -1, -1))


def _before(values):
    """Which rows are boxes: those before the first with 0."""
    return (values != 0).long().cumprod(1).bool()


def _taken(boxes, numbers):
    """The boxes with these numbers [N, h, w, anchors]; the first box for -1."""
    index = numbers.clamp(min=0).flatten(1)[..., None].expand(-1, -1, 5)
    return boxes.gather(1, index).reshape(*numbers.shape, 5)


def _centred(sizes):
    return torch.cat((torch.zeros_like(sizes), sizes), -1)


# --------------------------------------------------------------------------------------------- RegionLoss


class RegionLoss(Yolov3):
    """YOLO v2's loss: like Yolov3, with one anchor for each box, and a softmax for the classes' probabilities.

    Biases are in cells. With rescore the target of the objectness is the overlap with the box, otherwise 1, and
    distances are also multiplied by 2 - area. Errors of sigmoids are multiplied by their slope. If several boxes have
    the same cell and anchor, the last one counts.
    """

    types = ("RegionLoss",)

    def __init__(self, definition):
        super(Yolov3, self).__init__(definition)
        p = definition.message.region_loss_param
        self.check(p.coords == 4, f"coords must be 4, not {p.coords}")
        self.check(p.bias_match != 0, "bias_match 0 is not known here: port your fork's")
        self.check(not p.softmax_tree, "softmax_tree is not known here: port your fork's")
        enough = len(p.biases) >= max(10, 2 * p.num)
        self.check(enough, f"{max(10, 2 * p.num)} biases are needed, not {len(p.biases)}")
        self.anchors = Anchors(self, p.biases[: 2 * p.num], range(p.num), 1, is_square=True)
        self.classes, self.near, self.coord_scale = p.num_class, p.thresh, p.coord_scale
        self.class_scale, self.object_scale, self.other_scale = (
            p.class_scale,
            p.object_scale,
            p.noobject_scale,
        )
        self.rescore, self.has_slope = p.rescore != 0, False

    def lacks(self, cells, boxes):
        places, size, chance = cells[..., :2].sigmoid(), cells[..., 2:4], cells[..., 4:5].sigmoid()
        slope = chance * (1 - chance)
        last, _ = self.answers(boxes, cells)
        box = _taken(boxes, last)
        wanted = 1.0
        if self.rescore:
            mine, given = self.anchors.boxes(cells)[..., None, :], box[..., None, 1:]
            wanted = overlap_by_centre(mine, given)[..., 0]
        scale = self.coord_scale * (1 if self.rescore else (2 - box[..., 3] * box[..., 4])[..., None])
        targets = self.targets(box)
        is_class = F.one_hot(box[..., 0].long(), self.classes)
        answer = (
            scale * (places - targets[..., :2]) * places * (1 - places),
            scale * (size - targets[..., 2:]),
            self.object_scale * (chance - wanted) * slope,
            self.class_scale * (cells[..., 5:].softmax(-1) - is_class),
        )
        other = torch.zeros_like(cells)
        near = self.is_near(cells, boxes)[..., None]
        other[..., 4:5] = torch.where(near, 0, self.other_scale * chance * slope)
        return torch.where((last >= 0)[..., None], torch.cat(answer, -1), other)

    def fitting(self, boxes, shape):
        sizes = boxes.new_tensor(self.anchors.every) / boxes.new_tensor((shape[2], shape[1]))
        return F.one_hot(self.alike_by(boxes, sizes).argmax(2), len(self.anchors.chosen)).bool()


# ---------------------------------------------------------- Yolov3DetectionOutput and YoloDetectionOutput


class Yolov3DetectionOutput(ForkLayer):
    """The found boxes: [1, 1, boxes, 7], rows (item, label + 1, score, left, top, right, bottom), best first.

    Bottoms: a map of each size, [N, num_box * (5 + num_classes), h, w]: for each anchor the box, the objectness, and
        the
    probability of each class. A box is found if the product of both is above confidence_threshold, and if it overlaps
    no better box, of any class, by nms_threshold or more. If nothing is found, each item has a row of -1. No gradient.

    The classes of an anchor share one box, so the best class suppresses the others.
    """

    types = ("Yolov3DetectionOutput",)
    source = "eric612/MobileNet-YOLO"
    bottoms = (1, None)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.yolov3_detection_output_param
        maps = definition.bottoms
        self.check(p.HasField("num_classes"), "must specify num_classes")
        self.check(not p.gaussian_box, "gaussian_box is not known here: port your fork's")
        self.check(maps == p.mask_group_num, f"{p.mask_group_num} mask_group_num for {maps} bottoms")
        self.check(len(p.anchors_scale) >= maps, f"{len(p.anchors_scale)} anchors_scale for {maps} bottoms")
        self.classes, self.least, self.threshold = (
            p.num_classes,
            p.confidence_threshold,
            p.nms_threshold,
        )
        each = len(p.mask) // maps
        self.check(each >= p.num_box, f"{len(p.mask)} mask for {maps} bottoms of {p.num_box} boxes")
        self.maps = tuple(
            Anchors(self, p.biases, p.mask[i * each : i * each + p.num_box], p.anchors_scale[i])
            for i in range(maps)
        )

    def agree(self, *maps):
        for anchors, shape in zip(self.maps, maps, strict=True):
            anchors.check(shape, self.classes)
            self.check(shape[:1] == maps[0][:1], "maps of {} and {}", maps[0], shape)

    def top_shapes(self, *maps):
        return [(1, 1, 1, 7)]  # as the layer's Reshape says, before it knows how many boxes there are

    @torch.no_grad()
    def forward(self, *maps):
        found = [self.decoded(anchors, x) for anchors, x in zip(self.maps, maps, strict=True)]
        boxes, scores, labels = (torch.cat(parts, 1) for parts in zip(*found, strict=True))
        best, order = scores.sort(dim=1, descending=True, stable=True)
        if not torch.compiler.is_compiling():
            count = int((best > self.least).sum(1).max())
            best, order = best[:, :count], order[:, :count]
        boxes, labels = boxes.gather(1, order[..., None].expand(*order.shape, 4)), labels.gather(1, order)

        def near(first, second):
            return (overlap_by_centre(first, second) >= self.threshold).to(first.dtype)

        kept = suppressed(boxes, best > self.least, 0.5, overlap=near)
        return self.rows(kept, best, labels, boxes)

    def decoded(self, anchors, x):
        """The boxes of a map as centre and size [N, boxes, 4], their best classes' scores, and these classes."""
        cells = anchors.cells(x.to(torch.promote_types(x.dtype, torch.float32)), self.classes)
        boxes, chance = anchors.boxes(cells), cells[..., 4].sigmoid()
        score, label = (self.chances(cells[..., 5:]) * chance[..., None]).max(-1)
        return boxes.flatten(1, 3), score.flatten(1), label.flatten(1)

    def chances(self, classes):
        """How likely an object is of each class."""
        return classes.sigmoid()

    def rows(self, kept, scores, labels, boxes):
        """The top: a row of each box that is kept, or rows of nothing."""
        items = torch.arange(kept.shape[0], device=kept.device, dtype=boxes.dtype)
        named = (items[:, None].expand(kept.shape), (labels + 1).to(boxes.dtype), scores)
        low, high = boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2
        table = torch.cat((*(column[..., None] for column in named), low, high), 2)
        nothing = F.pad(items[:, None], (0, 6), value=-1.0)
        is_nothing = (~kept.any()).expand(len(items))
        table, is_row = torch.cat((table.reshape(-1, 7), nothing)), torch.cat((kept.reshape(-1), is_nothing))
        return table[is_row][None, None]


class YoloDetectionOutput(Yolov3DetectionOutput):
    """The same of one map or two, with all anchors, in cells, in each of them. The classes' chances are a softmax."""

    types = ("YoloDetectionOutput",)
    bottoms = (1, 2)

    def __init__(self, definition):
        ForkLayer.__init__(self, definition)
        p = definition.message.yolo_detection_output_param
        self.check(p.HasField("num_classes"), "must specify num_classes")
        self.check(p.coords == 4, f"coords must be 4, not {p.coords}")
        self.classes, self.threshold = p.num_classes, p.nms_threshold
        # A box with the least score is found, too.
        self.least = math.nextafter(p.confidence_threshold, -math.inf)
        self.maps = (Anchors(self, p.biases, range(p.num_box), 1, is_square=True),) * definition.bottoms

    def chances(self, classes):
        return classes.softmax(-1)
