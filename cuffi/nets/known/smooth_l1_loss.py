"""Losses: SmoothL1Loss, of boxes (Fast R-CNN)."""

import torch.nn.functional as F

from ..stock import legacy
from ..stock.softmax_with_loss import BATCH_SIZE, VALID, normalization, normalizer
from . import KnownLayer


class SmoothL1Loss(KnownLayer):
    """sum(w_out * f(w_in * (x - y))) / num; f(d) = sigma² d² / 2 where |d| < 1 / sigma², else |d| - 1 / (2 sigma²).

    A third bottom is w_in; a fourth one is w_out (Fast R-CNN). With three bottoms, as in R-FCN, the divisor is
    loss_param's count of positions, the gradient lacks the factor w_in, and a second top has the loss of each position.
    The weights get no gradient.
    """

    types = ("SmoothL1Loss", "SmoothL1LossOHEM")
    source = "rbgirshick/caffe-fast-rcnn, weiliu89/caffe and daijifeng001/caffe-rfcn"
    native = "smooth_l1_loss"
    bottoms = (2, 4)
    tops = (1, 2)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        message = definition.message
        self.sigma2 = message.smooth_l1_loss_param.sigma**2
        counts = definition.bottoms == 3 or definition.tops == 2 or message.HasField("loss_param")
        self.normalization = normalization(message.loss_param, VALID) if counts else BATCH_SIZE

    def agree(self, x, y, *weights):
        for other in (y, *weights):
            self.check(legacy(self, x) == legacy(self, other), "bottoms of {} and {}", x, other)

    def forward(self, x, y, *weights):
        # Faster R-CNN's targets are [N, K, 1, 1], and its predictions [N, K].
        y, inside, outside = (*(other.reshape(x.shape) for other in (y, *weights)), None, None)[:3]
        difference = x - y
        if inside is not None:
            weighted = inside.detach() * difference
            is_factor = outside is not None
            difference = weighted if is_factor else difference + (weighted - difference).detach()
        zero = difference.new_zeros(()).expand_as(difference)
        terms = F.huber_loss(difference, zero, reduction="none", delta=1 / self.sigma2)
        terms = terms if self.sigma2 == 1 else terms * self.sigma2
        terms = terms if outside is None else outside.detach() * terms
        places = x.shape[0] * x.shape[2:].numel()
        loss = terms.sum() / normalizer(self.normalization, x.shape[0], places, places)
        return loss if self.top_count == 1 else (loss, terms.detach().sum(1, keepdim=True))
