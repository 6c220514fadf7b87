"""Shapes: Reshape, the same values in another shape."""

import torch

from . import StockLayer


class Reshape(StockLayer):
    """The same values in another shape. 0 keeps an axis, -1 is computed from the count.

    Only the axes given by `axis` and `num_axes` are replaced; by default all axes.

    Source: BVLC's reshape_layer.cpp.
    """

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.reshape_param
        self.dims, self.start, self.num_axes = tuple(p.shape.dim), p.axis, p.num_axes
        self.check(self.dims.count(-1) <= 1, "new shape contains more than one -1")
        self.check(all(d >= -1 for d in self.dims), f"dim: expected -1, 0 or more, got {self.dims}")
        self.check(self.num_axes >= -1, "num_axes must be >= 0, or -1 for all")

    def setup(self, x):
        shape = self._shape(torch.Size(x))
        count = torch.Size(shape).numel() if -1 not in shape else None
        rest = torch.Size(d for d in shape if d != -1).numel()
        total = torch.Size(x).numel()
        is_valid = count == total if count is not None else rest > 0 and total % rest == 0
        self.check(is_valid, f"{list(x)} cannot become {list(shape)}")

    def _shape(self, shape) -> list[int]:
        start = self.start if self.start >= 0 else len(shape) + self.start + 1
        self.check(0 <= start <= len(shape), f"axis {self.start} out of range for {len(shape)} axes")
        end = len(shape) if self.num_axes == -1 else start + self.num_axes
        self.check(end <= len(shape), f"axis + num_axes = {end} is more than the {len(shape)} axes")
        is_there = all(d != 0 or start + i < len(shape) for i, d in enumerate(self.dims))
        self.check(is_there, "dim: 0 for an axis that does not exist")
        middle = [shape[start + i] if d == 0 else d for i, d in enumerate(self.dims)]
        return [*shape[:start], *middle, *shape[end:]]

    def forward(self, x):
        return x.reshape(self._shape(x.shape))
