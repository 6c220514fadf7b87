"""Pooling: Depooling, values back at their positions."""

import torch

from ..stock.pooling import Pooling
from . import KnownLayer


class Depooling(KnownLayer):
    """What a Pooling undoes: each value goes to its position in a map of (H - 1) * stride + kernel - 2 pad rows.

    SWITCH, and MAX: the position is that in the second bottom, the mask of a Pooling. FIX: it is fix_y, fix_x in the
    window, whose centre is -1. Values that meet are added. A second top counts how many came to each place by a mask.
    """

    types = ("Depooling",)
    source = "YutingZhang/caffe-recon-dec"
    bottoms, tops = (1, 2), (1, 2)
    understands = tuple(
        f"pooling_param.{name}" for name in ("pool", "fix", "fix_x", "fix_y", "mask_index_type")
    )
    words = ("pooling_param.pool",)

    def __init__(self, definition):
        super().__init__(definition)
        p, extra = definition.message.pooling_param, definition.extra
        self.method = extra.get("pooling_param.pool", "MAX").replace("MAX", "SWITCH")
        self.check(
            self.method in ("SWITCH", "FIX"), f"pool: only MAX, SWITCH and FIX are known, not {self.method}"
        )
        self.check(
            definition.bottoms == (2 if self.method == "SWITCH" else 1), "SWITCH reads a mask, FIX none"
        )
        index = extra.get("pooling_param.mask_index_type", "GLOBAL")
        self.check(index == "GLOBAL", "mask_index_type: only GLOBAL is known")
        self.kernel = Pooling._pair(self, p, "kernel", "kernel_size", 0)
        self.stride, self.pad = (
            Pooling._pair(self, p, "stride", "stride", 1),
            Pooling._pair(self, p, "pad", "pad", 0),
        )
        self.check(min(*self.kernel, *self.stride) > 0, "kernel and stride: expected more than 0")
        both = extra.get("pooling_param.fix", "-1")
        fixed = [int(extra.get(f"pooling_param.fix_{axis}", both)) for axis in "yx"]
        self.fixed = tuple(k // 2 if at < 0 else at for at, k in zip(fixed, self.kernel, strict=True))

    def agree(self, x, *mask):
        self.check(len(x) == 4 and all(m == x for m in mask), "bottoms of {} and {}", x, *mask or ("",))

    def sizes(self, shape):
        axes = zip(shape[2:], self.kernel, self.stride, self.pad, strict=True)
        return tuple((size - 1) * stride + kernel - 2 * pad for size, kernel, stride, pad in axes)

    def top_shapes(self, x, *mask):
        return [(*x[:2], *self.sizes(x))] * self.top_count

    def forward(self, x, *mask):
        height, width = self.sizes(x.shape)
        none = height * width  # the place of what lies outside of the map
        if mask:
            places = mask[0].detach().flatten(2).long()
        else:
            row, column = (
                torch.arange(x.shape[2 + i], device=x.device) * self.stride[i] - self.pad[i] + self.fixed[i]
                for i in range(2)
            )
            inside = ((row >= 0) & (row < height))[:, None] & ((column >= 0) & (column < width))
            places = (
                torch.where(inside, row[:, None] * width + column, none).flatten().expand(*x.shape[:2], -1)
            )
        empty = x.new_zeros(*x.shape[:2], none + 1)
        tops = [empty.scatter_add(2, places, x.flatten(2))]
        if self.top_count > 1:
            tops.append(empty.scatter_add(2, places, torch.full_like(x, len(mask)).flatten(2)))
        return tuple(top[..., :none].unflatten(2, (height, width)) for top in tops)
