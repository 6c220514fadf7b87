"""Shapes: Slice, a bottom cut into tops."""

from itertools import pairwise

from . import StockLayer


class Slice(StockLayer):
    """Cuts a bottom into the tops on `axis`, 1 by default: at slice_point, or into equal parts.

    Source: BVLC's slice_layer.cpp.
    """

    tops = (1, None)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.slice_param
        both = p.HasField("axis") and p.HasField("slice_dim")
        self.check(not both, "axis and slice_dim: one of them is enough")
        self.dim, self.points = p.slice_dim if p.HasField("slice_dim") else p.axis, tuple(p.slice_point)
        points, tops = len(self.points), self.top_count
        self.check(points in (0, tops - 1), f"{points} slice points for {tops} tops")

    def setup(self, x):
        size = x[self.axis(self.dim, len(x))]
        rising = all(a < b for a, b in pairwise((0, *self.points, size)))
        self.check(rising, f"slice points {self.points} of {size}")
        divides = size % self.top_count == 0
        self.check(bool(self.points) or divides, f"{self.top_count} tops do not divide {size}")

    def forward(self, x):
        size = x.shape[self.dim]
        sizes = [size // self.top_count] * self.top_count
        if self.points:
            sizes = [b - a for a, b in pairwise((0, *self.points, size))]
        return x.split(sizes, self.dim)
