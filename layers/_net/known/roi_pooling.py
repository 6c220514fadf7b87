import torch
import torch.nn.functional as F

from . import KnownLayer


class ROIPooling(KnownLayer):
    """The maximum of each of pooled_h x pooled_w bins of each region; 0 where a bin is outside of the image.

    Regions are rows (item, left, top, right, bottom) in the input's pixels; times spatial_scale, rounded, ends
    included. `pad_ratio` widens them (cascade-rcnn). The gradient goes to the first pixel that has the maximum.

    embedding_bag computes the maxima: a bin is a bag of pixels, and the table has a row of channels for each pixel.
    """

    types = ("ROIPooling",)
    source = "rbgirshick/caffe-fast-rcnn, faster-rcnn"
    bottoms = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.roi_pooling_param
        self.pooled, self.scale, self.pad_ratio = (p.pooled_h, p.pooled_w), p.spatial_scale, p.pad_ratio
        self.check(min(self.pooled) > 0, "pooled_h and pooled_w must be > 0")

    def setup(self, x, regions):
        self.check(len(x) == 4, f"a bottom [num, channels, height, width] is needed, not {list(x)}")
        count = torch.Size(regions).numel()
        self.check(count == 5 * regions[0], f"regions of 5 values are needed, not {list(regions)}")

    def top_shapes(self, x, regions):
        return [(regions[0], x[1], *self.pooled)]

    def forward(self, x, regions):
        wide = torch.promote_types(
            regions.dtype, torch.float32
        )  # half precision cannot represent odd numbers above 2048
        bags, starts = self.bags(regions.detach().reshape(-1, 5).to(wide), x.shape)
        pixels = x.permute(0, 2, 3, 1).reshape(-1, x.shape[1])
        top = F.embedding_bag(bags, pixels, starts, mode="max", include_last_offset=True)
        top = top[: regions.shape[0] * self.pooled[0] * self.pooled[1]]
        top = top.reshape(regions.shape[0], *self.pooled, x.shape[1])
        return top.permute(0, 3, 1, 2)

    def bags(self, regions, shape):
        """The numbers of all bins' pixels, one bin after the other, and where each bin begins and the last one ends.

        In a graph sizes must not depend on the regions' values. So there is room for the largest bins, and the unused
        rest is split into short bags, because one GPU thread reads a whole bag.
        """
        height, width = shape[2:]
        (top, tall), (left, wide) = (self.edges(regions, i, size) for i, size in enumerate((height, width)))
        corner = regions[:, 0].long()[:, None, None] * (height * width) + top[:, :, None] * width
        corner = (corner + left[:, None, :]).reshape(-1)
        wide = wide[:, None, :].expand(-1, self.pooled[0], -1)
        area, wide = (tall[:, :, None] * wide).reshape(-1), wide.reshape(-1).clamp(min=1)
        starts = F.pad(area.cumsum(0), (1, 0))
        if torch.compiler.is_compiling():
            # Neighbouring bins share at most a row or a column.
            places = regions.shape[0] * (height + self.pooled[0]) * (width + self.pooled[1])
            rest = torch.arange(_BAG, places + _BAG, _BAG, device=regions.device) + starts[-1]
        else:
            places, rest = int(starts[-1]), starts[:0]
        place = torch.arange(places, device=regions.device)
        ended = torch.zeros(places + 1, dtype=torch.long, device=regions.device)
        bag = ended.index_add_(0, starts[1:], torch.ones_like(area))[:places].cumsum(0)
        is_pixel = bag < area.shape[0]
        bag = bag.clamp(max=area.shape[0] - 1)
        inside, wide = place - starts[bag], wide[bag]
        pixel = corner[bag] + inside // wide * width + inside % wide
        return torch.where(is_pixel, pixel, 0), torch.cat((starts, rest.clamp(max=places)))

    def edges(self, regions, i: int, size: int):
        """The first pixel of each bin along an axis, and how many pixels it has there: two of [regions, bins]."""
        low, high = regions[:, 2 - i], regions[:, 4 - i]
        if self.pad_ratio:
            pad = (high - low + 1) * self.pad_ratio
            low, high = low - pad, high + pad
        first, last = (rounded(edge * self.scale) for edge in (low, high))
        extent = divided((last - first + 1).clamp(min=1), self.pooled[i])[:, None]
        number = torch.arange(self.pooled[i], device=regions.device, dtype=regions.dtype)
        begin = ((number * extent).floor() + first[:, None]).clamp(0, size)
        end = (((number + 1) * extent).ceil() + first[:, None]).clamp(0, size)
        return begin.long(), (end - begin).clamp(min=0).long()


_BAG = 256


def divided(x, number: int):
    """x / number, correctly rounded. On a GPU torch multiplies by 1 / number, which could give a bin one pixel more."""
    return x / torch.full_like(x, number)


def rounded(x):
    """C's round: halves are rounded away from zero."""
    whole = x.trunc()
    return whole + ((x - whole) * 2).trunc()
