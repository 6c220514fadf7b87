"""Faces: CenterLoss, the distance to the centre of a label."""

import math

import torch

from . import KnownLayer


class CenterLoss(KnownLayer):
    """The sum of |x - centre of its label|² / 2N.

    A centre's gradient is the sum of (centre - x) over the label's n items, divided by n + 1, regardless of the loss
    weight.
    """

    types = ("CenterLoss",)
    source = "ydwen/caffe-face"
    bottoms = (2, 2)
    blobs = ("center",)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.center_loss_param
        self.num_output, self.first_axis, self._filler = p.num_output, p.axis, p.center_filler
        self.check(p.num_output > 0, "num_output: expected more than 0")

    def agree(self, x, labels):
        self.check(
            labels[:1] == x[:1] and math.prod(labels) == x[0], "labels of {} for {} items", labels, x[0]
        )
        if self.is_set_up:
            count = math.prod(x[self.first_axis :])
            self.check(
                count == self.center.shape[1], "{} values of an item, not {}", self.center.shape[1], count
            )

    def setup(self, x, labels):
        self.first_axis = self.axis(self.first_axis, len(x))
        self.blob("center", (self.num_output, torch.Size(x[self.first_axis :]).numel()), self._filler)
        del self._filler

    def forward(self, x, labels):
        return _CenterLoss.apply(x.flatten(self.first_axis), self.center, labels.reshape(-1).long())


class _CenterLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, center, labels):
        distance = x - center[labels]
        ctx.save_for_backward(distance, labels)
        ctx.count = len(center)
        return distance.square().sum() / (2 * len(x))

    @staticmethod
    def backward(ctx, gradient):
        distance, labels = ctx.saved_tensors
        number = torch.zeros(ctx.count, device=labels.device, dtype=distance.dtype)
        number = number.index_add(0, labels, torch.ones_like(labels, dtype=distance.dtype))
        sums = distance.new_zeros(ctx.count, distance.shape[1]).index_add(0, labels, -distance)
        return distance * (gradient / len(distance)), sums / (number + 1)[:, None], None
