"""Regions: ROIPooling, the maximum of each bin; division and rounding as in C."""

from __future__ import annotations

import functools
import importlib

import torch
import torch.nn.functional as F

from . import KnownLayer, _boxes


class ROIPooling(KnownLayer):
    """The maximum of each of pooled_h x pooled_w bins of each region; 0 where a bin is outside of the image.

    Regions are rows (item, left, top, right, bottom) in the input's pixels; times spatial_scale, rounded, ends
    included. `pad_ratio` widens them (cascade-rcnn). The gradient goes to the first pixel that has the maximum. A GPU
    adds it up by atomics, which Caffe does not: it may differ in the last bit from run to run.

    embedding_bag computes the maxima: a bin is a bag of pixels, and the table has a row of channels for each pixel. On
    a GPU, torchvision's roi_pool runs if it is installed. It computes the same in a sixth of the time.
    """

    types = ("ROIPooling",)
    source = "rbgirshick/caffe-fast-rcnn, faster-rcnn"
    bottoms = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.roi_pooling_param
        self.pooled, self.scale, self.pad_ratio = (p.pooled_h, p.pooled_w), p.spatial_scale, p.pad_ratio
        self.check(min(self.pooled) > 0, "pooled_h and pooled_w must be > 0")

    def agree(self, x, regions):
        self.check(len(x) == 4, "a bottom [num, channels, height, width] is needed, not {}", x)
        count = torch.Size(regions).numel()
        self.check(count == 5 * regions[0], "regions of 5 values are needed, not {}", regions)

    def top_shapes(self, x, regions):
        return [(regions[0], x[1], *self.pooled)]

    def forward(self, x, regions):
        # Half precision has no odd numbers above 2048.
        regions = regions.detach().reshape(-1, 5)
        regions = regions.to(torch.promote_types(regions.dtype, torch.float32))
        if self.pad_ratio:
            low, high = regions[:, 1:3], regions[:, 3:]
            pad = (high - low + 1) * self.pad_ratio
            regions = torch.cat((regions[:, :1], low - pad, high + pad), 1)
        if _boxes.AS_ONE_OPERATOR:
            shape = regions.shape[0], x.shape[1], *self.pooled
            fields = {"pooled_shape": self.pooled, "spatial_scale": self.scale}
            return torch.onnx.ops.symbolic("MaxRoiPool", (x, regions), fields, dtype=x.dtype, shape=shape)
        if x.is_cuda and not torch.compiler.is_compiling() and (roi_pool := _of_torchvision()):
            wide = torch.promote_types(x.dtype, regions.dtype)
            return roi_pool(x.to(wide), regions.to(wide), self.scale, *self.pooled)[0].to(x.dtype)
        return self.by_bags(x, regions)

    def by_bags(self, x, regions):
        """The top, by torch."""
        height, width = x.shape[2:]
        (left, top), (across, down) = self.edges(regions, height, width)
        row = regions[:, :1].long() * height + top
        corner = (row * width)[:, :, None] + left[:, None, :]
        area = (down[:, :, None] * across[:, None, :]).reshape(-1)
        wide = across.clamp(min=1)[:, None, :].expand_as(corner)
        pixel, ends = self.bags(corner.reshape(-1), wide.reshape(-1), area, height, width)
        pixels = x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])
        top = F.embedding_bag(pixel, pixels, ends, mode="max", include_last_offset=True)
        top = top[: len(area)] if len(top) > len(area) else top
        return top.reshape(len(regions), *self.pooled, x.shape[1]).permute(0, 3, 1, 2)

    def bags(self, corner, wide, area, height: int, width: int):
        """The numbers of all bins' pixels, one bin after the other, and where each bin begins and the last one ends.

        In a graph sizes must not depend on the regions' values. So there is room for the largest bins, and the unused
        rest is split into short bags, because one GPU thread reads a whole bag.
        """
        starts = F.pad(area.cumsum(0), (1, 0))
        in_graph = torch.compiler.is_compiling()
        # Neighbours share a row or a column at most.
        most = len(area) // (self.pooled[0] * self.pooled[1])
        most *= (height + self.pooled[0]) * (width + self.pooled[1])
        places = most if in_graph else int(starts[-1])
        place = torch.arange(places, device=area.device)
        bag = torch.searchsorted(starts[1:], place, right=True)
        of_bag = torch.stack((corner, wide, starts[:-1]))
        own = bag.clamp(max=len(area) - 1) if in_graph else bag
        corner, wide, first = of_bag.index_select(1, own).unbind()
        inside = place - first
        pixel = corner + inside // wide * width + inside % wide
        if not in_graph:
            return pixel, starts
        rest = torch.arange(_BAG, places + _BAG, _BAG, device=area.device) + starts[-1]
        return torch.where(bag < len(area), pixel, 0), torch.cat((starts, rest.clamp(max=places)))

    def edges(self, regions, height: int, width: int):
        """Along x, and along y: the first pixel of each bin, and how many it has there; of [regions, bins] each."""
        first, last = rounded(regions[:, 1:] * self.scale).split(2, 1)  # of x and y
        extent = (last - first + 1).clamp(min=1)
        axes = tuple(zip(reversed(self.pooled), (width, height), strict=True))
        extent = extent / torch.stack([torch.full_like(extent[:, 0], bins) for bins, _ in axes], 1)
        number = torch.arange(max(self.pooled) + 1, device=regions.device, dtype=regions.dtype)
        edge, first = number * extent[..., None], first[..., None]
        begin, end = edge[..., :-1].floor() + first, edge[..., 1:].ceil() + first
        begins, sizes = [], []
        for i, (bins, size) in enumerate(axes):
            begins.append(begin[:, i, :bins].clamp(0, size).long())
            sizes.append((end[:, i, :bins].clamp(0, size).long() - begins[i]).clamp(min=0))
        return begins, sizes


@functools.cache
def _of_torchvision():
    """torchvision's operator; None if it is not installed, or not for this torch."""
    try:
        importlib.import_module("torchvision")
        return torch.ops.torchvision.roi_pool
    except (ImportError, RuntimeError, OSError, AttributeError):
        return None


_BAG = 256


def divided(x, number: int):
    """x / number, correctly rounded. On a GPU torch multiplies by 1 / number, which could give a bin one pixel more."""
    return x / torch.full_like(x, number)


def rounded(x):
    """C's round: halves are rounded away from zero."""
    whole = x.trunc()
    return whole + ((x - whole) * 2).trunc()
