"""YOLO: RegionLoss, the loss of version 2."""

import torch
import torch.nn.functional as F

from ._yolo import Anchors, overlap_by_centre
from .yolov3 import Yolov3, _taken, _valid


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
        valid, slope = _valid(boxes), chance * (1 - chance)
        last, _ = self.answers(boxes, valid, cells)
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
        near = self.is_near(cells, boxes, valid)[..., None]
        other[..., 4:5] = torch.where(near, 0, self.other_scale * chance * slope)
        return torch.where((last >= 0)[..., None], torch.cat(answer, -1), other)

    def fitting(self, boxes, shape):
        sizes = boxes.new_tensor(self.anchors.every) / boxes.new_tensor((shape[2], shape[1]))
        return F.one_hot(self.alike_by(boxes, sizes).argmax(2), len(self.anchors.own)).bool()
