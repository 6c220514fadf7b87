"""Shapes: Concat, bottoms one after the other."""

import torch

from . import StockLayer


class Concat(StockLayer):
    """The bottoms one after the other on `axis`, 1 by default. Their other axes are the same.

    Source: BVLC's concat_layer.cpp.
    """

    bottoms = (1, None)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.concat_param
        if p.HasField("concat_dim") and p.HasField("axis"):
            self.check(False, "concat_dim and axis: one of them is enough")
        self.dim = p.concat_dim if p.HasField("concat_dim") else p.axis

    def agree(self, *shapes):
        axis = self.axis(self.dim, len(shapes[0]))
        for shape in shapes[1:]:
            same = len(shape) == len(shapes[0]) and all(
                a == b for i, (a, b) in enumerate(zip(shape, shapes[0], strict=True)) if i != axis
            )
            self.check(same, "bottoms of {} and {} do not join along axis {}", shapes[0], shape, axis)

    def forward(self, *bottoms):
        return bottoms[0] if len(bottoms) == 1 else torch.cat(bottoms, self.dim)
