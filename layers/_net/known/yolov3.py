import torch

from . import KnownLayer
from ._yolo import Anchors, overlap_by_centre


class Yolov3(KnownLayer):
    """YOLO's loss for one map: the squares of what its cells lack, summed, for each item.

    Bottoms: the map [N, num * (5 + num_class), h, w] and boxes [N, 300, 5], rows (class, x, y, width, height) in parts
    of the image, up to the first row with x 0. The cell with a box's centre answers for it with the anchor most like it
    in size, and with those of the map's anchors that are like it by more than iou_thresh. An answer lacks its distance
    to the box, times coord_scale * (2 - area), 1 less the chance of an object, and what the classes' chances lack to 1
    for its box's class and to 0 for others; with label_smooth_eps, both are nearer to 0.5. Of boxes with one cell and
    anchor the last one counts, and the classes of all. Other anchors lack their chance of an object, unless they
    overlap a box by more than thresh.

    The gradient is what each value lacks, and with use_logic_gradient times the sigmoid's slope. It is not the loss's.
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

    def top_shapes(self, x, boxes):
        self.anchors.check(x, self.classes)
        count = torch.Size(boxes).numel()
        self.check(count == x[0] * 1500, f"300 boxes of 5 values for each item are needed, not {list(boxes)}")
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
        """What each value of the cells [N, h, w, anchors, 5 + classes] lacks."""
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
        """The values that mean these boxes, each in its cell."""
        down, across = box.shape[1:3]
        size = box.new_tensor((across, down))
        y = torch.arange(down, device=box.device)[:, None, None]
        corner = torch.stack(torch.broadcast_tensors(torch.arange(across, device=box.device)[:, None], y), -1)
        own = box.new_tensor(self.anchors.own)
        return torch.cat(
            (box[..., 1:3] * size - corner, (box[..., 3:] * size * self.anchors.scale / own).log()), -1
        )

    def answers(self, boxes, valid, values):
        """For each anchor of each cell: the last box that it answers for, or -1, and the classes of all of them."""
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
        """Which of the map's anchors answer for each box: [N, 300, anchors]."""
        scale = boxes.new_tensor((shape[2], shape[1])) * self.anchors.scale
        sizes = boxes.new_tensor(self.anchors.every) / scale
        alike = self.alike_by(boxes, sizes)
        best = alike.argmax(2, keepdim=True)
        mask = torch.tensor(self.anchors.mask, device=boxes.device)
        is_best = mask == best
        # The fork takes the best anchor's number in the mask for one among all anchors.
        own = torch.where(is_best.any(2, keepdim=True), is_best.long().argmax(2, keepdim=True), best)
        return is_best | ((alike[..., mask] > self.alike) & (mask != own) & (self.alike < 1))

    def alike_by(self, boxes, sizes):
        """How each box overlaps boxes of these sizes that lie on its centre."""
        return overlap_by_centre(_centred(boxes[..., 3:]), _centred(sizes).expand(len(boxes), -1, -1))


def _valid(boxes):
    """Which rows are boxes: those before the first row with x 0."""
    return (boxes[..., 1] != 0).long().cumprod(1).bool()


def _taken(boxes, numbers):
    """The boxes of these numbers [N, h, w, anchors], the first one in the place of none."""
    index = numbers.clamp(min=0).flatten(1)[..., None].expand(-1, -1, 5)
    return boxes.gather(1, index).reshape(*numbers.shape, 5)


def _centred(sizes):
    return torch.cat((torch.zeros_like(sizes), sizes), -1)
