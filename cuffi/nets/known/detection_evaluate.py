"""SSD: DetectionEvaluate, detections compared with boxes, also Cascade R-CNN's."""

import torch

from . import KnownLayer
from ._boxes import overlap, overlap_in_pixels

_NONE = 1 << 31  # the place of no detection: behind all others


class DetectionEvaluate(KnownLayer):
    """Compares detections with boxes: [1, 1, classes + detections, 5], rows (item, label, score, true, false).

    First a row (-1, label, number of boxes, -1, -1) for each class but the background; then one for each detection, by
    item, label and score. A detection is true if it overlaps its nearest box of the label by overlap_threshold, and no
    better detection does. If that box is difficult, it is neither true nor false, unless evaluate_difficult_gt. Boxes
    are compared as fractions of the image, regardless of name_size_file.
    """

    types = ("DetectionEvaluate",)
    source = "weiliu89/caffe, ssd"
    variant = "ssd"
    bottoms = (2, 2)
    overlap = staticmethod(overlap)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.detection_evaluate_param
        self.check(p.HasField("num_classes"), "must provide num_classes")
        self.check(p.overlap_threshold > 0, "overlap_threshold must be more than 0")
        self.labels = tuple(c for c in range(p.num_classes) if c != p.background_label_id)
        self.threshold, self.difficult = p.overlap_threshold, p.evaluate_difficult_gt

    def agree(self, found, boxes):
        self.check(
            found[-1:] == (7,) and boxes[-1:] == (8,), "rows of 7 and 8 are needed: {}, {}", found, boxes
        )

    def top_shapes(self, found, boxes):
        return [(1, 1, len(self.labels) + found[-2], 5)]

    @torch.no_grad()
    def forward(self, found, boxes):
        found, boxes = found.reshape(-1, 7), boxes.reshape(-1, 8)
        boxes = torch.cat((boxes, boxes.new_full((1, 8), -1)))  # of no item, as those are that do not count
        found = found[(found[:, 0] != -1) & (found[:, 1] != -1)]
        same = (found[:, None, 0] == boxes[:, 0]) & (found[:, None, 1] == boxes[:, 1])
        order = torch.arange(found.shape[0], device=found.device)
        score = torch.where(same.any(1), -found[:, 2], 0)
        for key in (score, found[:, 1], found[:, 0]):  # the last condition has priority
            order = order[key[order].argsort(stable=True)]
        found, same = found[order], same[order]
        rows = torch.cat((found[:, :3], self.judged(found, boxes, same)), 1)
        return torch.cat((self.counts(boxes), rows))[None, None]

    def judged(self, found, boxes, same):
        """(true, false) of each detection."""
        overlaps = torch.where(same, self.overlap(found[:, 3:7], boxes[:, 3:7]), -1)
        most, nearest = overlaps.max(1)
        hits = most >= self.threshold
        counts = hits if self.difficult else hits & (boxes[nearest, 7] == 0)
        place = torch.arange(found.shape[0], device=found.device)
        first = torch.full((boxes.shape[0],), _NONE, device=found.device)
        first = first.scatter_reduce(0, nearest, torch.where(counts, place, _NONE), "amin")
        true = counts & (first[nearest] == place)
        return torch.stack((true, ~true & (counts | ~hits)), 1).to(found.dtype)

    def counts(self, boxes):
        labels = torch.tensor(self.labels, device=boxes.device, dtype=boxes.dtype)
        own = (boxes[:, 1] == labels[:, None]) & (boxes[:, 0] != -1)
        if not self.difficult:
            own = own & (boxes[:, 7] == 0)
        none = torch.full_like(labels, -1)
        return torch.stack((none, labels, own.sum(1).to(boxes.dtype), none, none), 1)


class OfCascadeRCNN(DetectionEvaluate):
    """The same for FrcnnOutput's rows, boxes (item, left, top, right, bottom, label, ignored, difficult), and sizes.

    The top is [classes + detections, 5, 1, 1]. The ends of boxes belong to them. Boxes are compared in their own
    pixels, regardless of name_size_file, so the sizes (the third bottom) are not used.
    """

    types = ("DetectionEvaluate",)
    source = "zhaoweicai/cascade-rcnn"
    variant = "cascade"
    bottoms = (3, 3)
    overlap = staticmethod(overlap_in_pixels)

    def agree(self, found, boxes, sizes):
        self.check(
            found[1:2] == (7,) and boxes[1:2] == (8,), "rows of 7 and 8 are needed: {}, {}", found, boxes
        )

    def top_shapes(self, found, boxes, sizes):
        return [(len(self.labels) + found[0], 5, 1, 1)]

    @torch.no_grad()
    def forward(self, found, boxes, sizes):
        found, boxes = found.reshape(-1, 7), boxes.reshape(-1, 8)
        found = found[:, [0, 5, 6, 1, 2, 3, 4]]
        boxes = boxes[:, [0, 5, 6, 1, 2, 3, 4, 7]]
        return super().forward(found, boxes)[0, 0, :, :, None, None]
