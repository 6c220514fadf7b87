"""Regions, training: BoxAnnotatorOHEM, the hardest regions of each image (R-FCN)."""

import torch

from ..stock import legacy
from . import KnownLayer


class BoxAnnotatorOHEM(KnownLayer):
    """Keeps the labels and weights of the roi_per_img regions with the largest losses of each image.

    Bottoms: regions [n, 5, ...], losses, labels [n, 1, ...], weights [n, channels, ...]. Tops: labels, the others
    ignore_label, and weights, the others 0. No gradient.
    """

    types = ("BoxAnnotatorOHEM",)
    source = "daijifeng001/caffe-rfcn"
    bottoms = (4, 4)
    tops = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.box_annotator_ohem_param
        self.number, self.ignore_label = p.roi_per_img, p.ignore_label
        self.check(self.number > 0, "roi_per_img: expected more than 0")

    def agree(self, regions, losses, labels, weights):
        self.check(regions[1:2] == (5,), "regions of 5 values are needed, not {}", regions)
        places = (regions[0], *legacy(self, regions)[2:])
        for other in (losses, labels):
            fits = (*legacy(self, other)[:1], *legacy(self, other)[2:]) == places and other[1:2] in ((), (1,))
            self.check(fits, "a loss and a label for each of {}, not {}", regions, other)
        fits = (*legacy(self, weights)[:1], *legacy(self, weights)[2:]) == places
        self.check(fits, "weights for each of {}, not {}", regions, weights)

    def top_shapes(self, regions, losses, labels, weights):
        return [(regions[0], 1, *regions[2:]), weights]

    @torch.no_grad()
    def forward(self, regions, losses, labels, weights):
        item, loss = regions[:, 0].reshape(-1), losses.reshape(-1)
        order = loss.argsort(descending=True, stable=True)
        order = order[item[order].argsort(stable=True)]  # by image, then by loss
        sorted_items = item[order]
        place = torch.arange(len(order), device=item.device)
        rank = place - torch.searchsorted(sorted_items.contiguous(), sorted_items.contiguous())
        kept = torch.zeros_like(order, dtype=torch.bool).scatter(0, order, rank < self.number)
        own = labels.reshape(regions.shape[0], 1, *regions.shape[2:])
        items, channels, height, width = legacy(self, weights.shape)
        each = kept.reshape(items, 1, height, width)
        chosen = torch.where(each, weights.reshape(items, channels, height, width), 0).reshape(weights.shape)
        return torch.where(kept.reshape(own.shape), own, self.ignore_label), chosen
