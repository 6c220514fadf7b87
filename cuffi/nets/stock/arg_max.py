"""Scores: ArgMax, where the largest values are."""

import torch

from . import StockLayer


class ArgMax(StockLayer):
    """The indices of the top_k largest values, as floating numbers.

    Top: [N, 1, top_k] over all values of an item; with out_max_val [N, 2, top_k], indices and values. With `axis`:
    the bottom's shape with top_k on that axis, values instead of indices with out_max_val. No gradient.

    Of equal values the last one comes first: Caffe sorts pairs of value and index, the greatest first.

    Source: BVLC's argmax_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.argmax_param
        self.out_max_val, self.top_k = p.out_max_val, p.top_k
        self.along = p.axis if p.HasField("axis") else None

    def setup(self, x):
        size = x[self.axis(self.along, len(x))] if self.along is not None else torch.Size(x[1:]).numel()
        self.check(1 <= self.top_k <= size, f"top_k {self.top_k} of {size} values")

    @torch.no_grad()
    def forward(self, x):
        dim = self.along if self.along is not None else 1
        flat = x if self.along is not None else x.flatten(1)
        # A stable sort of the reversed values keeps the last of equal ones in front. topk promises no order.
        values, order = flat.flip(dim).sort(dim=dim, descending=True, stable=True)
        values = values.narrow(dim, 0, self.top_k)
        indices = (flat.shape[dim] - 1 - order.narrow(dim, 0, self.top_k)).to(x.dtype)
        if self.along is not None:
            return values if self.out_max_val else indices
        top = torch.stack((indices, values), 1) if self.out_max_val else indices[:, None]
        return top.reshape(top.shape + (1,) * max(0, x.dim() - 3))
