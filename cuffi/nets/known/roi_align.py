"""Regions: ROIAlign, bilinear values of a grid."""

import torch

from . import KnownLayer


class ROIAlign(KnownLayer):
    """Bilinear values on a grid of (pooled_h + 1) x (pooled_w + 1) corners of each region's bins.

    Regions are rows (item, left, top, right, bottom), times spatial_scale, less half a pixel; corners outside of the
    map are 0, and so are regions that end before they begin.
    """

    types = ("ROIAlign",)
    source = "zhaoweicai/cascade-rcnn"
    bottoms = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.roi_pooling_param
        self.grid, self.scale, self.pad_ratio = (p.pooled_h + 1, p.pooled_w + 1), p.spatial_scale, p.pad_ratio
        self.check(min(self.grid) > 1, "pooled_h and pooled_w must be > 0")

    def agree(self, x, regions):
        self.check(len(x) == 4, "a bottom [num, channels, height, width] is needed, not {}", x)
        count = torch.Size(regions).numel()
        self.check(count == 5 * regions[0], "regions of 5 values are needed, not {}", regions)

    def forward(self, x, regions):
        regions = regions.detach().reshape(-1, 5)
        regions = regions.to(torch.promote_types(regions.dtype, torch.float32))
        height, width = x.shape[2:]
        (y, down, is_down), (x_, across, is_across) = (
            self.places(regions, 2, height),
            self.places(regions, 1, width),
        )
        image = (regions[:, 0].long() * (height * width))[:, None, None]
        pixels = x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])

        def at(row, column):
            return pixels[image + (row * width)[:, :, None] + column[:, None, :]]

        below, right = down.to(x.dtype)[:, :, None, None], across.to(x.dtype)[:, None, :, None]
        y1, x1 = (y + 1).clamp(max=height - 1), (x_ + 1).clamp(max=width - 1)
        above = at(y, x_) * (1 - right) + at(y, x1) * right
        beneath = at(y1, x_) * (1 - right) + at(y1, x1) * right
        inside = (is_down[:, :, None] & is_across[:, None, :])[..., None]
        return torch.where(inside, above * (1 - below) + beneath * below, 0).permute(0, 3, 1, 2)

    def places(self, regions, column: int, size: int):
        """(the pixel before each corner, the corner's distance from it, is it valid?) along an axis."""
        low, high = regions[:, column], regions[:, column + 2]
        pad = (high - low + 1) * self.pad_ratio
        low, high = (low - pad) * self.scale - 0.5, (high + pad) * self.scale - 0.5
        count = self.grid[2 - column]
        number = torch.arange(count, device=regions.device, dtype=regions.dtype)
        place = low[:, None] + number * ((high - low) / (count - 1))[:, None]
        counts = (place >= -0.5) & (place <= size - 0.5) & (high > low)[:, None]
        place = place.clamp(0, size - 1)
        pixel = place.floor()
        return pixel.long(), place - pixel, counts
