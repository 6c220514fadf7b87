"""Flow, of FlowNet's fork: maps compared, moved and resized.

Correlation: two maps compared at displacements (FlowNet).
FlowWarp and Warp: a map sampled along a flow (FlowNet 2).
Resample: nearest, linear or cubic (FlowNet).
"""

import math

import torch
import torch.nn.functional as F

from . import ForkLayer


class Correlation(ForkLayer):
    """FlowNet's correlation of two maps: a channel of the top for each displacement.

    Displacements are multiples of stride_2 up to max_displacement, rows first. The value is the mean of the product
    over channels and over a window of kernel_size. stride_1 is the step in the first map.

    For a row of the first map and one of the second, the products of all pairs of positions are one matrix product; the
    displacements are its diagonals.
    """

    types = ("Correlation",)
    source = "lmb-freiburg/flownet2"
    native = "correlation"
    bottoms = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.correlation_param
        self.check(p.kernel_size % 2 == 1, "kernel_size must be odd")
        self.check(
            p.correlation_type == p.MULTIPLY, "correlation_type SUBTRACT is not known here: port your fork's"
        )
        self.pad, self.kernel, self.displacement = p.pad, p.kernel_size, p.max_displacement
        self.stride_1, self.stride_2 = p.stride_1, p.stride_2
        self.check(min(p.stride_1, p.stride_2) > 0, "stride_1 and stride_2: expected more than 0")
        self.radius = p.max_displacement // p.stride_2

    def agree(self, first, second):
        self.check(len(first) == 4 and first == second, "bottoms of {} and {}", first, second)
        sizes = [self.size(first[2 + i]) for i in range(2)]
        self.check(min(sizes) > 0, "nothing is left of {}", first)

    def size(self, size: int) -> int:
        border = self.displacement + (self.kernel - 1) // 2
        return -(-(size + 2 * self.pad - 2 * border) // self.stride_1)

    def forward(self, first, second):
        number, channels = first.shape[:2]
        sizes = [self.size(int(size)) for size in first.shape[2:]]
        # All positions that the windows cover.
        height, width = ((size - 1) * self.stride_1 + self.kernel for size in sizes)
        begin, reach = self.displacement, self.radius * self.stride_2
        first, second = (F.pad(x, (self.pad,) * 4).permute(0, 2, 3, 1) for x in (first, second))
        first = first[:, begin : begin + height, begin : begin + width].reshape(-1, width, channels)
        columns = slice(begin - reach, begin + reach + width)
        side, rows = 2 * self.radius + 1, []
        for i in range(side):
            top = begin - reach + i * self.stride_2
            part = second[:, top : top + height, columns].reshape(-1, width + 2 * reach, channels)
            products = torch.bmm(first, part.transpose(1, 2)).contiguous()
            _, line, _ = products.stride()
            diagonals = products.as_strided(
                (len(products), width, side), (products.stride(0), line + 1, self.stride_2)
            )
            rows.append(diagonals.reshape(number, height, width, side))
        top = torch.stack(rows, 3).flatten(3).permute(0, 3, 1, 2) / channels
        if self.kernel == self.stride_1 == 1:
            return top
        return F.avg_pool2d(top, self.kernel, self.stride_1)


class FlowWarp(ForkLayer):
    """The first bottom, sampled bilinearly at the positions given by the second one, a flow (x, y) in pixels.

    Positions outside of the image are 0, or NaN (fill_value).
    """

    types = ("FlowWarp", "Warp")
    source = "lmb-freiburg/flownet2"
    bottoms = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.flow_warp_param
        self.outside = float("nan") if p.fill_value == p.NOT_A_NUMBER else 0.0

    def agree(self, image, flow):
        is_valid = len(image) == 4 and flow == (image[0], 2, *image[2:])
        self.check(is_valid, "an image and its flow are needed, not {} and {}", image, flow)

    def forward(self, image, flow):
        height, width = image.shape[2:]
        wide = torch.promote_types(flow.dtype, torch.float32)
        x = flow[:, 0].to(wide) + torch.arange(width, device=flow.device, dtype=wide)
        y = flow[:, 1].to(wide) + torch.arange(height, device=flow.device, dtype=wide)[:, None]
        inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
        x, y = torch.where(inside, x, 0), torch.where(inside, y, 0)
        left, up = x.detach().long(), y.detach().long()
        right, down = (left + 1).clamp(max=width - 1), (up + 1).clamp(max=height - 1)
        across, below = (x - left).to(image.dtype)[:, None], (y - up).to(image.dtype)[:, None]
        flat = image.flatten(2)

        def at(row, column):
            index = (row * width + column).flatten(1)[:, None].expand(-1, image.shape[1], -1)
            return flat.gather(2, index).reshape(image.shape)

        above = at(up, left) * (1 - across) + at(up, right) * across
        beneath = at(down, left) * (1 - across) + at(down, right) * across
        return torch.where(inside[:, None], above * (1 - below) + beneath * below, self.outside)


class Resample(ForkLayer):
    """A map resized by NEAREST, LINEAR or CUBIC interpolation, with wider weights when it shrinks (antialias).

    The size is height and width, or the second bottom's. No gradient. The position of row y is
    y * fy + fx / 2 - 1 / 2, with the factors of both axes, as in the source.
    """

    types = ("Resample",)
    source = "lmb-freiburg/flownet2"
    bottoms = (1, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.resample_param
        self.check(p.type != p.AREA, "only CUBIC, LINEAR and NEAREST interpolation is supported")
        self.kind = {p.NEAREST: "NEAREST", p.LINEAR: "LINEAR", p.CUBIC: "CUBIC"}[p.type]
        self.antialias, self.size = p.antialias, (p.height, p.width)
        is_sized = definition.bottoms == 2 or min(self.size) > 0
        self.check(is_sized, "height and width, or a second bottom, are needed")

    def top_shapes(self, x, *like):
        self.check(len(x) == 4, f"a bottom [num, channels, height, width] is needed, not {list(x)}")
        return [(*x[:2], *(like[0][2:] if like else self.size))]

    @torch.no_grad()
    def forward(self, x, like=None):
        size = self.size if like is None else like.shape[2:]
        factors = [have / want for have, want in zip(x.shape[2:], size, strict=True)]
        wide = torch.promote_types(x.dtype, torch.float32)
        down, across = (
            self.weights(int(x.shape[2 + i]), int(size[i]), factors, i, x.device, wide) for i in range(2)
        )
        return (down @ x.to(wide) @ across.t()).to(x.dtype)

    def weights(self, have: int, want: int, factors, i: int, device, dtype):
        """[want, have]: the weight of each value for each position, along one axis."""
        factor, other = factors[i], factors[1 - i]
        place = torch.arange(want, device=device, dtype=dtype) * factor + (other / 2 - 0.5)
        nearest = (place.abs() + 0.5).floor() * place.sign()
        index = torch.arange(have, device=device, dtype=dtype)
        if self.kind == "NEAREST":
            return (nearest[:, None] == index).to(dtype)
        narrow = 1 / factor if self.antialias and max(factors) > 1 else 1.0
        reach = 2 if factor < 1 else math.ceil((4 if self.kind == "CUBIC" else 2) / narrow)
        d = ((place[:, None] - index) * narrow).abs()
        if self.kind == "LINEAR":
            weight = (1 - d).clamp(min=0)
        else:
            inner, outer = d * d * (1.5 * d - 2.5) + 1, d * (d * (2.5 - 0.5 * d) - 4) + 2
            weight = torch.where(d <= 1, inner, torch.where(d < 2, outer, 0))
        weight = torch.where((nearest[:, None] - index).abs() <= reach, weight, 0)
        total = weight.sum(1, keepdim=True)
        return torch.where(total == 0, 0, weight / torch.where(total == 0, 1, total))
