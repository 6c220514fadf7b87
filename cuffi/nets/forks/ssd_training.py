"""SSD: what trains and scores its nets.

MultiBoxLoss: the loss of offsets and scores of prior boxes.
FocalLoss: a cross entropy that counts hard labels more.
DetectionEvaluate: detections compared with boxes, also Cascade R-CNN's.
"""

import math

import torch
import torch.nn.functional as F

from ..stock.losses import NONE_IGNORED, VALID, capped, check_labels, normalization, normalizer
from . import ForkLayer
from ._boxes import decode, encode, overlap, overlap_in_pixels, priors_of

# ------------------------------------------------------------------------------------------- MultiBoxLoss


class MultiBoxLoss(ForkLayer):
    """SSD's loss: (loc_weight * the offsets' loss + the scores' loss) / max(count, 1).

    Bottoms: offsets [N, priors * 4], scores [N, priors * classes], PriorBox's top, and boxes [1, 1, boxes, 8], rows
    (item, label, _, left, top, right, bottom, difficult); item -1 is no box. Each box is matched with the prior that
    overlaps it most, the best pair first. Then each other prior is matched with the box that it overlaps by
    overlap_threshold or more. The targets of matched priors are the box's offsets and label. In items with boxes,
    neg_pos_ratio times as many unmatched priors get the background as target: those with the largest losses whose
    overlap is below neg_overlap. With mining_type NONE all priors have a target. The count is the number of matched
    priors, unless loss_param says otherwise.
    """

    types = ("MultiBoxLoss",)
    source = "weiliu89/caffe, ssd"
    bottoms = (4, 4)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.multibox_loss_param
        self.check(p.num_classes >= 1, "must provide num_classes, and 1 or more")
        self.check(p.share_location, "share_location false is not known here: port your fork's")
        mining = p.mining_type in (p.NONE, p.MAX_NEGATIVE) and not p.HasField("nms_param")
        self.check(mining, "HARD_EXAMPLE and nms_param are not known here: port your fork's")
        # The source writes the labels of all items but the first to wrong positions.
        is_sound = p.mining_type != p.NONE or p.conf_loss_type != p.LOGISTIC
        self.check(is_sound, "LOGISTIC with mining_type NONE is not known here: port your fork's")
        self.classes, self.background, self.code = p.num_classes, p.background_label_id, p.code_type
        self.l2, self.logistic, self.loc_weight = (
            p.loc_loss_type == p.L2,
            p.conf_loss_type == p.LOGISTIC,
            p.loc_weight,
        )
        self.bipartite, self.threshold = p.match_type == p.BIPARTITE, p.overlap_threshold
        self.by_priors, self.variance_in_target = p.use_prior_for_matching, p.encode_variance_in_target
        self.difficult, self.agnostic, self.inside = p.use_difficult_gt, p.map_object_to_agnostic, p.bp_inside
        self.ignores_crossing, self.mines = p.ignore_cross_boundary_bbox, p.mining_type != p.NONE
        self.ratio, self.neg_overlap = p.neg_pos_ratio, p.neg_overlap
        self.normalization = normalization(definition.message.loss_param, VALID)
        known = self.logistic or self.background < self.classes
        self.check(known, "background_label_id should be within [0, num_classes) for Softmax")
        classes = 1 + (self.background >= 0)
        self.check(
            not self.agnostic or self.classes == classes,
            f"map_object_to_agnostic is for num_classes {classes}",
        )
        said = list(definition.message.propagate_down)
        self.takes = tuple(said[:2]) if said else (True, True)

    def agree(self, offsets, scores, priors, boxes):
        count = math.prod(priors) // 8
        sizes = math.prod(offsets[1:]), math.prod(scores[1:])
        self.check(offsets[:1] == scores[:1], "offsets of {} and scores of {}", offsets, scores)
        self.check(count * 4 == sizes[0], "number of priors must match number of location predictions")
        self.check(
            count * self.classes == sizes[1], "number of priors must match number of confidence predictions"
        )
        self.check(math.prod(boxes) % 8 == 0, "boxes of 8 values are needed, not {}", boxes)

    def top_shapes(self, *bottoms):
        return [()]

    def forward(self, offsets, scores, priors, boxes):
        number, (priors, variances) = offsets.shape[0], priors_of(priors)
        wide = torch.promote_types(offsets.dtype, priors.dtype)
        offsets = offsets.to(wide).reshape(number, -1, 4)
        scores = scores.to(wide).reshape(number, -1, self.classes)
        with torch.no_grad():
            boxes = boxes.to(wide).reshape(-1, 8)
            of_background = (boxes[:, 0].trunc() != -1) & (boxes[:, 1].trunc() == self.background)
            self.check_rows(of_background, "a box has background_label_id as its label")
            match, best = self.matches(priors, variances, offsets, boxes)
            box = boxes[match.clamp(min=0)] if len(boxes) else boxes.new_zeros(*match.shape, 8)
            labels = torch.full_like(box[..., 1], self.background + 1) if self.agnostic else box[..., 1]
            labels = torch.where(match >= 0, labels, self.background).long()
            target = encode(self.code, priors, variances, box[..., 3:7])
        terms = self.terms(scores, labels)
        matched = match >= 0
        taken = (
            matched | self.negatives(terms.detach(), match, best) if self.mines else torch.ones_like(matched)
        )
        loss = offsets.new_zeros(())
        count = normalizer(self.normalization, number, number * len(priors), matched.sum())
        if self.takes[0]:
            loss = (
                loss + self.loc_weight * self.of_offsets(offsets, target, matched, priors, variances) / count
            )
        if self.takes[1]:
            loss = loss + torch.where(taken, terms, 0).sum() / count
        return loss

    # ------------------------------------------------------------------------------------ matching

    def matches(self, priors, variances, offsets, boxes):
        """By item and prior: the number of its box, -1 for none, -2 if it is ignored; and its largest overlap."""
        number, count = offsets.shape[:2]
        item, valid = boxes[:, 0].long(), boxes[:, 0] != -1
        if not self.difficult:
            valid = valid & (boxes[:, 7] == 0)
        valid, item = valid & (item >= 0) & (item < number), item.clamp(0, number - 1)
        if self.by_priors:
            overlaps = overlap(boxes[:, 3:7], priors)
            crossing = ((priors < 0) | (priors > 1)).any(-1).expand(number, count)
        else:
            found = decode(self.code, priors, 1 if self.variance_in_target else variances, offsets.detach())
            overlaps = overlap(boxes[:, None, 3:7], found[item])[:, 0]
            crossing = ((found < 0) | (found > 1)).any(-1)
        overlaps = torch.where((overlaps > 1e-6) & valid[:, None], overlaps, 0)
        match = torch.full((number, count), -1, dtype=torch.long, device=boxes.device)
        if self.ignores_crossing:
            match = torch.where(crossing & _any_of(valid, item, number)[:, None], -2, match)
            overlaps = torch.where(crossing[item], 0, overlaps)
        best = _largest(overlaps, item, number)
        match = _best_pairs(overlaps, item, match)
        if not self.bipartite:
            near = torch.where(overlaps >= self.threshold, overlaps, 0)
            first = _first_with(near, _largest(near, item, number), item, number)
            match = torch.where((match == -1) & (first < len(boxes)), first, match)
        # An item without boxes has no priors that learn from it.
        return torch.where(_any_of(valid, item, number)[:, None] | (match >= 0), match, -2), best

    def negatives(self, terms, match, best):
        """The priors that learn the background."""
        eligible = (match == -1) & (best < self.neg_overlap)
        wanted = ((match >= 0).sum(1) * self.ratio).floor().long()
        order = torch.where(eligible, terms, -torch.inf).sort(dim=1, descending=True, stable=True)[1]
        rank = torch.arange(terms.shape[1], device=terms.device).expand_as(order)
        rank = torch.empty_like(order).scatter(1, order, rank)
        return eligible & (rank < wanted[:, None])

    # ------------------------------------------------------------------------------------------ losses

    def terms(self, scores, labels):
        """The loss of each prior's scores."""
        if self.logistic:
            self.check_rows((labels < 0) | (labels >= self.classes), "a box's label is not below num_classes")
            wanted = F.one_hot(labels, self.classes).to(scores.dtype)
            return F.binary_cross_entropy_with_logits(scores, wanted, reduction="none").sum(-1)
        terms = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none").reshape(
            labels.shape
        )
        return capped(terms)

    def of_offsets(self, offsets, target, matched, priors, variances):
        taken = matched[..., None].expand_as(offsets)
        if self.inside:
            boxes = priors
            if not self.by_priors:
                boxes = decode(
                    self.code, priors, 1 if self.variance_in_target else variances, offsets.detach()
                )
            taken = taken & (boxes >= 0) & (boxes <= 1)
        given = offsets
        if self.variance_in_target:  # the source's gradient lacks the division
            given = offsets + (offsets / variances - offsets).detach()
        # Without a box, both may be NaN.
        given, target = torch.where(taken, given, 0), torch.where(taken, target, 0)
        if self.l2:
            return (given - target).square().sum() / 2
        return F.smooth_l1_loss(given, target, reduction="sum")


def _any_of(valid, item, number: int):
    """Does each item have a box?"""
    return torch.zeros(number, dtype=torch.long, device=item.device).index_add_(0, item, valid.long()) > 0


def _largest(overlaps, item, number: int):
    """The largest overlap of each prior with the item's boxes."""
    index = item[:, None].expand(overlaps.shape)
    return overlaps.new_zeros(number, overlaps.shape[1]).scatter_reduce(0, index, overlaps, "amax")


def _first_with(overlaps, largest, item, number: int):
    """The first of the item's boxes with the largest overlap, for each prior. The number of boxes means none."""
    boxes, count = overlaps.shape
    which = torch.arange(boxes, device=item.device)[:, None].expand(boxes, count)
    which = torch.where((overlaps > 0) & (overlaps == largest[item]), which, boxes)
    none = torch.full((number, count), boxes, dtype=torch.long, device=item.device)
    return none.scatter_reduce(0, item[:, None].expand(boxes, count), which, "amin")


def _best_pairs(overlaps, item, match):
    """Match each box with a prior, the pair that overlaps most first.

    A pair that is the best for both its box and its prior is always matched. Each round matches all such pairs, so
    there are few rounds.
    """
    boxes, (number, count) = overlaps.shape[0], match.shape
    if boxes == 0 or count == 0:
        return match
    which = torch.arange(boxes, device=item.device)
    done = torch.zeros(boxes, dtype=torch.bool, device=item.device)
    for _ in range(boxes):
        left = torch.where(done[:, None] | (match[item] != -1), 0, overlaps)
        value, prior = left.max(1)
        first = _first_with(left, _largest(left, item, number), item, number)
        chosen = (value > 0) & (first[item, prior] == which)
        if not torch.compiler.is_compiling() and not chosen.any():
            break
        done = done | chosen
        place = torch.where(chosen, item * count + prior, number * count)
        flat = torch.cat((match.reshape(-1), match.new_zeros(1))).scatter(0, place, which)
        match = flat[:-1].reshape(number, count)
    return match


# ---------------------------------------------------------------------------------------------- FocalLoss


class FocalLoss(ForkLayer):
    """-alpha (1 - p)^gamma log p of the softmax's p of the label; the sum is divided as SoftmaxWithLoss does.

    A second top has the probabilities.
    """

    types = ("FocalLoss",)
    source = "chuanqi305/FocalLoss"
    bottoms = (2, 2)
    tops = (1, 2)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        p, loss = definition.message.focal_loss_param, definition.message.loss_param
        self.alpha, self.gamma, self.dim = p.alpha, p.gamma, p.axis
        self.normalization = normalization(loss, VALID)
        self.ignore_label = loss.ignore_label if loss.HasField("ignore_label") else None

    def agree(self, scores, labels):
        check_labels(self, scores, labels, is_loss=True)

    def forward(self, scores, labels):
        classes = scores.movedim(self.dim, 1)
        labels = labels.reshape(classes.shape[:1] + classes.shape[2:]).long()
        ignored = NONE_IGNORED if self.ignore_label is None else self.ignore_label
        surprise = F.cross_entropy(classes, labels, reduction="none", ignore_index=ignored)
        terms = self.alpha * (-torch.expm1(-surprise)) ** self.gamma * surprise
        valid = labels.numel() if self.ignore_label is None else (labels != ignored).sum()
        loss = terms.sum() / normalizer(self.normalization, scores.shape[0], labels.numel(), valid)
        return loss if self.top_count == 1 else (loss, scores.detach().softmax(self.dim))


# -------------------------------------------------------------------------------------- DetectionEvaluate

_NONE = 1 << 31  # the place of no detection: behind all others


class DetectionEvaluate(ForkLayer):
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
    ends = True  # the first box of item -1 is the end of the boxes

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.detection_evaluate_param
        self.check(p.HasField("num_classes"), "must provide num_classes")
        self.check(p.overlap_threshold > 0, "overlap_threshold must be more than 0")
        self.background = p.background_label_id
        self.labels = tuple(c for c in range(p.num_classes) if c != self.background)
        self.threshold, self.difficult = p.overlap_threshold, p.evaluate_difficult_gt

    def agree(self, found, boxes):
        self.check(
            found[-1:] == (7,) and boxes[-1:] == (8,), "rows of 7 and 8 are needed: {}, {}", found, boxes
        )

    def top_shapes(self, found, boxes):
        return [(1, 1, len(self.labels) + found[-2], 5)]

    @torch.no_grad()
    def forward(self, found, boxes):
        found, boxes = (
            torch.cat((x[:, :2].trunc(), x[:, 2:]), 1) for x in (found.reshape(-1, 7), boxes.reshape(-1, 8))
        )
        counted = boxes[:, 0] != -1
        counted = counted.long().cumprod(0).bool() if self.ends else counted
        boxes = torch.cat((torch.where(counted, boxes[:, 0], -1)[:, None], boxes[:, 1:]), 1)
        for rows in (found, boxes):
            of_background = (rows[:, 0] != -1) & (rows[:, 1] == self.background)
            self.check_rows(of_background, "a row has background_label_id as its label")
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
    ends = False
    source = "zhaoweicai/cascade-rcnn"
    variant = "cascade"
    bottoms = (3, 3)
    overlap = staticmethod(overlap_in_pixels)

    def agree(self, found, boxes, *sizes):
        self.check(
            found[1:2] == (7,) and boxes[1:2] == (8,), "rows of 7 and 8 are needed: {}, {}", found, boxes
        )

    def top_shapes(self, found, boxes, *sizes):
        return [(len(self.labels) + found[0], 5, 1, 1)]

    @torch.no_grad()
    def forward(self, found, boxes, *sizes):
        found, boxes = found.reshape(-1, 7), boxes.reshape(-1, 8)
        found = found[:, [0, 5, 6, 1, 2, 3, 4]]
        boxes = boxes[:, [0, 5, 6, 1, 2, 3, 4, 7]]
        return super().forward(found, boxes)[0, 0, :, :, None, None]
