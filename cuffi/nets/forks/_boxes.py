"""SSD's computations on boxes (left, top, right, bottom), for any leading axes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...base.tracing import is_recorded

CORNER, CENTER_SIZE, CORNER_SIZE = 1, 2, 3


def priors_of(bottom: Tensor) -> tuple[Tensor, Tensor]:
    """The boxes and their variances, two of [priors, 4], of PriorBox's tops."""
    boxes, variances = bottom.detach().reshape(2, -1, 4)
    return boxes, variances


def size_of(boxes: Tensor) -> Tensor:
    """The area; 0 for a box that ends before it begins."""
    width, height = boxes[..., 2] - boxes[..., 0], boxes[..., 3] - boxes[..., 1]
    return torch.where((width < 0) | (height < 0), 0, width * height)


def overlap(first: Tensor, second: Tensor) -> Tensor:
    """Intersection over union of boxes [..., a, 4] and [..., b, 4]: [..., a, b]."""
    common = _common(first, second, 0) * _common(first, second, 1)
    union = size_of(first)[..., :, None] + size_of(second)[..., None, :] - common
    return torch.where(common > 0, common / union, 0)


def _common(first: Tensor, second: Tensor, axis: int) -> Tensor:
    """The length of the boxes' intersection along an axis."""
    high = torch.minimum(first[..., :, None, axis + 2], second[..., None, :, axis + 2])
    return (high - torch.maximum(first[..., :, None, axis], second[..., None, :, axis])).clamp(min=0)


def _split(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """Centre and size."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return (low + high) / 2, high - low


def decode(code: int, priors: Tensor, variances: Tensor | float, offsets: Tensor) -> Tensor:
    """Decode offsets from priors to boxes. variances: 1 if the offsets already contain them."""
    offsets = variances * offsets
    if code == CORNER:
        return priors + offsets
    centre, size = _split(priors)
    if code == CORNER_SIZE:
        return priors + offsets * torch.cat((size, size), -1)
    centre, size = centre + offsets[..., :2] * size, offsets[..., 2:].exp() * size
    return torch.cat((centre - size / 2, centre + size / 2), -1)


def encode(code: int, priors: Tensor, variances: Tensor, boxes: Tensor) -> Tensor:
    """Encode boxes as offsets from priors: the inverse of decode."""
    if code == CORNER:
        return (boxes - priors) / variances
    centre, size = _split(priors)
    if code == CORNER_SIZE:
        return (boxes - priors) / torch.cat((size, size), -1) / variances
    own_centre, own_size = _split(boxes)
    return torch.cat(((own_centre - centre) / size, (own_size / size).log()), -1) / variances


def overlap_in_pixels(first: Tensor, second: Tensor) -> Tensor:
    """Intersection over union of boxes [..., a, 4] and [..., b, 4] whose end pixels belong to them: [..., a, b]."""

    def size(boxes):
        return (boxes[..., 2:] - boxes[..., :2] + 1).prod(-1)

    low = torch.maximum(first[..., :, None, :2], second[..., None, :, :2])
    high = torch.minimum(first[..., :, None, 2:], second[..., None, :, 2:])
    common = torch.where((high >= low).all(-1) & (high > low)[..., 1], (high - low + 1).prod(-1), 0)
    return common / (size(first)[..., :, None] + size(second)[..., None, :] - common)


def suppressed(boxes: Tensor, valid: Tensor, threshold: float, eta: float = 1.0, overlap=overlap) -> Tensor:
    """Greedy suppression of non-maxima, of many lists of boxes at once.

    A box is kept if its overlap with each box that was kept before it is not above the threshold. With eta < 1 each
    kept box multiplies the threshold by eta, as long as it is above 0.5.

    Args:
        boxes: [..., n, 4], the best first.
        valid: [..., n], bool; other boxes neither stay nor suppress.
        overlap: of boxes [..., a, 4] and [..., b, 4].

    Returns:
        [..., n], bool: the boxes that are kept.

    Whether a box is kept depends only on the boxes before it. Each round judges all boxes by those that the last round
    kept. So each round makes the result of at least one more box final, usually of nearly all, and a round that changes
    nothing is the last.
    """
    if AS_ONE_OPERATOR and eta == 1 and overlap is _overlap:
        return torch.ops.cuffi.suppressed(boxes, valid, threshold)
    if eta == 1 and overlap is _overlap and threshold >= 0 and valid.numel() and is_plain(boxes):
        lists = boxes.detach().reshape(-1, *boxes.shape[-2:]), valid.reshape(-1, valid.shape[-1])
        kept = _one_by_one(*(part.numpy() for part in lists), threshold)
        return torch.from_numpy(kept).reshape(valid.shape)
    count = boxes.shape[-2]
    kept = valid.contiguous()  # while_loop requires equal layouts of its inputs and outputs
    for begin in range(0, count, _BLOCK):
        end = min(begin + _BLOCK, count)
        earlier = overlap(boxes[..., :end, :], boxes[..., begin:end, :])
        kept = _judge(kept, earlier, begin, end, threshold, eta)
    return kept


def is_plain(x: Tensor) -> bool:
    """May numpy compute with it? A tracer, if one watches, would take numpy's result for a constant."""
    if torch.compiler.is_compiling() or x.device.type != "cpu" or is_recorded((x,)):
        return False
    return x.dtype in (torch.float32, torch.float64)


def best_first(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` best of the last axis, and their places. Of equal ones the first comes first."""
    if count == scores.shape[-1] or not is_plain(scores):
        best, order = scores.sort(dim=-1, descending=True, stable=True)
        return best[..., :count], order[..., :count]
    scores = scores.contiguous()
    least = scores.topk(count, sorted=False).values.amin(-1, keepdim=True)
    chosen = ~(scores < least)  # and what is equal to the last one
    rows = zip(scores.reshape(-1, scores.shape[-1]), chosen.reshape(-1, scores.shape[-1]), strict=True)
    found = [_best_of_row(*row, count) for row in rows]
    best, order = (torch.stack([row[part] for row in found]) for part in (0, 1))
    return best.reshape(*scores.shape[:-1], count), order.reshape(*scores.shape[:-1], count)


def _best_of_row(scores: Tensor, chosen: Tensor, count: int) -> tuple[Tensor, Tensor]:
    places = chosen.nonzero()[:, 0]
    best, order = scores[places].sort(descending=True, stable=True)
    return best[:count], places[order[:count]]


def _one_by_one(boxes: np.ndarray, valid: np.ndarray, threshold: float) -> np.ndarray:
    """`suppressed` of lists of boxes [lists, n, 4]: the next box of each list suppresses those behind it.

    On a processor this is several times as fast as the rounds, because only boxes that are kept ask for overlaps.
    """
    left, top, right, bottom = np.ascontiguousarray(np.moveaxis(boxes, 2, 0))
    with np.errstate(all="ignore"):
        width, height = right - left, bottom - top
        size = np.where((width < 0) | (height < 0), boxes.dtype.type(0), width * height)
    parts, limit = [left, top, right, bottom, size], boxes.dtype.type(threshold)
    lists, undecided, kept = np.arange(len(valid)), valid.copy(), np.zeros_like(valid)
    while True:
        place = undecided.argmax(1)
        goes_on = undecided[np.arange(len(lists)), place]
        if not goes_on.all():
            if not goes_on.any():
                return kept
            lists, place, undecided = lists[goes_on], place[goes_on], undecided[goes_on]
            parts = [part[goes_on] for part in parts]
        rows, begin = np.arange(len(lists)), place.min()
        kept[lists, place], undecided[rows, place] = True, False
        best, behind = [part[rows, place, None] for part in parts], [part[:, begin:] for part in parts]
        undecided[:, begin:] &= ~(_overlap_of_parts(best, behind) > limit)


def _overlap_of_parts(one: list[np.ndarray], others: list[np.ndarray]) -> np.ndarray:
    """`overlap`, operation by operation. Where that is 0, this may be negative or NaN."""
    with np.errstate(all="ignore"):  # infinite boxes, and a union of 0
        common = np.minimum(one[2], others[2])
        common -= np.maximum(one[0], others[0])
        np.maximum(common, 0, out=common)
        height = np.minimum(one[3], others[3])
        height -= np.maximum(one[1], others[1])
        common *= height
        union = one[4] + others[4]
        union -= common
        return np.divide(common, union, out=common)


_BLOCK = 512
_overlap = overlap
AS_ONE_OPERATOR = False  # during to_onnx, which replaces `suppressed` by one operator


def _judge(kept: Tensor, overlaps: Tensor, begin: int, end: int, threshold: float, eta: float) -> Tensor:
    """Decide about the boxes from `begin` to `end`. overlaps: those of all boxes before `end` with these."""
    before = torch.ones(end, end - begin, dtype=torch.bool, device=kept.device).triu(1 - begin)
    limits = torch.stack([overlaps.new_full((), limit) for limit in _limits(threshold, eta)])
    candidates = kept[..., begin:end].clone()  # while_loop does not allow aliases

    always = (overlaps > limits[0]) & before if len(limits) == 1 else None

    def judged(current):
        hits = always
        if hits is None:
            number = current[..., :end].cumsum(-1)[..., begin:] - current[..., begin:end].long()
            limit = limits[number.clamp(max=len(limits) - 1)][..., None, :]
            hits = (overlaps > limit) & before
        is_hit = (hits & current[..., :end, None]).any(-2)
        return torch.cat((current[..., :begin], candidates & ~is_hit, current[..., end:]), -1)

    return _settled(judged, kept)


def _settled(function, value: Tensor) -> Tensor:
    """Apply the function until its result equals its argument."""
    if torch.compiler.is_compiling():
        from torch._higher_order_ops.while_loop import while_loop

        def go_on(value, last):
            return (value != last).any()

        return while_loop(
            go_on, lambda value, last: (function(value), value.clone()), (function(value), value)
        )[0]
    while True:
        last, value = value, function(value)
        if torch.equal(value, last):
            return value


def _limits(threshold: float, eta: float) -> list[float]:
    """The thresholds after 0, 1, ... kept boxes."""
    limits = [threshold]
    while eta < 1 and limits[-1] > 0.5:
        limits.append(limits[-1] * eta)
    return limits
