"""YOLO: Yolov3, the loss of version 3; what region_loss shares with it."""

import math

import torch

from . import KnownLayer
from ._yolo import Anchors, overlap_by_centre


class Yolov3(KnownLayer):
    """YOLO v3's loss for one map: the sum of the squared errors of its cells, for each item.

    Bottoms: the map [N, num * (5 + num_class), h, w] and boxes [N, 300, 5], rows (class, x, y, width, height) in
    fractions of the image, up to the first row with x 0. A box is assigned to the cell of its centre, with the anchor
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
        valid = _valid(boxes)
        last, classes = self.answers(boxes, valid, values)
        box = _taken(boxes, last)
        scale = (self.coord_scale * (2 - box[..., 3] * box[..., 4]))[..., None]
        answer = (
            scale * (values[..., :4] - self.targets(box)),
            self.object_scale * (values[..., 4:5] - 1),
            self.class_scale * (values[..., 5:] - classes * (1 - self.smooth) - 0.5 * self.smooth),
        )
        other = torch.zeros_like(values)
        other[..., 4] = torch.where(self.is_near(cells, boxes, valid), 0, values[..., 4])
        return torch.where((last >= 0)[..., None], torch.cat(answer, -1), other)

    def is_near(self, cells, boxes, valid):
        """Which anchors overlap a box by more than thresh: [N, h, w, anchors]."""
        overlaps = overlap_by_centre(self.anchors.boxes(cells).flatten(1, 3), boxes[..., 1:])
        most = torch.where(valid[:, None], overlaps.nan_to_num(0), 0).amax(2)
        return (most > self.near).reshape(cells.shape[:4])

    def targets(self, box):
        """Encode these boxes, each in its cell."""
        down, across = box.shape[1:3]
        size = box.new_tensor((across, down))
        y = torch.arange(down, device=box.device)[:, None, None]
        corner = torch.stack(torch.broadcast_tensors(torch.arange(across, device=box.device)[:, None], y), -1)
        own = box.new_tensor(self.anchors.own)
        return torch.cat(
            (box[..., 1:3] * size - corner, (box[..., 3:] * size * self.anchors.scale / own).log()), -1
        )

    def answers(self, boxes, valid, values):
        """The last box assigned to each anchor of each cell, or -1, and the classes of all its boxes."""
        down, across, count = values.shape[1:4]
        column, row = (boxes[..., 1:3] * boxes.new_tensor((across, down))).long().unbind(-1)
        inside = (column >= 0) & (column < across) & (row >= 0) & (row < down)
        fits = self.fitting(boxes, values.shape) & (valid & inside)[..., None]  # [N, 300, anchors]
        places = down * across * count
        anchor = torch.arange(count, device=boxes.device)
        place = ((row * across + column)[..., None] * count + anchor).where(fits, places)
        number = torch.arange(boxes.shape[1], device=boxes.device)[:, None].expand(place.shape).flatten(1)
        last = number.new_full((len(boxes), places + 1), -1)
        last = last.scatter_reduce(1, place.flatten(1), number, "amax")[:, :-1]
        at = (place * self.classes + boxes[..., :1].long()).flatten(1)
        classes = values.new_zeros(len(boxes), (places + 1) * self.classes).scatter(1, at, 1.0)
        classes = classes[:, : places * self.classes]
        return last.reshape(values.shape[:4]), classes.reshape(*values.shape[:4], self.classes)

    def fitting(self, boxes, shape):
        """The map's anchors to which each box is assigned: [N, 300, anchors]."""
        scale = boxes.new_tensor((shape[2], shape[1])) * self.anchors.scale
        sizes = boxes.new_tensor(self.anchors.every) / scale
        alike = self.alike_by(boxes, sizes)
        best = alike.argmax(2, keepdim=True)
        mask = torch.tensor(self.anchors.mask, device=boxes.device)
        is_best = mask == best
        # The fork uses the best anchor's number in the mask as a number among all anchors.
        own = torch.where(is_best.any(2, keepdim=True), is_best.long().argmax(2, keepdim=True), best)
        return is_best | ((alike[..., mask] > self.alike) & (mask != own) & (self.alike < 1))

    def alike_by(self, boxes, sizes):
        """The overlap of each box with boxes of these sizes around its centre."""
        return overlap_by_centre(_centred(boxes[..., 3:]), _centred(sizes).expand(len(boxes), -1, -1))


def _valid(boxes):
    """Which rows are boxes: those before the first row with x 0."""
    return (boxes[..., 1] != 0).long().cumprod(1).bool()


def _taken(boxes, numbers):
    """The boxes with these numbers [N, h, w, anchors]; the first box for -1."""
    index = numbers.clamp(min=0).flatten(1)[..., None].expand(-1, -1, 5)
    return boxes.gather(1, index).reshape(*numbers.shape, 5)


def _centred(sizes):
    return torch.cat((torch.zeros_like(sizes), sizes), -1)
