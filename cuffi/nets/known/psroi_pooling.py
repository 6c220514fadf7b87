"""Regions: PSROIPooling, bins with channels of their own (R-FCN)."""

import torch
import torch.nn.functional as F

from . import KnownLayer
from .roi_pooling import divided, rounded


class PSROIPooling(KnownLayer):
    """The mean of each of group_size x group_size bins of each region, each bin over channels of its own.

    Regions are rows (item, left, top, right, bottom), rounded, ends included, times spatial_scale. Bin (i, j) of
    output c is of channel (c * group_size + i) * group_size + j; a bin outside of the image is 0.

    A sum over a rectangle is computed from four values of a summed-area table, in double for precision.
    """

    types = ("PSROIPooling",)
    source = "daijifeng001/caffe-rfcn"
    native = "psroi_pooling"
    native_on_gpu = True
    bottoms = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.psroi_pooling_param
        self.scale, self.outputs, self.group = p.spatial_scale, p.output_dim, p.group_size
        self.check(self.outputs > 0 and self.group > 0, "output_dim and group_size must be > 0")

    def agree(self, x, regions):
        channels = self.outputs * self.group**2
        is_valid = len(x) == 4 and x[1] == channels
        self.check(is_valid, "a bottom of {} channels is needed, not {}", channels, x)
        count = torch.Size(regions).numel()
        self.check(count == 5 * regions[0], "regions of 5 values are needed, not {}", regions)

    def forward(self, x, regions):
        regions = regions.detach().reshape(-1, 5)
        regions = regions.to(torch.promote_types(regions.dtype, torch.float32))
        sums = F.pad(x.double().cumsum(2).cumsum(3), (1, 0, 1, 0))
        height, width = x.shape[2:]
        (top, bottom), (left, right) = self.edges(regions, 2, height), self.edges(regions, 1, width)
        plane = regions[:, :1].long() * x.shape[1] + torch.arange(x.shape[1], device=x.device)
        plane = plane.reshape(-1, self.outputs, self.group, self.group) * (sums.shape[2] * sums.shape[3])
        corners = [
            (plane + (y[:, :, None] * sums.shape[3] + x[:, None, :])[:, None]).reshape(-1)
            for y, x in ((bottom, right), (top, left), (top, right), (bottom, left))
        ]
        ends, begins, above, before = sums.reshape(-1).gather(0, torch.cat(corners)).reshape(4, *plane.shape)
        area = ((bottom - top)[:, :, None] * (right - left)[:, None, :])[:, None]
        return torch.where(area > 0, (ends + begins - above - before) / area.clamp(min=1), 0).to(x.dtype)

    def edges(self, regions, column: int, size: int):
        """The first pixel of each bin along an axis, and the one after its last: two of [regions, group_size]."""
        first = rounded(regions[:, column]) * self.scale
        end = (rounded(regions[:, column + 2]) + 1) * self.scale
        extent = divided((end - first).clamp(min=0.1), self.group)
        number = torch.arange(self.group, device=regions.device, dtype=regions.dtype)
        begin = (number * extent[:, None] + first[:, None]).floor().clamp(0, size)
        end = ((number + 1) * extent[:, None] + first[:, None]).ceil().clamp(0, size)
        return begin.long(), torch.maximum(begin, end).long()
