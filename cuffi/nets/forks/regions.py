"""Regions: Fast and Faster R-CNN, R-FCN, SPP-net. The values of a region, and what trains its box.

ROIPooling: the maximum of each bin.
ROIAlign: bilinear values of a grid.
PSROIPooling: bins with channels of their own (R-FCN).
SpatialPyramidPooling: SPP-net's own.
SmoothL1Loss and SmoothL1LossOHEM: of boxes (Fast R-CNN).
BoxAnnotatorOHEM: the hardest regions of each image (R-FCN).
"""

from __future__ import annotations

import functools
import importlib
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch.nn.functional import max_pool2d

from ..stock import legacy
from ..stock.losses import BATCH_SIZE, VALID, normalization, normalizer
from . import ForkLayer, _boxes

# --------------------------------------------------------------------------------------------- ROIPooling


class ROIPooling(ForkLayer):
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
        regions = regions.detach() if regions.requires_grad else regions
        regions = regions if regions.dim() == 2 else regions.reshape(-1, 5)
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
            # roi_pool reads the item that a region names, whatever it is. A wrong one becomes a limit.
            limits = _limits_of_items(len(x), regions.dtype, regions.device)
            given, regions = regions, regions.clamp(*limits.rows)
            what = f"the item of a region is not one of {len(x)}"
            if torch.cuda.is_current_stream_capturing():
                self.check_rows_in_graph(given[:, 0] == regions[:, 0], what)  # three kernels
            else:
                self.check_values_later(regions[:, 0], limits.low, limits.high, what)
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


class _Limits(NamedTuple):
    low: float
    high: float
    rows: tuple[torch.Tensor, torch.Tensor]  # the same for a region's five values, the others without a limit


@functools.lru_cache(64)
def _limits_of_items(count: int, dtype: torch.dtype, device: torch.device) -> _Limits:
    """The least and the greatest number that, cut to a whole one, is one of count. An item is between them."""
    inf = float("inf")
    ends = torch.tensor([-1.0, float(count)], dtype=dtype)
    low, high = torch.nextafter(ends, ends.flip(0)).tolist()
    rows = torch.tensor([[low, *[-inf] * 4], [high, *[inf] * 4]], dtype=dtype).to(device)
    return _Limits(low, high, (rows[0], rows[1]))


_BAG = 256


def divided(x, number: int):
    """x / number, correctly rounded. On a GPU torch multiplies by 1 / number, which could give a bin one pixel more."""
    return x / torch.full_like(x, number)


def rounded(x):
    """C's round: halves are rounded away from zero."""
    whole = x.trunc()
    return whole + ((x - whole) * 2).trunc()


# ----------------------------------------------------------------------------------------------- ROIAlign


class ROIAlign(ForkLayer):
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
            return F.embedding(image + (row * width)[:, :, None] + column[:, None, :], pixels)

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


# ------------------------------------------------------------------------------------------- PSROIPooling


class PSROIPooling(ForkLayer):
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


# ---------------------------------------------------------------------------------- SpatialPyramidPooling


class SpatialPyramidPooling(ForkLayer):
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


# ---------------------------------------------------------------------- SmoothL1Loss and SmoothL1LossOHEM


class SmoothL1Loss(ForkLayer):
    """sum(w_out * f(w_in * (x - y))) / num; f(d) = sigma² d² / 2 where |d| < 1 / sigma², else |d| - 1 / (2 sigma²).

    A third bottom is w_in; a fourth one is w_out (Fast R-CNN). With three bottoms, as in R-FCN, the divisor is
    loss_param's count of positions, the gradient lacks the factor w_in, and a second top has the loss of each position.
    The weights get no gradient.
    """

    types = ("SmoothL1Loss", "SmoothL1LossOHEM")
    source = "rbgirshick/caffe-fast-rcnn, weiliu89/caffe and daijifeng001/caffe-rfcn"
    native = "smooth_l1_loss"
    bottoms = (2, 4)
    tops = (1, 2)
    is_loss = True

    def __init__(self, definition):
        super().__init__(definition)
        message = definition.message
        self.sigma2 = message.smooth_l1_loss_param.sigma**2
        counts = definition.bottoms == 3 or definition.tops == 2 or message.HasField("loss_param")
        self.normalization = normalization(message.loss_param, VALID) if counts else BATCH_SIZE

    def agree(self, x, y, *weights):
        for other in (y, *weights):
            self.check(legacy(self, x) == legacy(self, other), "bottoms of {} and {}", x, other)

    def forward(self, x, y, *weights):
        # Faster R-CNN's targets are [N, K, 1, 1], and its predictions [N, K].
        y, inside, outside = (*(other.reshape(x.shape) for other in (y, *weights)), None, None)[:3]
        difference = x - y
        if inside is not None:
            weighted = inside.detach() * difference
            is_factor = outside is not None
            difference = weighted if is_factor else difference + (weighted - difference).detach()
        zero = difference.new_zeros(()).expand_as(difference)
        terms = F.huber_loss(difference, zero, reduction="none", delta=1 / self.sigma2)
        terms = terms if self.sigma2 == 1 else terms * self.sigma2
        terms = terms if outside is None else outside.detach() * terms
        places = x.shape[0] * x.shape[2:].numel()
        loss = terms.sum() / normalizer(self.normalization, x.shape[0], places, places)
        return loss if self.top_count == 1 else (loss, terms.detach().sum(1, keepdim=True))


# --------------------------------------------------------------------------------------- BoxAnnotatorOHEM


class BoxAnnotatorOHEM(ForkLayer):
    """Keeps the labels and weights of the roi_per_img regions with the largest losses of each image.

    Bottoms: regions [n, 5, ...], losses, labels [n, 1, ...], weights [n, channels, ...]. Tops: labels, the others
    ignore_label, and weights, the others 0. No gradient.
    """

    types = ("BoxAnnotatorOHEM",)
    source = "daijifeng001/caffe-rfcn"
    bottoms = (4, 4)
    tops = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.box_annotator_ohem_param
        self.number, self.ignore_label = p.roi_per_img, p.ignore_label
        self.check(self.number > 0, "roi_per_img: expected more than 0")

    def agree(self, regions, losses, labels, weights):
        self.check(regions[1:2] == (5,), "regions of 5 values are needed, not {}", regions)
        places = (regions[0], *legacy(self, regions)[2:])
        for other in (losses, labels):
            fits = (*legacy(self, other)[:1], *legacy(self, other)[2:]) == places and other[1:2] in ((), (1,))
            self.check(fits, "a loss and a label for each of {}, not {}", regions, other)
        fits = (*legacy(self, weights)[:1], *legacy(self, weights)[2:]) == places
        self.check(fits, "weights for each of {}, not {}", regions, weights)

    def top_shapes(self, regions, losses, labels, weights):
        return [(regions[0], 1, *regions[2:]), weights]

    @torch.no_grad()
    def forward(self, regions, losses, labels, weights):
        item, loss = regions[:, 0].reshape(-1).trunc(), losses.reshape(-1)
        self.check_rows(item < 0, "the item of a region is negative")
        order = loss.argsort(descending=True, stable=True)
        order = order[item[order].argsort(stable=True)]  # by image, then by loss
        sorted_items = item[order]
        place = torch.arange(len(order), device=item.device)
        rank = place - torch.searchsorted(sorted_items.contiguous(), sorted_items.contiguous())
        kept = torch.zeros_like(order, dtype=torch.bool).scatter(0, order, rank < self.number)
        own = labels.reshape(regions.shape[0], 1, *regions.shape[2:])
        items, channels, height, width = legacy(self, weights.shape)
        each = kept.reshape(items, 1, height, width)
        chosen = torch.where(each, weights.reshape(items, channels, height, width), 0).reshape(weights.shape)
        return torch.where(kept.reshape(own.shape), own, self.ignore_label), chosen
