"""Maps as large as images: interpolation, unpooling and cropping (DeepLab, PSPNet, SegNet, RCF).

Interp: bilinear with aligned corners (DeepLab, PSPNet).
Upsample: by a pooling's mask or by repetition.
Depooling: values back at their positions.
AutoCrop: Crop of before BVLC's.
SafeInv: 1 / x without infinity.
"""

import torch
import torch.nn.functional as F

from ..stock.pooling import pair
from ..stock.shapes import Crop
from . import ForkLayer

# ------------------------------------------------------------------------------------------------- Interp


class Interp(ForkLayer):
    """Bilinear interpolation with aligned corners. Negative pads first crop the bottom.

    The size: shrink_factor, zoom_factor, height and width, or shrink and then zoom.
    """

    types = ("Interp",)
    source = "hszhao/PSPNet, and DeepLab"

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.interp_param
        self.pads = p.pad_beg, p.pad_end
        self.check(max(self.pads) <= 0, "only supports non-positive padding (cropping)")
        self.shrink, self.zoom = p.shrink_factor, p.zoom_factor  # 0: not in the file
        self.size = (p.height, p.width) if p.HasField("height") and p.HasField("width") else None
        for name in ("shrink_factor", "zoom_factor"):
            self.check(not p.HasField(name) or getattr(p, name) >= 1, f"{name} must be positive")
        if self.shrink and self.zoom and self.size:
            self.shrink = self.zoom = 0
        self.check(bool(self.shrink or self.zoom or self.size), "a factor, or height and width, are needed")

    def sizes(self, shape) -> list[int]:
        sizes = []
        for i in range(2):
            size = int(shape[2 + i]) + sum(self.pads)
            self.check(size > 0, f"height and width should be positive: {list(shape)} and pads {self.pads}")
            if self.shrink:
                size = (size - 1) // self.shrink + 1
            if self.zoom:
                size = (size - 1) * self.zoom + 1
            if self.size is not None and not (self.shrink or self.zoom):
                size = self.size[i]
            sizes.append(size)
        return sizes

    def setup(self, x):
        self.check(len(x) == 4, f"a bottom [num, channels, height, width] is needed, not {list(x)}")
        self.check(min(self.sizes(x)) > 0, f"height and width should be positive, not {self.sizes(x)}")

    def forward(self, x):
        size = self.sizes(x.shape)
        if any(self.pads):
            x = F.pad(x, self.pads * 2)
        return F.interpolate(x, size, mode="bilinear", align_corners=True)


# ----------------------------------------------------------------------------------------------- Upsample


class ByMask(ForkLayer):
    """Moves each value to the position in the second bottom, the mask of a maximum pooling; other positions are 0.

    The size is upsample_h and upsample_w, or the bottom's times the scale, less one row or column with pad_out_h or
    pad_out_w.
    """

    types = ("Upsample",)
    source = "alexgkendall/caffe-segnet"
    bottoms = (2, 2)

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.upsample_param
        self.size = (
            (p.upsample_h, p.upsample_w) if p.HasField("upsample_h") and p.HasField("upsample_w") else None
        )
        apart = p.HasField("scale_h") or p.HasField("scale_w")
        self.check(
            bool(self.size) or not (apart and p.HasField("scale")), "either scale or scale_h and scale_w"
        )
        self.scale = (p.scale_h, p.scale_w) if apart else (p.scale if p.HasField("scale") else 2,) * 2
        self.less = p.pad_out_h, p.pad_out_w
        for scale, less in zip(self.scale, self.less, strict=True):
            self.check(bool(self.size) or scale > 1, "a scale must be more than 1")
            self.check(bool(self.size) or not less or scale == 2, "pad_out needs scale 2")

    def agree(self, x, mask):
        self.check(len(x) == 4 and x == mask, "bottoms of {} and {}", x, mask)

    def top_shapes(self, x, mask):
        return [(*x[:2], *self.sizes(x))]

    def sizes(self, shape):
        return self.size or tuple(shape[2 + i] * self.scale[i] - int(self.less[i]) for i in range(2))

    def forward(self, x, mask):
        size = self.sizes(x.shape)
        top = x.new_zeros(*x.shape[:2], size[0] * size[1])
        return top.scatter_(2, mask.detach().flatten(2).long(), x.flatten(2)).unflatten(2, size)


class Nearest(ForkLayer):
    """Repeats each value `scale` times in both directions."""

    types = ("Upsample",)
    source = "eric612/MobileNet-YOLO"

    def __init__(self, definition):
        super().__init__(definition)
        p = definition.message.upsample_param
        self.scale = p.scale if p.HasField("scale") else 1
        self.check(self.scale > 0, "scale: expected more than 0")

    def setup(self, x):
        self.check(len(x) == 4, f"a bottom [num, channels, height, width] is needed, not {list(x)}")

    def forward(self, x):
        return F.interpolate(x, scale_factor=float(self.scale), mode="nearest")


# ---------------------------------------------------------------------------------------------- Depooling


class Depooling(ForkLayer):
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
        self.kernel = pair(self, p, "kernel", "kernel_size", 0)
        self.stride, self.pad = pair(self, p, "stride", "stride", 1), pair(self, p, "pad", "pad", 0)
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


# ----------------------------------------------------------------------------------------------- AutoCrop


class AutoCrop(ForkLayer, Crop):
    """Crop as it was before BVLC took it: the first bottom, cut to the second's height and width.

    The offsets follow from the geometry of the layers between them and the value that both are computed from.
    """

    types = ("AutoCrop",)
    source = "yun-liu/rcf"

    def __init__(self, definition):
        super().__init__(definition)
        self.first_axis, self.offsets, self.says_offsets = 2, (), False

    def agree(self, x, like):
        self.check(len(self.offsets) == 2, "the geometry of the net does not determine where it is cut")
        super().agree(x, like)


# ------------------------------------------------------------------------------------------------ SafeInv


class SafeInv(ForkLayer):
    """1 / x, and 0 for 0. So is the gradient."""

    types = ("SafeInv",)
    source = "YutingZhang/caffe-recon-dec"

    def forward(self, x):
        is_zero = x == 0
        return torch.where(is_zero, 0, 1 / torch.where(is_zero, 1, x))
