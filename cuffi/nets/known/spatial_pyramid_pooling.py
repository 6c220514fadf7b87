"""Pooling: SpatialPyramidPooling, SPP-net's own."""

import torch
from torch.nn.functional import max_pool2d

from . import KnownLayer


class SpatialPyramidPooling(KnownLayer):
    """SPP-net's pyramid: for each spatial_bin, the maxima of windows of height / bin by width / bin, as one row.

    A window's sides are rounded down, and Caffe's Pooling rounds their number up: a grid may have more windows than its
    bin says. One bin alone gives the maximum of the whole map, [N, C, 1, 1].
    """

    types = ("SpatialPyramidPooling",)
    source = "dsisds/caffe-SPPNet"

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message
        self.bins = tuple(p.spatial_pyramid_pooling_param.spatial_bin)
        self.check(len(self.bins) > 0 and min(self.bins, default=0) > 0, "spatial_bin is needed")
        # The source asks pooling_param, and not its own message.
        self.check(p.pooling_param.pool == p.pooling_param.MAX, "pooling_param.pool: only MAX is known here")

    def setup(self, x):
        self.check(len(x) == 4, f"a bottom [num, channels, height, width] is needed, not {list(x)}")
        most = min(x[2:])
        self.check(len(self.bins) == 1 or max(self.bins) <= most, f"spatial_bin of more than {most}")

    def forward(self, x):
        size = x.shape[2:]
        if len(self.bins) == 1:
            return max_pool2d(x, size)
        sides = [tuple(side // b for side in size) for b in self.bins]
        return torch.cat([max_pool2d(x, side, side, ceil_mode=True).flatten(1) for side in sides], 1)
