"""Regions, Cascade R-CNN: ScaleRoute, rows by the size of their region."""

import math

import torch

from . import KnownLayer


class ScaleRoute(KnownLayer):
    """The rows of all bottoms whose region's size is at least low_scale and below high_scale; otherwise the nearest
    row.

    The first bottom has the regions: rows (item, left, top, right, bottom). The size is the square root of the area;
    "nearest" is by its logarithm. No gradient.
    """

    types = ("ScaleRoute",)
    source = "zhaoweicai/cascade-rcnn"
    bottoms = (1, None)
    tops = (1, None)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.scale_route_param
        self.check(definition.bottoms == definition.tops, "as many tops as bottoms are needed")
        ends = [p.low_scale] * p.HasField("low_scale") + [p.high_scale] * p.HasField("high_scale")
        self.check(all(0 < end < math.inf for end in ends), "low_scale and high_scale must be positive")
        self.low, self.high = p.low_scale, p.high_scale if p.HasField("high_scale") else math.inf
        self.check(self.low <= self.high, "high_scale must not be less than low_scale")
        self.middle = math.prod(ends) ** (1 / len(ends)) if ends else 256.0

    def agree(self, *bottoms):
        rows = bottoms[0][0]
        self.check(math.prod(bottoms[0]) == 5 * rows, "regions of 5 values are needed, not {}", bottoms[0])
        self.check(all(x[0] == rows for x in bottoms), "{} rows of each bottom are needed", rows)

    def top_shapes(self, *bottoms):
        return [(1, *x[1:]) for x in bottoms]  # as in the layer's Reshape, before the number of rows is known

    @torch.no_grad()
    def forward(self, *bottoms):
        regions = bottoms[0].reshape(-1, 5)
        regions = regions.to(torch.promote_types(regions.dtype, torch.float32))
        sides = regions[:, 3:] - regions[:, 1:3]
        size = torch.where((sides < 0).any(1), 0, (sides + 1).prod(1)).sqrt()
        chosen = (size >= self.low) & (size < self.high)
        nearest = (size / self.middle).log2().abs().argmin()
        is_nearest = torch.arange(len(size), device=size.device) == nearest
        chosen = torch.where(chosen.any(), chosen, is_nearest)
        tops = tuple(x.detach()[chosen] for x in bottoms)
        return tops if len(tops) > 1 else tops[0]
