"""Images: Resample, nearest, linear or cubic (FlowNet)."""

import math

import torch

from . import KnownLayer


class Resample(KnownLayer):
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
