"""YOLO: the found boxes of version 3, one map or two."""

import math

import torch
import torch.nn.functional as F

from . import KnownLayer
from ._boxes import suppressed
from ._yolo import Anchors, overlap_by_centre


class Yolov3DetectionOutput(KnownLayer):
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
        found = [self.found(anchors, x) for anchors, x in zip(self.maps, maps, strict=True)]
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

    def found(self, anchors, x):
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
        KnownLayer.__init__(self, definition)
        p = definition.message.yolo_detection_output_param
        self.check(p.HasField("num_classes"), "must specify num_classes")
        self.check(p.coords == 4, f"coords must be 4, not {p.coords}")
        self.classes, self.threshold = p.num_classes, p.nms_threshold
        # A box with the least score is found, too.
        self.least = math.nextafter(p.confidence_threshold, -math.inf)
        self.maps = (Anchors(self, p.biases, range(p.num_box), 1, is_square=True),) * definition.bottoms

    def chances(self, classes):
        return classes.softmax(-1)
