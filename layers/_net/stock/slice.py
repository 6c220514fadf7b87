from itertools import pairwise

from . import StockLayer


class Slice(StockLayer):
    tops = (1, None)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.slice_param
        self.check(
            not (p.HasField("axis") and p.HasField("slice_dim")), "axis and slice_dim: one of them is enough"
        )
        self.dim, self.points = p.slice_dim if p.HasField("slice_dim") else p.axis, tuple(p.slice_point)
        self.check(
            not self.points or len(self.points) == self.top_count - 1,
            f"{len(self.points)} slice points for {self.top_count} tops",
        )

    def setup(self, x):
        size = x[self.axis(self.dim, len(x))]
        ends = (0, *self.points, size)
        rising = all(a < b for a, b in pairwise(ends))
        self.check(rising, f"slice points {self.points} of {size}")
        self.check(
            bool(self.points) or size % self.top_count == 0, f"{self.top_count} tops do not divide {size}"
        )

    def forward(self, x):
        size = x.shape[self.dim]
        if self.points:
            ends = (0, *self.points, size)
            sizes = [b - a for a, b in pairwise(ends)]
        else:
            sizes = [size // self.top_count] * self.top_count
        return x.split(sizes, self.dim)
