"""Faces: losses and scores that draw the features of a person together.

CenterLoss: the distance to the centre of a label.
MarginInnerProduct: scores with an angular margin (SphereFace).
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from . import ForkLayer

# --------------------------------------------------------------------------------------------- CenterLoss


class CenterLoss(ForkLayer):
    """The sum of |x - centre of its label|² / 2N.

    A centre's gradient is the sum of (centre - x) over the label's n items, divided by n + 1, regardless of the loss
    weight.
    """

    types = ("CenterLoss",)
    source = "ydwen/caffe-face"
    bottoms = (2, 2)
    blobs = ("center",)
    center: Tensor
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
        distance = x - F.embedding(labels, center)
        ctx.save_for_backward(distance, labels)
        ctx.count = len(center)
        return distance.square().sum() / (2 * len(x))

    @staticmethod
    def backward(ctx, *gradients):
        (gradient,), (distance, labels) = gradients, ctx.saved_tensors
        number = torch.zeros(ctx.count, device=labels.device, dtype=distance.dtype)
        number = number.index_add(0, labels, torch.ones_like(labels, dtype=distance.dtype))
        sums = distance.new_zeros(ctx.count, distance.shape[1]).index_add(0, labels, -distance)
        return distance * (gradient / len(distance)), sums / (number + 1)[:, None], None


# ------------------------------------------------------------------------------------- MarginInnerProduct


class MarginInnerProduct(ForkLayer):
    """SphereFace's scores with an angular margin m: |x| psi(theta) for the label, |x| cos(theta) for other classes.

    theta is the angle between x and a class's weights, whose lengths are 1: training writes them so. psi(theta) is
    (-1)^k cos(m theta) - 2k for theta in [k pi / m, (k + 1) pi / m]; m is 1 to 4, by `type`. The label's score is
    (lambda * |x| cos(theta) + |x| psi(theta)) / (1 + lambda), lambda = max(lambda_min, base * (1 + gamma * n)^-power)
    in forward n of training. Bottoms: x, and labels [N]. Tops: the scores, and lambda [1].

    The gradients are the source's. That of the weights has no margin. That of x has it, but the two coefficients of
    the label's gradient, of the weights and of x, are divided by their length.
    """

    types = ("MarginInnerProduct",)
    source = "wy1iu/sphereface"
    bottoms, tops = (2, 2), (1, 2)
    blobs = ("weight",)
    weight: Tensor
    forwards: Tensor

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.margin_inner_product_param
        self.num_output, self.first_axis, self._filler = p.num_output, p.axis, p.weight_filler
        self.margin, self.base, self.gamma, self.power = p.type + 1, p.base, p.gamma, p.power
        self.lambda_min = p.lambda_min
        self.check(p.num_output > 0, "num_output: expected more than 0")
        self.register_buffer("forwards", torch.tensor(float(p.iteration)), persistent=False)

    def _apply(self, fn, recurse=True):
        """torch's hook for `to` and `half`: bfloat16 could not count beyond 256."""
        forwards = self.forwards
        super()._apply(fn, recurse)
        self.forwards = forwards.to(self.forwards.device)
        return self

    def agree(self, x, labels):
        count, items = math.prod(labels), math.prod(x[: self.axis(self.first_axis, len(x))])
        self.check(count == items, "{} labels for {} items", count, items)

    def setup(self, x, labels):
        self.first_axis = self.axis(self.first_axis, len(x))
        self.blob("weight", (self.num_output, torch.Size(x[self.first_axis :]).numel()), self._filler)
        del self._filler

    def top_shapes(self, x, labels):
        return [(*x[: self.first_axis], self.num_output), (1,)][: self.top_count]

    def forward(self, x, labels):
        forwards = self.forwards + 1
        weight = torch.nn.functional.normalize(self.weight.detach(), dim=1, eps=0)
        if self.training:
            # Not in place: a compiled Backward may compute lambda again from the number that Forward got.
            self.forwards = forwards
            with torch.no_grad():
                self.weight.copy_(weight)
        number = forwards.to(torch.promote_types(x.dtype, torch.float32))
        share = (self.base * (1 + self.gamma * number) ** -self.power).clamp_min(self.lambda_min).to(x.dtype)
        labels = labels.reshape(-1, 1).long()
        flat = x.flatten(0, self.first_axis - 1) if self.first_axis else x[None]
        top = _Scores.apply(flat.flatten(1), self.weight, weight, labels, share, self.margin)
        top = top.reshape(*x.shape[: self.first_axis], self.num_output)
        return (top, share.reshape(1).clone()) if self.top_count > 1 else top


def psi(cosine, margin: int):
    """psi(theta) by cos(theta), and its derivative by cos(theta)."""
    sign = cosine.sign()
    square = cosine.square()
    if margin == 2:
        return 2 * sign * square - 1, 4 * sign * cosine
    if margin == 3:
        outer = (cosine.abs() - 0.5).sign()
        return outer * (4 * square - 3) * cosine + sign * (1 + outer) - 2, outer * (12 * square - 3)
    outer = sign * (2 * square - 1).sign()
    value = outer * (8 * square.square() - 8 * square + 1) + 2 * sign + outer - 3
    return value, outer * (32 * square - 16) * cosine


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, parameter, weight, labels, share, margin):
        top = x @ weight.t()
        length = x.norm(dim=1, keepdim=True)
        cosine = top.gather(1, labels) / length
        ctx.save_for_backward(x, weight, labels, share, length, cosine)
        ctx.margin = margin
        if margin == 1:
            return top
        more = length * (psi(cosine, margin)[0] - cosine) / (1 + share)
        return top.scatter_add(1, labels, more.to(top.dtype))

    @staticmethod
    def backward(ctx, *gradients):
        x, weight, labels, share, length, cosine = ctx.saved_tensors
        wide, gradient = x.to(weight.dtype), gradients[0].to(weight.dtype)  # autocast may have narrowed them
        own = gradient @ weight
        if ctx.margin > 1:
            value, slope = psi(cosine, ctx.margin)
            along = (value - cosine * slope) / length
            size = (slope.square() + along.square()).sqrt()
            label = weight[labels[:, 0]]
            margined = slope / size * label + along / size * wide
            own = own + gradient.gather(1, labels) / (1 + share) * (margined - label)
        return own.to(x.dtype), gradient.t() @ wide, None, None, None, None
