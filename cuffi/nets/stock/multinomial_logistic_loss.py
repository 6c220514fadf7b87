"""Losses: MultinomialLogisticLoss, a cross entropy of probabilities."""

import numpy as np

from . import StockLayer, legacy

LEAST = float(np.float32(1e-20))  # Caffe takes no logarithm of less; its constant is a float


class MultinomialLogisticLoss(StockLayer):
    """-1/N sum of log(p[n, label_n]), with probabilities of at least 1e-20.

    Bottoms: probabilities [N, K], labels [N]. The probabilities have a gradient.

    Source: BVLC's multinomial_logistic_loss_layer.cpp.
    """

    bottoms = (2, 2)
    is_loss = True

    def agree(self, probabilities, labels):
        legacy(self, probabilities)
        fits = probabilities[:1] == labels[:1] and legacy(self, labels)[1:] == (1, 1, 1)
        self.check(fits, "labels of {} for probabilities of {}", labels, probabilities)

    def forward(self, probabilities, labels):
        items = probabilities.shape[0]
        own = probabilities.reshape(items, -1).gather(1, labels.reshape(-1, 1).long())
        floor = own.clamp(min=LEAST)
        # Caffe's gradient is not 0 below that minimum.
        missing = (own - own.detach()) / floor.detach() - (floor - floor.detach()) / floor.detach()
        return -(floor.log() + missing).sum() / items
